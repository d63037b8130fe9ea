"""Bins over a real master: who is served, by which loads, and that every tuple meets all its rows once."""

from __future__ import annotations

import contextlib
import itertools
import random
import threading
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream.binned import Binned, Desk, bytes_of_bins
from semistream.budget import Slab
from semistream.parts import bins, tiles
from semistream.records import RowCodec
from semistream.stream_rows import StreamRows
from semistream.stream_side import Block
from tests.core.small import built
from tests.parts.made import INT64_MAX, INT64_MIN, ints

TEXT = pa.schema([("id", pa.int64()), ("number", pa.int64()), ("text", pa.string())])
PLAIN = pa.schema(list(TEXT)[:2])
WIDE = 900  # bytes of a master row: four fit a page of 4 KiB


class Bench:
    """Bins over a reader, with one desk, and everything that was found; a tuple's number is its position."""

    def __init__(self, master, bin_count=3, tile_count=12, tuples=8, buffer_pages=2, schema=TEXT, records=4):
        self.schema, self.reader, self.master = schema, master.reader(), master
        slab = self.slab = Slab(1 << 18)
        self.reader.attach(slab)
        codec = RowCodec(schema)
        tile_bytes = records * bins.record_bytes(codec.width, bool(codec.cells))
        self.pool = tiles.Tiles(slab.take("stream table", tile_count, np.int32), slab.take("stream table", 5, np.int64))
        tiles.reset(self.pool, slab.place("stream table", tile_count * tile_bytes), tile_bytes)
        before = sum(slab.bytes_by_part.values())
        rows, width = StreamRows(codec, 0.0), master.codec.width
        self.binned = Binned(slab, self.pool, rows, self.reader, width, bin_count, threading.Lock())
        assert sum(slab.bytes_by_part.values()) - before <= bytes_of_bins(bin_count, tile_count)
        buffer = self.reader.buffer(slab, "disk buffer", buffer_pages * 4096)
        self.desk = Desk.of(slab, buffer, tuples, buffer_pages * 512)
        self.binned.desks.append(self.desk)
        self.position, self.words = 0, []
        self.met, self.gone, self.asked, self.absent = Counter(), [], [], []

    def block(self, words, texts=None):
        """A batch of tuples with these words."""
        columns = [words, range(self.position, self.position + len(words)), texts or [""] * len(words)]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, self.schema, strict=False)]
        encoded = RowCodec(self.schema).encode(pa.record_batch(arrays, schema=self.schema))
        block = Block.of(ints(*words), encoded, np.arange(len(words)), self.position)
        self.position += len(words)
        self.words += words
        return block

    def admit(self, words, texts=None):
        """Let these tuples in; returns how many found room."""
        return self.binned.admit(self.block(words, texts))

    def take(self, finds):
        """Write down what was found."""
        for found in finds:
            numbers = (found.side.stamps >> 1).tolist()
            rows = self.master.codec.unpack(self.slab.memory, found.row_at, found.heap_at, ["row"])[0].to_pylist()
            self.met.update((numbers[pick], row) for pick, row in zip(found.picks.tolist(), rows, strict=True))
            self.gone += [numbers[pick] for pick in found.gone.tolist()]

    def served(self, load, asked, absent):
        """What the bins tell of a load."""
        words = [int(w) for at in load.page_at.tolist() for w in self.page_words(at)]
        self.asked.append(dict(zip(words, asked.tolist(), strict=True)))
        self.absent += absent.tolist()

    def page_words(self, at):
        rows = int(self.slab.memory.b4[(at >> 2) + 1])
        return self.slab.memory.b8[(at >> 3) + 4 : (at >> 3) + 4 + rows].view(np.int64)

    def step(self, share=1.0, most=None):
        """Serve what is chosen; returns the groups."""
        groups = self.binned.choose(share, self.desk.picks.size if most is None else most)
        for group in groups:
            self.take(self.binned.serve(self.desk, group, self.served))
        return [group.tolist() for group in groups]


