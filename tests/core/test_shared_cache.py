"""Trays: what the disk phase keeps comes to the stream phase whole, once, and only when it is asked for."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream.algorithms.shared_cache import SharedCache
from semistream.budget import Slab
from semistream.records import RowCodec
from semistream.stream_side import Block
from tests.core.test_hot_cache import TEXTS, answered, buffered, new_cache
from tests.parts.made import ints

ASKED = RowCodec(pa.schema([pa.field("k", pa.int64())]))


def shared(slab, threads=2):
    """A shared cache in a slab, with trays for a few rows."""
    bytes_of = {"hot cache": 1 << 14, "first tray": 4096, "second tray": 4096}
    parts = SimpleNamespace(
        threads=threads,
        reader=SimpleNamespace(brings_all=lambda _word: True),
        hot_cache=lambda eviction, per_row, part="hot cache": new_cache(
            slab, given_bytes=bytes_of[part], matches=64, eviction=eviction, words_per_row=per_row, part=part
        ),
    )
    return SharedCache(parts, 1.0, 1.25)


def come_by(cache):
    """The stream phase answers an empty batch."""
    batch = pa.record_batch([pa.array([], pa.int64())], names=["k"])
    for _ in cache.answer(Block.of(ints(), ASKED.encode(batch), ints(), 0)):
        pass


def offer(cache, slab, words):
    rows = buffered(slab, words)
    cache.keeper.offer(rows, np.full(rows.words.size, 5))


@given(st.lists(st.integers(0, 9), max_size=20), st.sampled_from([1, 3, 64]))
def test_a_cache_tells_its_contents_whole_words_at_a_time(kept, matches):
    kept, slab = sorted(kept), Slab(1 << 17)
    cache = new_cache(slab, matches=matches)
    cache.keep(buffered(slab, kept), np.array(kept, np.int64) + 3)
    told = []
    for rows, hits in cache.contents():
        words = rows.words.tolist()
        assert hits.tolist() == [word + 3 for word in words]
        assert [word for i, word in enumerate(words) if not i or words[i - 1] != word] == sorted(set(words))
        told += zip(words, cache.memory.b1[rows.row_at].tolist(), strict=True)
    some = [(word, number) for number, word in enumerate(kept) if kept.count(word) <= matches]
    assert sorted(told) == sorted(some)


def test_a_cleared_cache_is_as_new():
    slab = Slab(1 << 17)
    cache = new_cache(slab, TEXTS, row_bytes=8.0)
    cache.keep_absent(7, 2)
    before = cache.free
    cache.clear()
    assert (cache.words, cache.free) == (0, before)
    assert answered(cache, [7]) == ([], [], [0])
    assert cache.keep_absent(7, 2)


def test_what_is_kept_answers_after_it_has_been_handed_over():
    slab = Slab(1 << 18)
    cache = shared(slab)
    offer(cache, slab, [3, 3, 5])
    cache.keeper.finish(8, 2)  # nobody has seen a row of it
    come_by(cache)
    assert answered(cache.cache, [3, 5, 8])[1] == []
    cache.hand_over()
    assert answered(cache.cache, [3, 5, 8])[1] == [], "the stream phase has not been there yet"
    come_by(cache)
    pairs, gone, _ = answered(cache.cache, [3, 5, 8])
    assert (sorted(pairs), gone) == ([(0, 0), (0, 1), (1, 2)], [0, 1, 2])


def test_a_tray_stays_on_the_counter_until_it_is_taken_and_the_other_is_filled_meanwhile():
    slab = Slab(1 << 18)
    cache = shared(slab)
    for word in (1, 2, 3):
        offer(cache, slab, [word])
        cache.hand_over()
    come_by(cache)
    assert answered(cache.cache, [1, 2, 3])[1] == [0]
    cache.hand_over()
    come_by(cache)
    assert answered(cache.cache, [1, 2, 3])[1] == [0, 1, 2]
    offer(cache, slab, [4])
    cache.hand_over()
    come_by(cache)
    assert answered(cache.cache, [1, 2, 3, 4])[1] == [0, 1, 2, 3]


@pytest.mark.parametrize("again", [False, True])
def test_a_full_tray_takes_no_more_and_spoils_nothing(again):
    slab = Slab(1 << 18)
    cache = shared(slab)
    words = list(range(200))
    offer(cache, slab, words)
    if again:
        offer(cache, slab, words)
    cache.hand_over()
    come_by(cache)
    pairs, gone, _ = answered(cache.cache, words)
    assert 0 < len(gone) < 200
    assert pairs == [(place, place) for place in gone]


def test_one_thread_alone_fills_the_cache_itself():
    slab = Slab(1 << 18)
    cache = shared(slab, threads=1)
    offer(cache, slab, [3])
    assert answered(cache.cache, [3])[1] == [0]
    cache.hand_over()
    come_by(cache)
    assert answered(cache.cache, [3])[1] == [0]
    assert "first tray" not in slab.bytes_by_part
