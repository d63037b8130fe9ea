"""ADAPTIVE as a whole: two threads, the cache at work, and the budgets and keys that are hard on it."""

from __future__ import annotations

import contextlib
import threading

import numpy as np
import pyarrow as pa
import pytest

import semistream as ss
from semistream import crew, workshop
from semistream.binned import Binned
from semistream.errors import BudgetError, MasterCorrupt
from semistream.masters.page_buffer import PageBuffer
from semistream.tile_front import TileFront
from tests.core.small import built, enlarged, joined, sorted_rows
from tests.reference import reference_join, same_multiset

TEXTS = [f"{number:0>80}" for number in range(20_000)]


def table_of(keys):
    return pa.table({"id": pa.array(keys, pa.int64()), "text": TEXTS[: len(keys)]})


def stream_of(keys, batch_rows=3000, **columns):
    """Batches with these keys."""
    table = pa.table({"id": pa.array(keys, pa.int64()), "n": range(len(keys))} | columns)
    return table, table.to_batches(max_chunksize=batch_rows)


def zipf(rows, keys, seed=1, shift=0):
    """Keys of which the first are asked for most."""
    drawn = np.random.default_rng(seed).zipf(1.3, rows)
    return ((drawn - 1) * 7919 + shift) % keys


def check(table, keys, batch_rows=3000, columns=None, **options):
    """Join and compare with the oracle; the report."""
    stream, batches = stream_of(keys, batch_rows, **(columns or {}))
    with built(table) as master:
        join, found = joined(master, batches, **{"algorithm": "adaptive", "memory": "400kB", "how": "left"} | options)
    same_multiset(found, reference_join(stream, table, "id", options.get("how", "left")))
    return join.report()


@pytest.fixture
def two_threads(monkeypatch):
    """Even small blocks are worth two threads; the names of those that served bins."""
    monkeypatch.setattr(crew, "_PART_ROWS", 64)
    names, serve = set(), Binned.serve

    def watched(self, *given):
        names.add(threading.current_thread().name)
        return serve(self, *given)

    monkeypatch.setattr(Binned, "serve", watched)
    return names


# -------------------------------------------------------------------------------------------------------- two threads


def test_two_threads_serve_and_answer_and_give_what_one_gives(two_threads, monkeypatch):
    answered, answer = set(), TileFront.answer

    def watched(self, *given):
        answered.add(threading.current_thread().name)
        return (yield from answer(self, *given))

    monkeypatch.setattr(TileFront, "answer", watched)
    keys, table = zipf(30_000, 9000), table_of([number for number in range(9000) if number % 5])
    with built(table) as master:
        stream, batches = stream_of(keys)
        found = [
            joined(master, batches, algorithm="adaptive", memory="500kB", how="left", threads=threads)[1]
            for threads in (1, 2)
        ]
    assert len(two_threads) == len(answered) == 2
    expected = reference_join(stream, table, "id", "left")
    for batches in found:
        same_multiset(batches, expected)


