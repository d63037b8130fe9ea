"""The loop: what happens between batches, when the caller stops early, and when something goes wrong on the way."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pyarrow as pa
import pytest

import semistream as ss
from semistream.errors import ColumnError, NoProgress, UsageError
from tests.core.small import batches_of, built, joined, rows_of, sorted_rows

every_algorithm = pytest.mark.parametrize("algorithm", [record.name for record in ss.algorithms()])
NUMBERS = {"id": range(2000), "square": [n * n for n in range(2000)]}


def open_files():
    """How many files this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


class Clock:
    """Time that passes only where a test says so."""

    now = 0.0

    def perf_counter(self):
        return self.now

    monotonic = perf_counter


def stream_of(count, rows=100):
    """Batches of keys that are all in the master."""
    for number in range(count):
        yield pa.record_batch({"id": pa.array([(number * 37 + n) % 2000 for n in range(rows)])})


# ---------------------------------------------------------------------------------------------------------- the caller


@every_algorithm
@pytest.mark.parametrize("taken", [0, 1, 3])
def test_stopping_early_lets_everything_go(algorithm, taken):
    with built(NUMBERS) as master:
        join = ss.Join(master, on="id", memory="300kB", algorithm=algorithm)
        before = open_files()
        output = join(stream_of(100))
        for _ in range(taken):
            assert next(output).num_rows
        slab = weakref.ref(join._run._shop._slab) if taken else lambda: None
        output.close()
        gc.collect()
        assert open_files() == before
        assert slab() is None
        report = join.report()
        assert report["tuples_in"] >= report["matched"]
        assert (report["rows_out"] > 0) == (taken > 0)


@every_algorithm
def test_forgetting_the_iterator_lets_everything_go_too(algorithm):
    with built(NUMBERS) as master:
        before = open_files()
        output = ss.Join(master, on="id", memory="300kB", algorithm=algorithm)(stream_of(100))
        next(output)
        assert open_files() > before
        del output
        gc.collect()
        assert open_files() == before


def test_two_runs_of_one_join_do_not_disturb_each_other():
    with built(NUMBERS) as master:
        join = ss.Join(master, on="id", memory="300kB")
        first, second = join(stream_of(40)), join(stream_of(30))
        halves = [[next(first)], [next(second)]]
        halves[0] += list(first)
        halves[1] += list(second)
    assert [sum(batch.num_rows for batch in half) for half in halves] == [4000, 3000]
    assert all(row["square"] == row["id"] ** 2 for half in halves for row in rows_of(half))


def test_a_batch_given_away_belongs_to_the_caller():
    with built(NUMBERS) as master:
        output = ss.Join(master, on="id", memory="300kB")(stream_of(40))
        kept = [(batch, batch.to_pydict()) for batch in output]
    assert len(kept) > 2
    assert all(batch.to_pydict() == copy for batch, copy in kept)


@every_algorithm
@pytest.mark.parametrize("wrong", ["error", "schema", "item"])
def test_a_stream_that_fails_lets_everything_go(algorithm, wrong):
    def failing():
        yield from stream_of(3)
        if wrong == "error":
            raise ConnectionError("the line is dead")
        yield pa.record_batch({"other": [1]}) if wrong == "schema" else {"id": [1]}

    kinds = {"error": ConnectionError, "schema": ColumnError, "item": UsageError}
    with built(NUMBERS) as master:
        before = open_files()
        join = ss.Join(master, on="id", memory="300kB", algorithm=algorithm)
        with pytest.raises(kinds[wrong]):
            list(join(failing()))
        gc.collect()
        assert open_files() == before
        assert join.report()["tuples_in"] == 300


@pytest.mark.parametrize("first", [0, 1])
def test_an_empty_batch_of_another_schema_is_refused(first):
    empty = pa.record_batch({"other": pa.array([], pa.int8())})
    batches = [pa.record_batch({"id": [1]}), empty]
    with built(NUMBERS) as master, pytest.raises(ColumnError):
        joined(master, batches[::-1] if first else batches)


def test_empty_batches_and_pauses_change_nothing():
    empty = pa.record_batch({"id": pa.array([], pa.int64())})
    with built(NUMBERS) as master:
        for stream in ([], [None], [empty], [None, empty, None]):
            assert joined(master, stream)[1] == []
        _, found = joined(master, [None, empty, *batches_of({"id": [3]}), empty, None, None])
    assert rows_of(found) == [{"id": 3, "square": 9}]


# ------------------------------------------------------------------------------------------------------------ the loop


@every_algorithm
def test_when_nothing_arrives_those_who_wait_are_served(algorithm):
    with built(NUMBERS) as master:
        join = ss.Join(master, on="id", memory="2MB", algorithm=algorithm)
        left = []

        def stream():
            yield from batches_of({"id": [5, 1500, 5]})
            for _ in range(200):
                yield None
                if join.report()["waiting"] == 0:
                    left.append("before the end")
                    return

        assert sorted(row["id"] for row in rows_of(join(stream()))) == [5, 5, 1500]
    assert left


