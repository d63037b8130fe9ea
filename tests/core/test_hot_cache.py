"""The hot cache in its share of the budget: what is admitted, evicted, refused, and what a keeper is shown."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream.algorithms.admission import Admission, worth_keeping
from semistream.algorithms.gathering import Gathering
from semistream.budget import Slab
from semistream.hot_cache import AnyVictim, ColdestVictim, HotCache, Permanent, row_cost
from semistream.parts.probing import Picked
from semistream.protocols import Load
from semistream.records import RowCodec
from semistream.stream_side import Block
from tests.core.waiting import CLOSED, Bench
from tests.parts.made import ints, pages_of, plain_rows

NUMBERS = RowCodec(pa.schema([pa.field("m", pa.int64(), nullable=False)]))
TEXTS = RowCodec(pa.schema([pa.field("m", pa.string(), nullable=False)]))
WORDS = st.lists(st.integers(0, 9), max_size=20)


def new_cache(slab, codec=NUMBERS, given_bytes=1 << 14, matches=4, eviction=None, row_bytes=None, **options):
    row_bytes = codec.width if row_bytes is None else row_bytes
    return HotCache(slab, codec, row_bytes, given_bytes, matches, eviction or Permanent(), **options)


def buffered(slab, words):
    """One page of rows in the slab; the first byte of a row is its number."""
    if not words:
        return Picked(ints(), ints(), ints())
    memory, page_at, _ = pages_of(plain_rows(words), 1 << 15)
    at = slab.place("disk buffer", memory.b1.size)
    slab.memory.b1[at : at + memory.b1.size] = memory.b1
    base = at + int(page_at[0])
    first = base + 32 + 8 * len(words)
    return Picked(ints(*words), first + 8 * np.arange(len(words)), np.full(len(words), base))


def answered(cache, words):
    """Numbers of the rows that answer each tuple, tuples that are gone, tuples that are left."""
    batch = pa.record_batch({"k": pa.array(words, pa.int64())})
    block = Block.of(ints(*words), RowCodec(batch.schema).encode(batch), np.arange(len(words)), 0)
    pairs, gone, finds = [], [], cache.answer(block)
    while True:
        try:
            found = next(finds)
        except StopIteration as end:
            return pairs, gone, end.value.picks.tolist()
        pairs += zip(found.picks.tolist(), cache.memory.b1[found.row_at].tolist(), strict=True)
        gone += found.gone.tolist()


@pytest.mark.parametrize("given_bytes", [4096, 5000, 1 << 14, 1 << 17])
@pytest.mark.parametrize(("codec", "row_bytes"), [(NUMBERS, 8.0), (TEXTS, 8.0), (TEXTS, 300.0), (TEXTS, 1e6)])
def test_the_share_is_kept_and_used(codec, row_bytes, given_bytes):
    slab = Slab(1 << 18)
    cache = new_cache(slab, codec, given_bytes, 4, row_bytes=row_bytes, words_per_row=1.25)
    assert slab.bytes_by_part["hot cache"] <= given_bytes
    assert cache.slots >= (given_bytes - 2048) // row_cost(codec, row_bytes, 1.25)
    assert (cache.slots == 0) == (row_bytes == 1e6)


@given(kept=WORDS, asked=WORDS, matches=st.integers(1, 5))
def test_kept_words_answer_and_the_others_come_back(kept, asked, matches):
    kept, slab = sorted(kept), Slab(1 << 17)
    cache = new_cache(slab, matches=matches)
    assert cache.keep(buffered(slab, kept), np.full(len(kept), 3)) == 0
    pairs, gone, left = answered(cache, asked)
    assert sorted(pairs) == sorted(
        (n, row) for n, word in enumerate(asked) for row, other in enumerate(kept) if word == other
    )
    assert gone == [n for n, word in enumerate(asked) if word in kept]
    assert left == [n for n, word in enumerate(asked) if word not in kept]


def test_a_full_cache_refuses_evicts_anyone_or_evicts_the_coldest():
    for eviction, refused in ((Permanent(), True), (AnyVictim(), False), (ColdestVictim(), False)):
        slab = Slab(1 << 18)
        cache = new_cache(slab, given_bytes=8192, eviction=eviction)
        first = list(range(cache.slots))
        cache.keep(buffered(slab, first), np.where(np.arange(cache.slots) % 2, 100, 1))
        new = list(range(1000, 1005))
        assert cache.keep(buffered(slab, new), np.full(5, 9)) == (5 if refused else 0)
        assert answered(cache, new)[2] == ([0, 1, 2, 3, 4] if refused else [])
        still = answered(cache, first)[1]
        assert len(still) == cache.words - (0 if refused else 5)
        if isinstance(eviction, ColdestVictim):
            assert set(first[1::2]) <= set(still), "a hot word left, and cold ones stay"


def test_a_word_larger_than_an_eighth_of_the_cache_is_refused_and_the_rest_is_kept():
    slab = Slab(1 << 18)
    cache = new_cache(slab, given_bytes=8192, eviction=AnyVictim())
    cache.keep(buffered(slab, list(range(cache.slots))), np.ones(cache.slots, np.int64))
    wide = cache.slots // 8 + 1
    assert cache.keep(buffered(slab, [-2] + [-1] * wide + [5000]), np.full(wide + 2, 9)) == wide
    assert answered(cache, [-2, -1, 5000])[1:] == ([0, 2], [1])


def test_absent_words_match_nothing_and_are_gone():
    slab = Slab(1 << 17)
    cache = new_cache(slab)
    assert cache.keep_absent(7, 2)
    assert not cache.keep_absent(7, 2)
    assert answered(cache, [7, 8, 7]) == ([], [0, 2], [1])


def test_a_collected_word_with_too_many_rows_is_not_kept():
    slab = Slab(1 << 17)
    cache = new_cache(slab)
    for word, most in ((1, 3.0), (2, 2.5)):
        assert cache.begin(word, 5)
        cache.collect(buffered(slab, [word] * 3))
        assert answered(cache, [word])[1] == []
        assert cache.finish(word, most) == (most >= 3)
    assert answered(cache, [1, 2])[1] == [0]


# ------------------------------------------------------------------------------------------------------- what is shown


class Seen:
    """A keeper that writes down what it is shown."""

    def __init__(self, least=1.0):
        self.least, self.offered, self.collected, self.finished, self.passed = least, [], [], [], []

    def passes(self, rows):
        self.passed += rows.words.tolist()

    def offer(self, rows, waiting):
        self.offered += zip(rows.words.tolist(), waiting.tolist(), strict=True)

    def collect(self, word, rows, waiting):
        assert set(rows.words.tolist()) <= {word}
        self.collected.append((word, rows.words.size, waiting))

    def finish(self, word, waiting):
        self.finished.append((word, waiting))


@pytest.mark.parametrize("verb", ["claim", "probe"])
@given(
    waiting=WORDS,
    rows=st.lists(st.integers(0, 9), max_size=40),
    matches=st.sampled_from([2, 3, 64]),
    least=st.sampled_from([0.0, 1.0, 1.5]),
)
def test_a_keeper_is_shown_whole_words_on_which_enough_tuples_wait(verb, waiting, rows, matches, least):
    keeper, rows = Seen(least), sorted(rows)
    bench = Bench(matches=matches, keeper=keeper)
    bench.admit(waiting)
    bench.run(getattr(bench.pending, verb)(bench.load(rows)))
    wanted = [
        (word, waiting.count(word))
        for word in rows
        if waiting.count(word) and waiting.count(word) >= least * rows.count(word)
    ]
    if matches == 64:
        assert keeper.offered == wanted
    shown = [word for word, _ in keeper.offered]
    assert set(keeper.offered) <= set(wanted)
    assert all(shown.count(word) == rows.count(word) for word in shown), "half a word was shown"


def test_words_that_go_on_outside_the_load_are_not_offered():
    keeper = Seen()
    bench = Bench(matches=64, keeper=keeper)
    bench.admit([1, 2, 3])
    bench.run(bench.pending.claim(bench.load([1, 2, 3], open_words=ints(1, 1, 1, 3))))
    assert keeper.offered == [(2, 1)]
    assert keeper.passed == [1, 2, 3]


def test_a_keeper_for_whom_nothing_is_worth_it_at_first_sight_sees_what_passes():
    keeper = Seen(least=np.inf)
    bench = Bench(matches=64, keeper=keeper)
    bench.admit([1, 2, 2])
    bench.run(bench.pending.probe(bench.load([1, 2, 2, 2], open_words=ints(1, 1, 0, 0))))
    assert keeper.passed == [1, 2, 2, 2]
    assert keeper.offered == []


def test_a_looked_up_word_is_shown_load_by_load_and_finished_once():
    keeper = Seen()
    bench = Bench(matches=2, keeper=keeper)
    bench.admit([5, 5, 6])
    for rows in ([5, 5, 5, 7], [5, 6]):
        bench.run(bench.pending.probe_word(bench.load(rows, open_words=CLOSED), 5))
    bench.run(bench.pending.leave_word(5))
    bench.run(bench.pending.leave_word(5))
    assert sum(rows for _, rows, _ in keeper.collected) == 4
    assert {(word, waiting) for word, _, waiting in keeper.collected} == {(5, 2)}
    assert keeper.finished == [(5, 2)]


# ------------------------------------------------------------------------------------------------------- what is worth it


def test_a_row_must_have_kept_more_memory_waiting_than_it_takes():
    assert worth_keeping(120, 204) == 2
    assert worth_keeping(960, 204) == 10
    assert worth_keeping(10, 204) == 1


def test_a_collected_word_is_kept_if_enough_tuples_wait_for_all_its_rows():
    for waiting, kept in ((5, False), (6, True)):
        slab = Slab(1 << 17)
        cache = new_cache(slab)
        admission = Admission(cache, 2.0)
        for _ in range(3):
            admission.collect(4, buffered(slab, [4]), waiting)
        admission.finish(4, waiting)
        assert (answered(cache, [4])[1] == [0]) == kept
        assert cache.words == kept


def test_a_word_without_rows_is_kept_as_absent_once_two_wait_for_it():
    slab = Slab(1 << 17)
    cache = new_cache(slab)
    admission = Admission(cache, 9.0)
    admission.finish(1, 1)
    admission.collect(2, buffered(slab, []), 2)
    admission.finish(2, 2)
    admission.collect(3, buffered(slab, [3]), 2)
    admission.finish(3, 2)
    assert answered(cache, [1, 2, 3])[1:] == ([1], [0, 2])


# ------------------------------------------------------------------------------------------------------- strewn rows


class Pages:
    """A disk buffer over pages that already lie in the slab, one a load."""

    loads, room_bytes = 0, 1 << 20

    def __init__(self, slab, pages):
        self._at = [int(buffered(slab, words).heap_at[0]) for words in pages]

    def stop_of(self, first):
        return first + 1

    def partition(self, first, stop):
        return first, first + 1

    def read(self, first, stop):
        return Load(ints(self._at[first]), CLOSED)


def scanned(slab, pages, eviction=None, given_bytes=1 << 14):
    """A cache, and a scan that gathers for it."""
    cache = new_cache(slab, given_bytes=given_bytes, matches=64, eviction=eviction, words_per_row=1.5)
    return cache, Gathering(Admission(cache, 1.0), Pages(slab, pages))


def offered(scan, word, waiting):
    scan.offer(Picked(ints(word), ints(0), ints(0)), ints(waiting))


@pytest.mark.parametrize("begin", [0, 1, 2])
def test_strewn_rows_answer_after_a_whole_round_wherever_it_began(begin):
    slab = Slab(1 << 18)
    cache, scan = scanned(slab, [[1, 2, 1], [3, 3], [2, 1, 4]])
    for step in range(begin, begin + 3):
        scan.read(step % 3, step % 3 + 1)
        if step == begin:
            offered(scan, 1, 5)
        assert answered(cache, [1])[1] == []
    scan.read(begin, begin + 1)
    pairs, gone, _ = answered(cache, [1])
    assert sorted(row for _, row in pairs) == [0, 1, 2]
    assert gone == [0]


def test_a_word_that_found_no_room_does_not_begin_again_before_its_round_ends():
    """Begun again half way, it would answer when the first round ends, with half its rows."""
    slab = Slab(1 << 18)
    cache, scan = scanned(slab, [[1], [9] * 8, [1], [1]], given_bytes=8192)
    filler = list(range(1000, 1000 + cache.slots))
    cache.keep(buffered(slab, filler), np.full(len(filler), 1))
    cache.forget(np.flatnonzero(cache.kept.record_word == 1000)[:1])  # one row is free, but not for long
    scan.read(0, 1)
    offered(scan, 1, 5)
    cache.keep(buffered(slab, [2000]), ints(1))
    scan.read(1, 2)
    scan.read(2, 3)
    assert cache.collected(1) == -1, "the test wants a word without room"
    cache.forget(np.flatnonzero(cache.kept.records[:, 1] == 1)[:5])
    offered(scan, 1, 5)
    for first in (3, 0, 1, 2, 3):
        scan.read(first, first + 1)
        pairs, gone, _ = answered(cache, [1])
        assert len(pairs) == (3 if gone else 0), "half a word answers"


def test_how_many_rows_words_have_is_learnt():
    slab = Slab(1 << 18)
    _, scan = scanned(slab, [[1, 1, 1, 2, 2, 2]])
    before = scan.least
    scan.read(0, 1)
    offered(scan, 1, 2)
    scan.read(0, 1)
    assert scan.least > before
