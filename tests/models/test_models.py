"""The models among themselves: every algorithm has one, terms add up, goals are met, limits are told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import semistream as ss
from semistream.models import EXAMPLE, MODELS, Setting, choices, predict, scans
from semistream.models.inequality import Balance, belongs
from semistream.models.popularity import zipf

SETTING = Setting(
    demand=zipf(200_000, 1.0),
    rows=200_000,
    slots=20_000,
    partition_rows=500,
    costs=EXAMPLE,
    cached_rows=2000,
    pinned_rows=500,
)
UNPUBLISHED = {
    *("hybridjoin_l", "hybridjoin_pq", "hybridjoin_lwf", "cachejoin_l", "cachejoin_pq", "cachejoin_lwf", "adaptive"),
    *("ssij", "partitioned_join", "derakhshan"),
}


def test_every_algorithm_has_a_model():
    assert {one.name for one in ss.algorithms()} <= set(MODELS)


@pytest.mark.parametrize("algorithm", MODELS)
def test_every_model_predicts_in_both_forms_or_says_that_nothing_is_printed(algorithm):
    predicted = predict(algorithm, SETTING)
    iteration = predicted.iteration
    assert iteration.misses > 0
    assert 0 <= predicted.hit_share < 1
    assert predicted.rate == pytest.approx(iteration.tuples / iteration.seconds)
    assert all(seconds >= 0 for seconds in iteration.terms.values())
    if algorithm in UNPUBLISHED:
        with pytest.raises(ss.UsageError, match='use form="corrected"'):
            predict(algorithm, SETTING, form="published")
    else:
        assert predict(algorithm, SETTING, form="published").rate > 0


@pytest.mark.parametrize("algorithm", sorted(set(MODELS) - {"p_cachejoin", "op_cachejoin"}))
def test_an_iteration_of_one_thread_takes_the_sum_of_its_terms(algorithm):
    iteration = predict(algorithm, SETTING).iteration
    assert iteration.seconds == pytest.approx(sum(iteration.terms.values()))


def test_more_memory_never_hurts():
    for algorithm in MODELS:
        more = predict(algorithm, replace(SETTING, slots=40_000))
        assert more.rate >= predict(algorithm, SETTING).rate, algorithm


def test_uniform_pages_have_a_closed_form():
    needed = np.full(2000, 1 / 2000)
    assert choices.oldest_first(needed, 50_000).per_load == pytest.approx(2 * 50_000 / 2000, rel=1e-3)
    assert choices.longest_wait(needed, 50_000).per_load == pytest.approx(50)
    assert choices.fullest_first(needed, 50_000).per_load == pytest.approx(50)


@pytest.mark.parametrize("exponent", [0.25, 0.5, 0.75, 1.0])
def test_no_choice_of_pages_answers_more_than_the_square_root_rule(exponent):
    needed = zipf(200_000, exponent, sorted_master=True).needed(500)
    bound = choices.longest_wait(needed, 20_000).per_load * 1.001 + 1
    others = [
        choices.oldest_first(needed, 20_000),
        choices.fullest_first(needed, 20_000),
        choices.due_first(needed, 20_000, 6, 1.5),
        choices.fixed_place(needed, 20_000, 0.7),
        choices.all_at_once(needed, 20_000),
    ]
    assert max(one.per_load for one in others) <= bound


def test_the_best_disk_buffer_is_where_the_rate_is_highest():
    """Whatever the master's size, and whatever a stream tuple costs."""
    memory, start, row = 50e6, 1e-3, 2e-7
    best = scans.best_buffer_rows(memory, 120, start, row)
    for rows, tuple_s in ((5e5, 0.0), (5e6, 1e-6)):

        def rate(buffer, rows=rows, tuple_s=tuple_s):
            tuples = (memory - buffer * 120) / 164 * buffer / rows
            return tuples / (start + buffer * row + tuples * tuple_s)

        assert rate(best) > max(rate(best * 0.9), rate(best * 1.1))


def test_the_inequality_places_keys_where_they_take_least():
    balance = Balance(zipf(100_000, 1.0), rows=100_000, buffer_rows=500)
    placed = balance.in_memory(2_000_000)
    assert placed.memory_bytes == pytest.approx(2_000_000, rel=1e-6)
    for factor in (0.25, 4.0):  # a switching factor other than 1 needs more memory for the same stream (Fig. 6a)
        other = replace(balance, switching_factor=factor).at(placed.cycle_tuples)
        assert other.memory_bytes > placed.memory_bytes
    assert belongs(rows=0, tuples=1)
    assert not belongs(rows=1, tuples=6)


def test_memory_for_a_rate_and_rate_in_a_memory_are_inverse():
    balance = Balance(zipf(100_000, 1.0), rows=100_000, buffer_rows=500)
    needed = balance.memory_for(20_000, EXAMPLE)
    assert balance.rate_in(needed.memory_bytes, EXAMPLE) == pytest.approx(20_000, rel=1e-3)


def test_a_rate_that_is_out_of_reach_is_told_with_what_limits_it():
    balance = Balance(zipf(100_000, 1.0), rows=100_000, buffer_rows=500)
    with pytest.raises(
        ss.UsageError, match=r"not more than 3333333 tuples/s are possible here, and '(probe cache|take|settle)'"
    ):
        balance.memory_for(1e9, EXAMPLE)
    with pytest.raises(ss.BudgetError, match="the disk buffer alone takes"):
        balance.in_memory(100)


def test_a_theorem_of_ssbj_at_high_rates_all_that_is_asked_for_is_cached():
    balance = Balance(zipf(1_000, 0.5), rows=1_000, buffer_rows=100)
    placed = balance.at(1e9)
    assert placed.hit_share == pytest.approx(1.0)
    assert placed.cached_rows == pytest.approx(1_000)


def test_unknown_names_are_refused():
    with pytest.raises(ss.UsageError, match="algorithm='quickjoin' has no cost model"):
        predict("quickjoin", SETTING)
