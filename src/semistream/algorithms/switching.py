"""Switching: keys of a scanned master on their way into the cache, each for one round of its own.

a tuple comes in  ->  its key is begun       k reads: every row of the key comes by, for the tuple waits for all of them
it is about to leave                   ->    the key has all its rows, and the inequality decides
"""

from __future__ import annotations

import math

import numpy as np

from semistream.algorithms.balance import Balance
from semistream.algorithms.meshjoin import partition_lengths
from semistream.algorithms.record import Parts
from semistream.budget import Share
from semistream.hot_cache import HotCache
from semistream.parts import hot_switching
from semistream.parts.hot_switching import COUNT, STATE, Ring
from semistream.parts.memory import I64
from semistream.parts.probing import Picked
from semistream.parts.stream_table import StreamTable
from semistream.protocols import Buffer, Load

_LEAST_BYTES, _MOST_SHARE = 1024, 1 / 128
_PADDING = 4 * 64


def ring_share(memory_bytes: int) -> Share:
    """Four bytes for every key that can be on its way at a time."""
    return Share("switching", _LEAST_BYTES, weight=1.0, most=max(_LEAST_BYTES, int(memory_bytes * _MOST_SHARE)))


def take_ring(parts: Parts) -> Ring:
    """A ring in its share."""
    count, take = (parts.given["switching"] - _PADDING) // 4, parts.slab.take
    return Ring(take("switching", count, np.int32), take("switching", STATE, np.int64))


class Switching:
    """The disk buffer of a scan, and the `Keeper` of what it passes."""

    least = math.inf  # nothing is worth keeping at first sight

    def __init__(self, cache: HotCache, balance: Balance, ring: Ring, buffer: Buffer, pages: int) -> None:
        self._cache, self._balance, self._ring, self._buffer = cache, balance, ring, buffer
        self.loads, self.room_bytes = 0, buffer.room_bytes
        self._begun = np.zeros(
            max(1, len(partition_lengths(pages, buffer))), np.int64
        )  # keys, by the read they saw first
        self._coming = 0  # keys that have not seen a read yet
        self.table: StreamTable | None = None  # of those who wait

    def stop_of(self, first: int) -> int:
        """See `Buffer`."""
        return self._buffer.stop_of(first)

    def partition(self, first: int, stop: int) -> tuple[int, int]:
        """See `Buffer`."""
        return self._buffer.partition(first, stop)

    def enter(self, slots: I64) -> None:
        """Tuples have come in: their keys are begun, if enough wait on them."""
        assert self.table is not None
        self._coming += hot_switching.begin(self._cache.kept, self.table, slots, self._balance.costs, self._ring)

    def read(self, first: int, stop: int) -> Load:
        """Finish the keys that were begun before this place was read a round ago, then read."""
        assert self.table is not None
        if first == 0:
            self._balance.cycle_ends()
        place = self.loads % self._begun.size
        due, self._begun[place], self._coming = int(self._begun[place]), self._coming, 0
        cache, costs = self._cache, self._balance.costs
        hot_switching.finish(cache.kept, cache.memory, self.table, costs, self._ring, due)
        self.loads += 1
        return self._buffer.read(first, stop)

    def passes(self, rows: Picked) -> None:
        """Collect those of the rows whose keys are begun."""
        if self._ring.state[COUNT]:
            hot_switching.collect(self._cache.kept, self._cache.memory, rows, self._ring)

    def offer(self, rows: Picked, waiting: I64) -> None:
        """Nothing is offered."""

    def collect(self, word: int, rows: Picked, waiting: int) -> None:
        """A scan looks nothing up."""

    def finish(self, word: int, waiting: int) -> None:
        """A scan looks nothing up."""
