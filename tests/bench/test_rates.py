"""The clock counts finished tuples after the warm-up, and its interval of confidence is a sensible one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from semistream.bench.rates import Run, rate

BATCHES = [pa.record_batch({"k": np.arange(100) + start}) for start in (0, 1000, 2000)]


def run(least=4, answers=(100, 100, 100)):
    return Run(BATCHES, list(answers), warm=2, least=least, seconds=0.0)


def test_a_join_that_answers_at_once_is_given_just_the_batches_asked_for():
    one = run()
    one.consume(one.stream())
    assert (one.given, one.rows, len(one.intervals)) == (6, 600, 4)


def test_batches_come_in_rotation():
    one = run()
    seen = []
    one.consume(seen.append(batch["k"][0].as_py()) or batch for batch in one.stream())
    assert seen == [0, 1000, 2000, 0, 1000, 2000]


def test_what_is_read_ahead_but_not_answered_when_the_clock_stops_does_not_count():
    def reads_ahead(batches):
        held = []
        for batch in batches:
            held.append(batch)
            if len(held) > 5:
                yield held.pop(0)
        yield from held

    one = run()
    one.consume(reads_ahead(one.stream()))
    assert (one.given, one.rows, len(one.intervals)) == (11, 1100, 4)


def test_answers_may_come_in_any_cutting():
    def crumbs(batches):
        for batch in batches:
            for start in range(0, 100, 7):
                yield batch.slice(start, 7)

    one = run()
    one.consume(crumbs(one.stream()))
    assert (one.rows, len(one.intervals)) == (600, 4)
    assert all(seconds > 0 for seconds in one.intervals)


def test_the_expected_number_of_answers_goes_on_in_rotation():
    one = run(answers=(3, 0, 5))
    assert [one.expected(batches) for batches in range(8)] == [0, 3, 3, 8, 11, 11, 16, 19]


def test_the_run_goes_on_until_the_time_is_used_up():
    one = Run(BATCHES, [100, 100, 100], warm=1, least=1, seconds=0.05)
    one.consume(one.stream())
    assert sum(one.intervals) > 0.04
    assert one.given > 2


def test_the_rate_is_rows_over_time_and_lies_in_its_interval():
    found = rate([1.0, 2.0, 1.0, 2.0, 1.0, 2.0], 3000)
    assert found.rows_per_s == pytest.approx(2000)
    low, high = found.ci95
    assert low < 2000 < high


def test_the_interval_covers_the_truth_as_often_as_it_claims():
    draws = np.random.Generator(np.random.PCG64(5))
    covered = 0
    for _ in range(400):
        low, high = rate(list(draws.gamma(8.0, 1 / 8, 60)), 1000).ci95
        covered += low <= 1000 <= high
    assert 0.90 <= covered / 400 <= 0.99


def test_the_fastest_rate_of_an_interval_is_finite_even_when_times_vary_wildly():
    low, high = rate([0.01, 10.0], 1000).ci95
    assert 0 < low < high < float("inf")


def test_one_measurement_has_no_interval():
    assert rate([2.0], 1000).ci95 is None