@pytest.mark.parametrize("how", ["inner", "left_semi", "left_anti"])
def test_two_threads_agree_on_who_has_matched(how, two_threads):
    table = table_of([number // 3 for number in range(6000) if number % 5])
    check(table, zipf(12_000, 3000), how=how, threads=2, memory="600kB")
    assert len(two_threads) == 2


def test_tuples_too_wide_to_wait_disturb_nobody_s_answers(two_threads, monkeypatch):
    """They are answered while the other thread answers from the cache, so the cache must not change."""
    keys, answering, changed = zipf(24_000, 4000), [False], []
    notes = ["w" * 6000 if number % 40 == 0 else "" for number in range(24_000)]
    answer, keep = workshop.Workshop.answer, TileFront._keep

    def watched(self, block):
        answering[0] = True
        left = yield from answer(self, block)
        answering[0] = False
        return left

    def keeping(self, *given):
        changed.append(answering[0])
        return keep(self, *given)

    monkeypatch.setattr(workshop.Workshop, "answer", watched)
    monkeypatch.setattr(TileFront, "_keep", keeping)
    for threads in (1, 2):
        changed.clear()
        columns, table = {"note": notes}, table_of(range(4000))
        report = check(table, keys, columns=columns, threads=threads, memory="900kB", batch_rows=2000)
        assert report["matched"] == 24_000
        assert False in changed
        assert (True in changed) == (threads == 1)


def test_a_damaged_page_is_reported_from_either_thread(two_threads, monkeypatch):
    fetch = PageBuffer._fetch
    for name in ("MainThread", "semistream"):

        def damaged(self, *given, name=name):
            if threading.current_thread().name.startswith(name):
                raise MasterCorrupt("damaged")
            fetch(self, *given)

        with built(table_of(range(9000))) as master, monkeypatch.context() as patch:
            patch.setattr(PageBuffer, "_fetch", damaged)
            threads_before = threading.active_count()
            with pytest.raises(MasterCorrupt, match="damaged"):
                joined(master, stream_of(zipf(20_000, 9000))[1], algorithm="adaptive", memory="500kB", threads=2)
            assert threading.active_count() == threads_before


@pytest.mark.parametrize("taken", [1, 3, 10])
def test_stopping_early_ends_both_threads(taken, two_threads):
    with built(table_of(range(9000))) as master:
        threads_before = threading.active_count()
        join = ss.Join(master, on="id", algorithm="adaptive", memory="500kB", threads=2)
        output = join(iter(stream_of(zipf(60_000, 9000))[1]))
        for _ in range(taken):
            next(output)
        output.close()
        assert threading.active_count() == threads_before


def test_ordered_output_is_made_by_one_thread(two_threads):
    keys = zipf(6000, 4000)
    with built(table_of(range(0, 4000, 2))) as master:
        _, found = joined(
            master,
            stream_of(keys)[1],
            algorithm="adaptive",
            memory="600kB",
            how="left",
            ordered=True,
            threads=2,
        )
    assert [n for batch in found for n in batch["n"].to_pylist()] == list(range(6000))
    assert two_threads <= {"MainThread"}


# ------------------------------------------------------------------------------------------------------------ the cache


@pytest.mark.parametrize("threads", [1, 2])
def test_a_master_that_fits_is_read_once_and_then_nobody_waits(threads, two_threads):
    table, keys = table_of(range(2000)), zipf(12_000, 2400)
    short = check(table, keys[:6000], memory="1MB", threads=threads)
    long = check(table, keys, memory="1MB", threads=threads)
    assert 0 < long["bytes_read"] < 1.5 * short["bytes_read"] < 8 * table.nbytes
    assert (short["steps"], long["steps"]) == (0, 0)
    assert long["wait_tuples_max"] == short["wait_tuples_max"] < 6000


def test_absent_keys_that_wait_while_a_master_that_fits_is_read_put_nothing_out():
    """What lies in a complete cache must stay there: who is not found is taken to be absent."""
    table = pa.table({"id": range(0, 500, 10)})
    stream, batches = stream_of([(number * 7919) % 501 for number in range(5000)], batch_rows=1000)
    for items in ([*batches[:1], None, *batches[1:]], batches):
        for threads in (1, 2):
            with built(table) as master:
                _, found = joined(master, items, algorithm="adaptive", threads=threads, how="left_semi")
            same_multiset(found, reference_join(stream, table, "id", "left_semi"))


def test_a_master_with_a_key_that_fills_pages_is_not_taken_to_lie_in_the_cache():
    report = check(table_of([*range(100), *[100] * 200, *range(101, 200)]), [100, 7, 150, 300, 100] * 40, memory="1MB")
    assert report["steps"] > 0


def test_a_master_whose_keys_may_each_have_more_rows_than_pairs_is_answered_in_full():
    """Rows of no width: hundreds of them fit a tile, and more than the list of pairs takes."""
    table = pa.table({"id": pa.array([7] * 300 + list(range(100, 2000)), pa.int64())})
    check(table, [7, 150, 8, 9999] * 50, memory="400kB", threads=1)


def test_hot_keys_are_answered_without_a_read_also_those_of_the_first_bin():
    """The bins that are served first must find room in the cache, although bins filled all of it."""
    keys = np.where(np.arange(40_000) % 4 != 0, np.arange(40_000) % 40, np.arange(40_000) * 7919 % 18_000)
    evenly = np.arange(40_000) * 7919 % 18_000
    read = [check(table_of(range(18_000)), asked, threads=1, memory="1MB")["bytes_read"] for asked in (keys, evenly)]
    assert read[0] < read[1]


def test_absent_keys_that_come_again_and_again_are_known_too():
    often = np.where(np.arange(30_000) % 10 != 0, 1 + 2 * (np.arange(30_000) % 30), np.arange(30_000) * 7919 % 16_000)
    table = table_of([number * 2 for number in range(8000)])
    report = check(table, often, threads=1)
    assert report["unmatched"] > 25_000
    evenly = check(table, np.arange(30_000) * 7919 % 16_000, threads=1)
    assert report["bytes_read"] < 0.5 * evenly["bytes_read"]


def test_the_cache_follows_a_stream_that_changes_its_favourites():
    keys = np.concatenate([zipf(12_000, 10_000, seed, shift=3000 * seed) for seed in range(4)])
    changing = check(table_of(range(10_000)), keys, threads=1, memory="400kB")
    steady = check(table_of(range(10_000)), zipf(48_000, 10_000), threads=1, memory="400kB")
    assert changing["bytes_read"] < 3 * steady["bytes_read"]


def test_waits_count_the_tuples_that_were_answered_meanwhile():
    """Who waits for a page waits while the cache answers others, and the report says so."""
    hot, rare = ([pa.record_batch({"id": pa.array(keys, pa.int64())})] for keys in (range(100), [1999]))
    with built(table_of(range(2000))) as master:
        join, _ = joined(master, [*hot, None, *rare, *hot * 10], algorithm="adaptive", memory="150kB", threads=1)
        assert join.report()["steps"] == 2
        assert join.report()["wait_tuples_max"] == 1001


# -------------------------------------------------------------------------------------------------- budgets and keys


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("wide", [0, 900, 4000])
def test_the_smallest_budget_holds_the_table_of_keys_however_wide_stream_rows_are(wide, threads):
    with built({"id": range(10_000)}) as master:
        batch = pa.record_batch({"id": pa.array(range(0, 20_000, 400), pa.int64()), "note": ["w" * wide] * 50})

        def attempt(memory):
            return joined(master, [batch], algorithm="adaptive", memory=memory, threads=threads)[1]

        found, memory = enlarged(attempt, 1)
        assert len(sorted_rows(found)) == 25
        for more in (1000, 10_000, 100_000):
            assert len(sorted_rows(attempt(memory + more))) == 25


@pytest.mark.parametrize("first", [1 << 60, -(1 << 62), (1 << 63) - 5000])
def test_keys_far_from_zero_that_count_up(first):
    """Identifiers made of a time and a counter: hundreds of them are one floating-point number."""
    table = table_of([first + 2 * number for number in range(2400)])
    for memory in ("150kB", "1MB"):
        check(table, [first + (number * 7919) % 4990 for number in range(6000)], memory=memory, threads=1)


def test_one_key_with_thousands_of_rows():
    table = table_of([5] * 3000 + list(range(10, 3000)))
    keys = [5 if number % 50 == 0 else number * 7919 % 3100 for number in range(600)]
    for threads in (1, 2):
        check(table, keys, threads=threads, memory="400kB", batch_rows=50)


def test_a_table_full_of_one_bin_makes_way():
    with contextlib.suppress(BudgetError):
        check(table_of(range(2000)), [0, 1, 2] * 4000, threads=1, memory="120kB")
    check(table_of(range(2000)), [0, 1, 2] * 4000, threads=1, memory="150kB")


def test_the_report_says_what_was_decided():
    said = check(table_of(range(20_000)), zipf(20_000, 20_000))["decisions"]
    assert said[0].startswith("the cache holds ")
    assert any("waits" in line for line in said)
    small = check(table_of(range(300)), zipf(20_000, 300), memory="4MB")["decisions"]
    assert small == ["the whole master fits: it was read once, and 300 keys answer every tuple at once"]
    with built(table_of(range(300)), layout="heap") as master:
        join, _found = joined(master, stream_of([1, 2])[1], algorithm="adaptive")
    assert join.report()["decisions"] == ["the master's rows are not in word order, so HYBRIDJOIN does the work"]