@every_algorithm
@pytest.mark.parametrize("wait", [0, 1, 50, 400])
def test_nobody_waits_for_more_tuples_than_was_allowed(algorithm, wait):
    with built(NUMBERS) as master:
        join, found = joined(master, stream_of(60, rows=20), max_wait=wait, algorithm=algorithm, how="left")
    assert sum(batch.num_rows for batch in found) == 1200
    assert join.report()["wait_tuples_max"] <= wait + 20


@every_algorithm
def test_nobody_waits_longer_than_was_allowed_however_many_batches_come(algorithm, monkeypatch):
    """Thousands of tiny batches: what is kept about their arrival must not grow, nor be forgotten."""
    clock = Clock()
    monkeypatch.setattr("semistream.arrivals.time", clock)
    with built(NUMBERS) as master:
        join = ss.Join(master, on="id", memory="16MB", max_wait="100ms", algorithm=algorithm)

        def stream():
            for number in range(6000):
                clock.now += 0.1 / 2000
                yield pa.record_batch({"id": [number % 2000]})

        for _ in join(stream()):
            assert len(join._run._shop._arrivals._came) <= 1010
    longest = join.report()["wait_tuples_max"]
    early = ("adaptive", "p_cachejoin", "op_cachejoin")  # has soon read it all; a thread of steps serves whoever waits
    assert (0 if algorithm in early else 1900) <= longest <= 2010
    assert join.report()["matched"] == 6000


@pytest.mark.parametrize("algorithm", ["hybridjoin"])
def test_a_word_whose_rows_fill_many_pages_with_a_wide_one_among_them_is_answered_once(algorithm):
    wide = ["x" * 300] * 400
    wide[60], wide[200] = "J" * 20_000, "K" * 9000
    table = {"id": [1] * 10 + [5] * 400 + [9] * 10, "n": range(420), "t": ["a"] * 10 + wide + ["b"] * 10}
    for memory in ("300kB", "1MB", "8MB"):
        with built(table) as master:
            _, found = joined(master, batches_of({"id": [5, 9, 4, 5]}), memory=memory, algorithm=algorithm)
        assert sorted(row["n"] for row in rows_of(found)) == sorted([*range(10, 410)] * 2 + [*range(410, 420)])


@pytest.mark.parametrize(
    ("algorithm", "layout"),
    [
        (record.name, layout)
        for record in ss.algorithms()
        for layout in ("key", "heap")
        if layout == "key" or not record.needs_word_order
    ],
)
def test_a_row_in_the_middle_of_nowhere_is_found(algorithm, layout):
    """Keys between, before and behind all others, and the first and last of every page."""
    table = {"id": range(10, 700, 3), "t": [f"row {n}" for n in range(10, 700, 3)]}
    with built(table, layout=layout) as master:
        _, found = joined(master, batches_of({"id": range(750)}), algorithm=algorithm, memory="400kB")
    assert sorted_rows(found) == sorted(((n, f"row {n}") for n in range(10, 700, 3)), key=repr)


def test_a_recipe_that_stops_moving_is_told_by_name(monkeypatch):
    with built(NUMBERS) as master:
        join = ss.Join(master, on="id", memory="300kB", algorithm="hybridjoin")
        monkeypatch.setattr("semistream.algorithms.hybridjoin.HybridJoin.step", lambda self: iter(()))
        with pytest.raises(NoProgress, match="algorithm hybridjoin: 1 tuples wait and none has left for 2 steps"):
            list(join(batches_of({"id": [1]})))


@every_algorithm
def test_wide_rows_narrow_rows_and_rows_without_anything_else_than_a_key(algorithm):
    """Masters of one column, streams of one column, and both with only text or only fixed columns."""
    for table in ({"id": range(300)}, {"id": range(300), "t": [str(n) for n in range(300)]}):
        for extra in ({}, {"s": ["text"] * 400}, {"f": [1.5] * 400}):
            with built(table) as master:
                _, found = joined(master, batches_of({"id": range(400)} | extra), algorithm=algorithm, how="left")
            assert len(rows_of(found)) == 400
            assert {row["id"]: row.get("t") for row in rows_of(found)} == {
                n: str(n) if "t" in table and n < 300 else None for n in range(400)
            }


def test_the_report_of_a_join_that_has_not_run_is_empty_and_complete():
    with built(NUMBERS) as master:
        join = ss.Join(master, on="id")
        before = join.report()
        list(join(stream_of(2)))
    assert set(before) == set(join.report())
    assert not any(value for name, value in before.items() if name not in ("algorithm", "memory_bytes"))
    assert join.report()["tuples_in"] == 200


def test_time_spent_by_the_stream_and_by_the_caller_is_not_the_joins(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("semistream.turns.time", clock)

    def slow():
        for batch in stream_of(3, rows=5):
            clock.now += 1000
            yield batch
            clock.now += 1000

    with built(NUMBERS) as master:
        join = ss.Join(master, on="id", memory="1MB", max_wait=0)
        for _ in join(slow()):
            clock.now += 1000
    assert clock.now > 8000
    assert join.report()["busy_s"] == 0
