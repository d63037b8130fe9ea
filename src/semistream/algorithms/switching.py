"""Switching: keys of a scanned master on their way into the cache, and how a scan finds out that a key is absent.

    a tuple comes in  ->  its key is begun       k reads: every row of the key comes by, for the tuple waits for all of them
    it is about to leave                   ->    the key has all its rows, and the inequality decides

Where rows of a key lie side by side one load shows all of them, and the inequality decides at once. Keys that could only be worth it
without rows are begun when tuples of theirs have left without a match: to see for a round that there is no row.
"""

from __future__ import annotations

import math

import numpy as np

from semistream.algorithms.balance import Balance
from semistream.algorithms.meshjoin import partition_lengths
from semistream.algorithms.record import Parts
from semistream.budget import Share
from semistream.hot_cache import HotCache
from semistream.parts import hot_switching, stamps
from semistream.parts.hot_switching import COUNT, SHORT_ROWS, STATE, Ring
from semistream.parts.memory import I64
from semistream.parts.probing import Picked
from semistream.pending import Pending
from semistream.protocols import Buffer, Found, Load, Reader

_KEY_BYTES = 4 + 4 + 4  # in the ring; and there are half as many suspects
_LEAST_BYTES, _MOST_SHARE = 1024, 1 / 64
_PADDING = 6 * 64


def ring_share(memory_bytes: int) -> Share:
    """Some bytes for every key that can be on its way at a time."""
    return Share("switching", _LEAST_BYTES, weight=1.0, most=max(_LEAST_BYTES, int(memory_bytes * _MOST_SHARE)))


def take_ring(parts: Parts) -> Ring:
    """A ring in its share."""
    count, take = (parts.given["switching"] - _PADDING) // _KEY_BYTES, parts.slab.take
    records, serials = (take("switching", count, np.int32) for _ in range(2))
    return Ring(records, serials, take("switching", STATE, np.int64), take("switching", count // 2, np.int64))


class Switching:
    """The disk buffer of a scan, and the `Keeper` of what it passes."""

    def __init__(self, cache: HotCache, balance: Balance, ring: Ring, buffer: Buffer, reader: Reader) -> None:
        self._cache, self._balance, self._ring, self._buffer = cache, balance, ring, buffer
        self.loads, self.room_bytes, self._runs = 0, buffer.room_bytes, reader.runs
        self._begun = np.zeros(
            max(1, len(partition_lengths(reader.pages, buffer))), np.int64
        )  # by the read they saw first
        self._coming = 0  # keys that have not seen a read yet
        self.pending: Pending | None = None  # those who wait

    @property
    def least(self) -> float:
        """Tuples that must wait on a word for each of its rows to have it weighed; of strewn rows no load shows all."""
        return self._balance.least_a_row() if self._runs else math.inf

    def stop_of(self, first: int) -> int:
        """See `Buffer`."""
        return self._buffer.stop_of(first)

    def partition(self, first: int, stop: int) -> tuple[int, int]:
        """See `Buffer`."""
        return self._buffer.partition(first, stop)

    def enter(self) -> None:
        """Tuples have come in: their keys are begun, if enough wait on them."""
        assert self.pending is not None
        kept, table, picks = self._cache.kept, self.pending.table, self.pending.admitted
        self._coming += hot_switching.begin(kept, table, picks, self._balance.costs, self._ring, self._runs)

    def left(self, found: Found) -> None:
        """Tuples leave: keys of those without a match may be absent."""
        assert self.pending is not None
        if found.gone.size:
            lonely = stamps.unmatched(found.side.stamps, found.gone)
            hot_switching.suspect(self.pending.table, lonely, self._ring)

    def read(self, first: int, stop: int) -> Load:
        """Finish the keys that were begun before this place was read a round ago, then read."""
        assert self.pending is not None
        if first == 0:
            self._balance.cycle_ends()
        place = self.loads % self._begun.size
        due, self._begun[place], self._coming = int(self._begun[place]), self._coming, 0
        cache, costs = self._cache, self._balance.costs
        hot_switching.finish(cache.kept, cache.memory, self.pending.table, costs, self._ring, due)
        self.loads += 1
        return self._buffer.read(first, stop)

    def passes(self, rows: Picked) -> None:
        """Collect those of the rows whose keys are begun."""
        if self._ring.state[COUNT]:
            hot_switching.collect(self._cache.kept, self._cache.memory, rows, self._ring)

    def offer(self, rows: Picked, waiting: I64) -> None:
        """Keep those of the keys that are worth it; they have no hits yet."""
        count = hot_switching.weigh(rows, waiting, self._balance.costs)
        worth = Picked(*(array[:count] for array in rows))
        if count and self._cache.keep(worth, np.zeros(count, np.int64)):
            self._ring.state[SHORT_ROWS] += 1

    def collect(self, word: int, rows: Picked, waiting: int) -> None:
        """A scan looks nothing up."""

    def finish(self, word: int, waiting: int) -> None:
        """A scan looks nothing up."""
