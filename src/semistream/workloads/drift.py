"""Popularity that changes along the stream: the hot set wanders or is replaced, the skew rises or falls.

Positions are tuple numbers (the first tuple is 0), not times, so that drift does not depend on the arrivals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from semistream.errors import UsageError
from semistream.workloads.blocks import Int64s, need_number, need_whole

HOLD_ROWS = 4096  # a changing exponent is held for this many tuples at a time
_GOLDEN = 0.6180339887498949  # a jump moves by this share of the domain: jumps never lead back to an old hot set


@dataclass(frozen=True)
class Drift:
    """How popularity moves.

    `moves_per_row`: how many newcomers become the hottest key per tuple; every other key ages by one rank each time
    (0.001 = a new hottest key every 1000 tuples). `jumps`: tuple numbers from which on an unrelated set of keys is
    hot. `exponents`: (tuple number, exponent) points, joined by straight lines and level outside; they replace the
    fixed exponent.

    >>> Drift(exponents=((0, 1.0), (100_000, 0.5))).exponent_at(50_000, otherwise=1.0)
    0.75
    """

    moves_per_row: float = 0.0
    jumps: tuple[int, ...] = ()
    exponents: tuple[tuple[int, float], ...] = ()

    def __post_init__(self) -> None:
        need_number("moves_per_row", self.moves_per_row, 0, 1000)
        for row in self.jumps:
            need_whole("jumps", row, 0)
        for row, exponent in self.exponents:
            need_whole("exponents (tuple number)", row, 0)
            need_number("exponents (exponent)", exponent, 0, 1000)
        positions = [row for row, _ in self.exponents]
        if positions != sorted(set(positions)):
            raise UsageError(f"workloads: exponents={self.exponents}: need tuple numbers that rise")

    def holders(self, ranks: Int64s, rows: Int64s, size: int) -> Int64s:
        """The item 1..size that holds each rank when the tuple of that number arrives."""
        if not self.moves_per_row and not self.jumps:
            return ranks
        newcomers = np.floor(rows * self.moves_per_row).astype(np.int64)
        jumped = np.searchsorted(np.sort(np.asarray(self.jumps, np.int64)), rows, side="right")
        holders: Int64s = (ranks - 1 - newcomers + jumped * int(size * _GOLDEN)) % size + 1
        return holders

    def exponent_at(self, row: int, otherwise: float) -> float:
        """The exponent in force at a tuple number; `otherwise` when it does not change."""
        if not self.exponents:
            return otherwise
        positions, values = zip(*self.exponents, strict=True)
        return float(np.interp(row, positions, values))

    def stretches(self, first_row: int, count: int) -> Iterator[tuple[int, int]]:
        """(first tuple, how many) of each stretch with one exponent: cut every `HOLD_ROWS` and at every point given."""
        last_row = first_row + count
        if not self.exponents:
            yield first_row, count
            return
        cuts = {first_row, last_row, *range(first_row - first_row % HOLD_ROWS, last_row, HOLD_ROWS)}
        cuts |= {row for row, _ in self.exponents}
        inside = sorted(row for row in cuts if first_row <= row <= last_row)
        for start, end in pairwise(inside):
            yield start, end - start
