"""Bins: tuples go in bin by bin and come out in order of arrival; their bytes never lie on each other's."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from semistream.parts import bins, tiles, waits
from tests.parts.made import EDGES, ints, new_tiles

RECORD = 32  # word, stamp, heap place and one number of row
TILE = 3 * RECORD
ARRIVALS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(EDGES), st.integers(0, TILE - RECORD)), max_size=40)


class Bench:
    """Bins over a pool, and who waits in which."""

    def __init__(self, count=4, tile_count=6, cells=True, kept_back=0):
        record = bins.record_bytes(8, cells)
        self.cells, self.tile_bytes = cells, 3 * record
        self.pool = new_tiles(tile_count, self.tile_bytes, at=64, kept_back=kept_back)
        self.bins = bins.Bins(
            head=np.zeros(count, np.int32),
            tail=np.zeros(count, np.int32),
            numbers=np.zeros((count, 4), np.int64),
            filled=np.zeros(tile_count, np.int32),
            records=np.zeros((3 * tile_count, record // 8), np.int64),
        )
        bins.reset(self.bins)
        self.waiting = {one: [] for one in range(count)}
        self.position = 100

    def admit(self, arrivals):
        """Let (bin, word, heap bytes) arrive as one batch; returns how many found room."""
        picks = np.arange(len(arrivals))
        bin_of, words, sizes = (ints(*column) for column in (zip(*arrivals, strict=True) if arrivals else ((), (), ())))
        admitted = np.full(len(arrivals), -1, np.int64)
        sizes = sizes if self.cells else ints()
        count = bins.admit(self.bins, self.pool, words, picks, bin_of, sizes, self.position, admitted)
        assert (admitted[count:] == -1).all()
        for number in range(count):
            self.waiting[arrivals[number][0]].append((arrivals[number], self.position + number, int(admitted[number])))
        self.position += len(arrivals)
        return count

    def listed(self, one, room):
        """Records of a bin and their words, `room` at a time."""
        cursor, found = ints(-1, 0), []
        while cursor[0] != -2:
            picks, words = np.empty(room, np.int64), np.empty(room, np.int64)
            count = bins.list_tuples(self.bins, self.pool, np.int64(one), cursor, picks, words)
            assert count == room or cursor[0] == -2
            found += zip(picks[:count].tolist(), words[:count].tolist(), strict=True)
        return found

    def check(self, room=2):
        """All that must hold of bins that hold these tuples."""
        spans, used = [], 0
        for one, held in self.waiting.items():
            assert self.listed(one, room) == [(record, arrival[1]) for arrival, _, record in held]
            count, _, arrived, oldest = self.bins.numbers[one].tolist()
            places = [place for _, place, _ in held]
            assert (count, arrived, oldest) == (len(held), sum(places), min(places, default=int(bins.NOBODY)))
            for (_, _, size), place, record in held:
                assert self.bins.records[record, bins.STAMP] == 2 * place
                row = 64 + record * 8 * self.bins.records.shape[1]
                spans.append((row, row + 8 * self.bins.records.shape[1]))
                if self.cells:
                    heap = int(self.bins.records[record, bins.HEAP])
                    spans.append((heap, heap + size))
                    in_tile = (heap - 64) // self.tile_bytes == (row - 64) // self.tile_bytes
                    assert in_tile or size == 0
            used += len({record // 3 for _, _, record in held})
        spans = sorted(span for span in spans if span[0] < span[1])
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))
        assert used + int(self.pool.state[tiles.FREE]) == self.pool.link.size


@given(batches=st.lists(ARRIVALS, max_size=3), cells=st.booleans(), room=st.integers(1, 4))
def test_whoever_found_room_is_listed_in_order_of_arrival_and_lies_alone(batches, cells, room):
    bench = Bench(cells=cells)
    for arrivals in batches:
        bench.admit(arrivals)
        bench.check(room)


@given(first=ARRIVALS, second=ARRIVALS, cleared=st.lists(st.integers(0, 3), unique=True))
def test_a_cleared_bin_gives_its_tiles_back_and_may_be_filled_again(first, second, cleared):
    bench = Bench()
    bench.admit(first)
    for one in cleared:
        bins.clear(bench.bins, bench.pool, np.int64(one))
        bench.waiting[one] = []
        bench.check()
    bench.admit(second)
    bench.check()


def test_a_bin_takes_whoever_fits_its_last_tile_when_no_tile_is_left():
    bench = Bench(count=2, tile_count=2, cells=False)
    assert bench.admit([(0, 1, 0), (1, 2, 0), (0, 3, 0), (0, 4, 0), (0, 5, 0), (1, 6, 0)]) == 4
    assert bench.admit([(1, 7, 0), (1, 8, 0), (1, 9, 0)]) == 2
    bench.check()


def test_bins_leave_the_tiles_that_are_kept_back():
    bench = Bench(count=4, tile_count=5, kept_back=2)
    assert bench.admit([(0, 1, 0), (1, 1, 0), (2, 1, 0), (3, 1, 0)]) == 3
    assert int(bench.pool.state[tiles.FREE]) == 2
    bench.check()


def test_a_tuple_of_the_greatest_width_fills_a_tile():
    bench = Bench(count=1, tile_count=2)
    widest = bench.tile_bytes - RECORD
    assert bench.admit([(0, 1, widest), (0, 2, widest), (0, 3, 0)]) == 2
    bench.check()


@given(arrivals=ARRIVALS, later=st.integers(0, 1 << 40))
def test_waits_are_counted_up_to_now(arrivals, later):
    bench, histogram = Bench(), np.zeros(waits.BUCKETS, np.int64)
    bench.admit(arrivals)
    now = np.int64(bench.position + later)
    for one, held in bench.waiting.items():
        histogram[:] = 0
        passed = [int(now) - place for _, place, _ in held]
        assert bins.add_waits(bench.bins, bench.pool, np.int64(one), histogram, now) == max(passed, default=0)
        wanted = np.zeros(waits.BUCKETS, np.int64)
        for wait in passed:
            wanted[waits.bucket_of(np.int64(wait))] += 1
        assert (histogram == wanted).all()
