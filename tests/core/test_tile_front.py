"""The adaptive join's hot cache in its tiles: what it answers, takes in, puts out, and that it is charged."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream import tile_front
from semistream.budget import Slab
from semistream.parts import tiles
from semistream.protocols import Load, Order
from semistream.records import RowCodec
from semistream.stream_side import Block
from semistream.tile_front import Lookups, TileFront
from tests.core.waiting import CLOSED
from tests.parts.made import ints, pages_of, plain_rows

CODEC = RowCodec(pa.schema([pa.field("m", pa.int64(), nullable=False)]))
WORDS = st.lists(st.integers(0, 9), max_size=30)
TILE = 128  # five keys of one row


class Bench:
    """A cache over a pool of tiles, and a disk buffer; the first byte of a row is its number."""

    def __init__(self, tile_count=8, most=None, keys=64, chosen=4, pairs=8):
        slab = self.slab = Slab(1 << 18)
        self.pool = tiles.Tiles(slab.take("stream table", tile_count, np.int32), slab.take("stream table", 5, np.int64))
        tiles.reset(self.pool, slab.place("stream table", tile_count * TILE), TILE)
        most = tile_count if most is None else most
        self.front = TileFront(slab, self.pool, CODEC, keys, most, chosen, pairs, threading.Lock())
        self.room = Lookups.of(slab, pairs, pairs)
        self.buffer_at = slab.place("disk buffer", 1 << 16)

    def load(self, words, per_page=8):
        """Rows with these words in the disk buffer."""
        memory, page_at, starts = pages_of(plain_rows(words), 32 + 16 * per_page)
        self.slab.memory.b1[self.buffer_at : self.buffer_at + memory.b1.size] = memory.b1
        first_words = ints(*(words[at] for at in starts[:-1]))
        continues = np.array([at > 0 and words[at - 1] == words[at] for at in starts[:-1]], np.uint8)
        return Load(page_at + self.buffer_at, CLOSED), Order(first_words, continues, page_at)

    def take_in(self, words, asked, least=1, hits=0.0, now=0):
        """Take in what was asked for, a dictionary of words, or a number for all of them."""
        counted = [asked.get(word, 0) if isinstance(asked, dict) else asked for word in words]
        return self.front.take_in(
            self.load(words, max(8, len(words)))[0], np.array(counted, np.int32), least, hits, now
        )

    def ask(self, words, picks=None):
        """(tuple, row), who left, who is left."""
        batch = pa.record_batch({"k": pa.array(words, pa.int64())})
        picks = np.arange(len(words)) if picks is None else ints(*picks)
        answers, pairs, gone = (
            self.front.answer(Block.of(ints(*words), CODEC.encode(batch), picks, 0), self.room),
            [],
            [],
        )
        while True:
            try:
                found = next(answers)
            except StopIteration as end:
                return pairs, gone, end.value.picks.tolist()
            pairs += zip(found.picks.tolist(), self.slab.memory.b1[found.row_at].tolist(), strict=True)
            gone += found.gone.tolist()


@given(rows=WORDS, asked=WORDS, stream=WORDS, least=st.integers(1, 3), chosen=st.integers(1, 4))
def test_keys_asked_for_often_answer_with_all_their_rows_and_the_others_wait(rows, asked, stream, least, chosen):
    bench, rows = Bench(tile_count=40, chosen=chosen, pairs=30), sorted(rows)
    counts = {word: asked.count(word) for word in rows}
    hot = {word for word in counts if counts[word] >= least}
    fit = {word for word in hot if 16 + 8 * rows.count(word) <= TILE}
    assert (bench.take_in(rows, counts, least) if rows else 0) == len(hot)
    pairs, gone, left = bench.ask(stream)
    assert sorted(pairs) == [
        (n, row) for n, word in enumerate(stream) for row in range(len(rows)) if rows[row] == word and word in fit
    ]
    assert gone == [n for n, word in enumerate(stream) if word in fit]
    assert left == [n for n, word in enumerate(stream) if word not in fit]


def test_only_the_block_s_picks_are_answered():
    bench = Bench()
    bench.take_in([1, 2], 1)
    assert bench.ask([1, 2, 3, 1, 3], picks=[0, 2, 4]) == ([(0, 0)], [0], [2, 4])


def test_a_block_longer_than_the_room_for_answers_is_answered_in_parts():
    bench = Bench(pairs=3)
    bench.take_in([1, 1, 2, 5], 1)
    stream = [1, 9, 2, 1, 5, 8, 8, 8, 8, 8, 1, 2]
    pairs, gone, left = bench.ask(stream)
    assert (gone, left) == ([0, 2, 3, 4, 10, 11], [1, 5, 6, 7, 8, 9])
    assert [n for n, _ in pairs] == [0, 0, 2, 3, 3, 4, 10, 10, 11]


def test_a_key_with_more_rows_than_the_room_for_pairs_waits_like_any_other():
    """Kept, it would never be answered, and the join would look for it for ever."""
    bench = Bench(pairs=3)
    assert bench.take_in([1] * 4 + [2] * 3, 9) == 2
    assert bench.ask([1, 2])[1:] == ([1], [0])


def test_absent_keys_are_gone_without_a_row_and_a_complete_cache_knows_them_all():
    bench = Bench(chosen=2)
    bench.take_in([1], 1)
    bench.front.take_in_absent(ints(3, 4, 5, 6, 7), 0.0, 0)
    assert bench.front.keys == 6
    assert bench.ask([3, 1, 8, 7]) == ([(1, 0)], [0, 1, 3], [2])
    bench.front.complete = True
    pairs, gone, left = bench.ask([3, 1, 8, 9])
    assert (pairs, sorted(gone), left) == ([(1, 0)], [0, 1, 2, 3], [])


def test_a_cache_of_nothing_may_be_complete():
    bench = Bench()
    assert bench.ask([1, 2]) == ([], [], [0, 1])
    bench.front.complete = True
    assert bench.ask([1, 2]) == ([], [0, 1], [])


def keys_for(tile_count, first=0):
    """As many keys of one row as fill so many tiles."""
    return list(range(first, first + 5 * tile_count))


def test_a_full_cache_gives_way_to_new_keys_unless_the_oldest_tiles_are_all_worth_their_room():
    for hits, stays in ((0.0, True), (1e9, False)):
        bench = Bench(tile_count=6, chosen=30)
        bench.take_in(keys_for(6), 1)
        assert bench.front.keys == 30
        bench.take_in(keys_for(2, 100), 1, hits=hits, now=5)
        assert len(bench.ask(list(range(30)))[1]) == (30 if stays else 20)
        assert len(bench.ask(keys_for(2, 100))[1]) == (0 if stays else 10)
        assert bench.front.keys == 30


def test_a_key_stays_if_it_was_hit_as_often_as_its_bytes_ask_for():
    bench = Bench(tile_count=6)
    bench.take_in(keys_for(1), 1, now=100)
    per_hit = 1 / (24 + tile_front.KEY_BYTES)
    bench.ask([0] * 20 + [1] * 19)
    bench.front.review(1.0, 2 * per_hit, 110)  # ten tuples later
    assert bench.ask([0, 1, 2, 3, 4])[1] == [0]
    assert bench.front.put_out == 4
    bench.front.review(1.0, 2 * per_hit, 111)
    assert bench.front.keys == 0
    assert int(bench.pool.state[tiles.FREE]) == 6


def test_a_review_looks_at_its_share_oldest_first():
    bench = Bench(tile_count=8, chosen=64)
    bench.take_in(keys_for(8), 1)
    bench.front.review(0.25, 1e9, 10)
    assert bench.ask(keys_for(8))[2] == keys_for(2)
    assert int(bench.pool.state[tiles.FREE]) == 2


def test_nothing_is_taken_in_where_others_hold_all_tiles():
    bench = Bench(tile_count=3)
    while tiles.take(bench.pool) >= 0:
        continue
    assert bench.take_in([1, 2], 1) == 2
    bench.front.take_in_absent(ints(3), 0.0, 0)
    assert bench.front.keys == 0
    assert bench.ask([1, 3])[2] == [0, 1]


@pytest.mark.parametrize("per_page", [1, 2, 3, 8])
def test_all_keys_of_one_page_can_be_asked_for(per_page):
    bench, words = Bench(tile_count=20), [1, 2, 2, 3, 4, 4, 4]
    load, order = bench.load(words, per_page)
    asked = np.full(len(words), 7, np.int32)
    bench.front.ask_all(load, 0, order, asked)
    pages = np.arange(len(words)) // per_page
    whole = {word for word in words if len({pages[n] for n in range(len(words)) if words[n] == word}) == 1}
    assert bench.front.take_in(load, asked, 1, 0.0, 0) == len(whole)
    assert bench.front.keys == len(whole)


@pytest.mark.parametrize(("keys", "chosen", "tile_count"), [(1, 1, 8), (1000, 64, 8), (77, 8, 300)])
def test_the_table_takes_what_was_said(keys, chosen, tile_count):
    slab = Slab(1 << 20)
    pool = tiles.Tiles(np.zeros(tile_count, np.int32), np.zeros(5, np.int64))
    tiles.reset(pool, slab.place("stream table", tile_count * TILE), TILE)
    TileFront(slab, pool, CODEC, keys, 4, chosen, 8, threading.Lock())
    assert slab.bytes_by_part["hot cache"] <= tile_front.table_bytes(keys, tile_count, TILE, chosen)
    Lookups.of(slab, 100, 200)
    assert slab.bytes_by_part["lookups"] <= Lookups.bytes_of(100, 200)


def test_the_whole_master_is_read_in_loads_as_long_as_the_buffer_allows():
    class Buffer:
        def stop_of(self, first):
            return min(first + 3, 7)

    assert list(tile_front.all_of(7, Buffer())) == [(0, 3), (3, 6), (6, 7)]
    assert list(tile_front.all_of(0, Buffer())) == []