@contextlib.contextmanager
def bench(keys, **options):
    """A bench over a master with these keys, four rows a page."""
    rows = pa.array(range(len(keys)), pa.int64())
    table = {"id": pa.array(keys, pa.int64()), "row": rows, "wide": ["x" * WIDE] * len(keys)}
    with built(table) as master:
        made = Bench(master, **options)
        yield made
        made.reader.close()


def right(keys, words):
    """All pairs of a tuple and a row."""
    return Counter((n, row) for n, word in enumerate(words) for row, key in enumerate(sorted(keys)) if key == word)


KEYS = st.lists(st.integers(0, 12) | st.sampled_from([INT64_MIN, INT64_MAX]), max_size=30)
ASKED = st.lists(st.integers(-1, 14) | st.sampled_from([INT64_MIN, INT64_MAX]), max_size=30)


@given(
    keys=KEYS,
    batches=st.lists(ASKED, min_size=1, max_size=3),
    bin_count=st.sampled_from([1, 3, 50]),
    tuples=st.sampled_from([1, 4, 64]),
    schema=st.sampled_from([PLAIN, TEXT]),
)
def test_every_tuple_meets_all_its_rows_once_and_leaves(keys, batches, bin_count, tuples, schema):
    keys = sorted(keys)
    with bench(keys, bin_count=bin_count, tuples=tuples, tile_count=100, schema=schema) as made:
        for words in batches:
            assert made.admit(words) == len(words)
            assert made.binned.waiting == len(words)
            made.step()
            assert made.binned.waiting == 0
            assert int(made.pool.state[tiles.FREE]) == 100
        assert made.met == right(keys, made.words)
        assert sorted(made.gone) == list(range(len(made.words)))
        for asked in made.asked:  # only of keys that lie in one page is it said how often they were asked for
            assert all(count <= made.words.count(word) for word, count in asked.items())
        assert set(made.absent) <= set(made.words) - set(keys)


def test_the_list_of_pairs_may_be_shorter_than_the_rows_of_a_key():
    with bench([1, 1, 1, 2], tuples=2) as made:
        made.admit([1, 2, 1, 3])
        made.step()
        assert made.met == right([1, 1, 1, 2], [1, 2, 1, 3])
        assert made.asked[-1] == {1: 1, 2: 0}, "two tuples at a time, oldest first"


def test_a_key_with_thousands_of_rows_fills_many_loads():
    keys = [1, *[5] * 1000, 9]
    with bench(keys, tuples=4, buffer_pages=3) as made:
        made.admit([5, 0, 9, 5, 6])
        made.step()
        assert made.met == right(keys, [5, 0, 9, 5, 6])
        assert sorted(made.gone) == [0, 1, 2, 3, 4]
        assert made.reader.loads >= 1000 // 12
        assert made.absent == [6]


def test_neighbouring_pages_are_read_together_and_far_ones_are_not_read():
    with bench(range(80), bin_count=20, buffer_pages=8, tuples=64) as made:
        made.reader.gap_bytes = 4096
        made.admit([0, 4, 12, 60])
        made.step()
        assert (made.reader.loads, made.reader.pages_read) == (2, 5)


def test_the_bins_that_have_waited_longest_all_waits_added_up_come_first_and_the_oldest_in_any_case():
    with bench(range(48), bin_count=12, tile_count=40) as made:
        made.admit([40])  # the oldest
        made.admit([0, 1, 2, 3, 0, 1, 2, 3])  # the longest wait
        made.admit([20, 21])
        assert made.step(share=0.8, most=1) == [[0], [10]]
        assert sorted(made.gone) == list(range(9))
        assert made.binned.oldest_position() == 9
        assert made.step(share=0.1, most=1) == [[5]]
        assert made.binned.oldest_position() == -1


