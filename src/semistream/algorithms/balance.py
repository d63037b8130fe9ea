"""The balance of SSBJ: a key stands where it takes less memory, its rows in the cache or its tuples in the stream table.

    bytes of the tuples that wait on a word in one cycle  >  price * bytes of its rows  +  price * bytes of its record

The memory of cache and stream table is cut once and cannot flow between them. So the bytes of rows and of records each have a price: 1 as
long as there is room for all that is favoured, and more when there is not, until what is favoured fits. That is the best use of a
cache of a given size, as the inequality itself is of one that may grow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semistream.algorithms.record import Parts
from semistream.hot_cache import HotCache, row_cost
from semistream.parts import hot_cache as cache_kernels
from semistream.parts import hot_switching
from semistream.parts.hot_switching import (
    CYCLE,
    LEAST,
    ROW_COST,
    SHORT_ROWS,
    SHORT_WORDS,
    WAITING_COST,
    WORD_COST,
    Ring,
)
from semistream.parts.memory import F64

_REVIEWED_EVERY = 10  # cycles
_DEARER, _CHEAPER = 1.5, 1.2


class Costs(NamedTuple):
    """Bytes of a waiting tuple, a cached row and a cached word, and how many tuples make an estimate."""

    waiting: float
    row: float
    word: float
    least: int


PUBLISHED = Costs(20.0, 120.0, 0.0, 1)  # s_f = 1, and keys without rows cost nothing


def costs_of(parts: Parts) -> Costs:
    """What things really cost here, or what the paper charges for them. One tuple says little of how many come in a cycle."""
    if parts.preset == "published":
        return PUBLISHED
    row = row_cost(parts.master_codec, parts.master_row_bytes, 0.0)
    return Costs(parts.rows.slot_bytes(), row, cache_kernels.WORD_BYTES, 2)


class Balance:
    """The inequality, its price, and the cycles in which it is looked at again."""

    def __init__(self, cache: HotCache, costs: Costs, ring: Ring) -> None:
        self._cache, self._costs, self._ring = cache, costs, ring
        self.prices, self.evicted = [1.0, 1.0], 0  # of rows and of words
        self.costs: F64 = np.zeros(4)
        self._set_costs()

    def least(self, rows: int) -> float:
        """Tuples that must wait on a word to make so many rows, and its record, worth keeping."""
        needed = (rows * self.costs[ROW_COST] + self.costs[WORD_COST]) / self.costs[WAITING_COST]
        return float(max(int(needed) + 1, self._costs.least))

    def least_a_row(self) -> float:
        """Tuples that outweigh a row, its word aside."""
        return float(self.costs[ROW_COST] / self.costs[WAITING_COST])

    def cycle_ends(self) -> None:
        """Every tuple that waited when the cycle began has left. Cached words are judged every tenth time, and when room is short."""
        state, cache = self._ring.state, self._cache
        state[CYCLE] += 1
        cache.now = cycle = int(state[CYCLE])
        was_short, counted = bool(state[SHORT_ROWS] or state[SHORT_WORDS]), cycle % _REVIEWED_EVERY or _REVIEWED_EVERY
        for kind, short in enumerate((SHORT_ROWS, SHORT_WORDS)):
            before, is_short = self.prices[kind], bool(state[short])
            self.prices[kind], state[short] = before * _DEARER if is_short else max(1.0, before / _CHEAPER), 0
        self._set_costs()
        if was_short or counted == _REVIEWED_EVERY:
            anew = counted == _REVIEWED_EVERY
            self.evicted += hot_switching.review(cache.kept, cache.memory, self.costs, cycle, counted, anew)

    def note_room(self) -> None:
        """Take notice when the cache is nearly full."""
        state, cache = self._ring.state, self._cache
        state[SHORT_ROWS] += cache.free < cache.slots // 16
        state[SHORT_WORDS] += cache.words > 15 * cache.kept.records.shape[0] // 16

    def _set_costs(self) -> None:
        row_price, word_price = self.prices
        self.costs[WAITING_COST], self.costs[LEAST] = self._costs.waiting, self._costs.least
        self.costs[ROW_COST], self.costs[WORD_COST] = row_price * self._costs.row, word_price * self._costs.word