def test_groups_are_neighbours_and_no_larger_than_need_be():
    with bench(range(48), bin_count=12, tile_count=40, tuples=4) as made:
        made.admit([0, 5, 9, 13, 17, 41, 45, 46, 47])
        groups = made.step()
        assert list(itertools.chain(*groups)) == [0, 1, 2, 3, 4, 10, 11]
        assert len(groups) >= 2
        assert made.met == right(range(48), made.words)


def test_whoever_finds_no_tile_stays_outside():
    with bench(range(12), bin_count=3, tile_count=2) as made:
        assert made.admit([0, 4, 8, 1]) == 2
        assert made.binned.waiting == 2
        made.step()
        assert made.admit([8, 1]) == 2
        made.step()
        assert sorted(made.gone) == [0, 1, 4, 5]


def test_tuples_too_wide_to_wait_are_answered_at_once():
    with bench([1, 1, 2, 3], tuples=2) as made:
        wide = "x" * (made.binned.widest_bytes + 1)
        block = made.block([3, 1, 2, 4, 0], [wide, wide, "small", wide, wide])
        made.take(made.binned.serve_at_once(made.desk, block, ints(0, 1, 3, 4), made.served))
        assert made.met == right([1, 1, 2, 3], [3, 1, 9, 4, 0])
        assert sorted(made.gone) == [0, 1, 3, 4]
        assert made.binned.waiting == 0


def test_as_wide_as_a_tile_allows_is_not_too_wide():
    with bench([1], tile_count=3) as made:
        made.admit([1, 1, 1], ["x" * made.binned.widest_bytes] * 3)
        made.step()
        assert sorted(made.gone) == [0, 1, 2]


def test_waits_are_counted_from_arrival_to_service():
    with bench(range(12)) as made:
        made.admit([0])
        made.admit([5] * 6)
        made.admit([9])
        made.step()
        assert made.binned.wait_max == 8
        assert made.binned.wait_histogram.sum() == 8
        assert made.binned.period == pytest.approx(8)


@pytest.mark.parametrize("keys", [[], [7]])
def test_a_master_of_one_page_or_none(keys):
    with bench(keys) as made:
        made.admit([INT64_MIN, 6, 7, 8, INT64_MAX])
        made.step()
        assert made.met == right(keys, made.words)
        assert sorted(made.gone) == [0, 1, 2, 3, 4]


def test_two_threads_serve_different_bins_at_the_same_time():
    """Many rounds, as what two threads do to each other shows rarely."""
    dice = random.Random(1)
    keys = sorted(dice.randrange(60) for _ in range(90))
    with bench(keys, bin_count=20, tile_count=60, tuples=4) as made:
        other = Desk.of(made.slab, made.reader.buffer(made.slab, "disk buffer", 2 * 4096), 4, 1024)
        made.binned.desks.append(other)
        for _ in range(40):
            made.admit([dice.randrange(-1, 62) for _ in range(60)])
            groups = made.binned.choose(1.0, 4)
            finds = [[], []]

            def serve(number, desk, groups=groups, finds=finds):
                for group in groups[number::2]:
                    for found in made.binned.serve(desk, group, lambda *_: None):
                        numbers = found.side.stamps >> 1
                        rows = made.master.codec.unpack(made.slab.memory, found.row_at, found.heap_at, ["row"])[0]
                        finds[number] += zip(numbers[found.picks].tolist(), rows.to_pylist(), strict=True)
                        made.gone += numbers[found.gone].tolist()

            threads = [threading.Thread(target=serve, args=(n, desk)) for n, desk in enumerate(made.binned.desks)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert all(finds), "a thread had nothing to do"
            made.met.update(finds[0] + finds[1])
            assert made.binned.waiting == 0
            assert int(made.pool.state[tiles.FREE]) == 60
        assert made.met == right(keys, made.words)
        assert sorted(made.gone) == list(range(len(made.words)))
