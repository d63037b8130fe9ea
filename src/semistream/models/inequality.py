"""SSBJ's cache inequality: which keys are cached, what memory that takes, and which rate a memory carries.

    m rows * bytes of a cached row  <  n tuples in a cycle * bytes of a waiting tuple

n grows with the rate, and the cycle with what is not cached, so placement, cycle and memory are found together: `W` tuples of the stream
come in a cycle, the inequality places every key, and that gives the memory. More tuples take more memory, so the memory of a rate is
computed and the rate of a memory is looked for.

Printed Eq. 6 puts the bytes of the parts where tuples belong. Meant is lambda = (w_N + w_S) / c_loop, with w_S from the memory that
cache and buffer leave over, and w_N = w_S p_N / (1 - p_N). That is what `rate_in` computes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, factorial

import numpy as np

from semistream.errors import BudgetError, UsageError
from semistream.models.costs import Iteration, UnitCosts
from semistream.models.memory import PUBLISHED, Charges
from semistream.models.setting import Demand

_MOST_ROWS = 12  # of a key, when rows are drawn with repetition


@dataclass(frozen=True)
class Balanced:
    """The inequality at work: tuples in a cycle, who is cached, and the bytes."""

    cycle_tuples: float
    hit_share: float
    cached_rows: float
    cached_keys: float
    memory_bytes: float


@dataclass(frozen=True)
class Balance:
    """A master and a stream under the inequality.

    Keys have one row each, or with `drawn` as many as come when so many rows are drawn with repetition (SSBJ's masters: 37 % have none).
    `absent_bytes` is what a cached key without rows takes; None: keys without rows are not cached.
    """

    demand: Demand
    rows: float
    buffer_rows: float
    charges: Charges = PUBLISHED
    drawn: bool = False
    absent_bytes: float | None = 0.0
    switching_factor: float = 1.0  # s_f

    def _rows_of_keys(self) -> list[tuple[int, float]]:
        """Numbers of rows, and the share of keys that have so many."""
        if not self.drawn:
            return [(1, 1.0)]
        mean = self.rows / self.demand.keys
        return [(count, exp(-mean) * mean**count / factorial(count)) for count in range(_MOST_ROWS)]

    def at(self, cycle_tuples: float) -> Balanced:
        """Place every key, when so many tuples come in a cycle."""
        keys, share = self.demand.classes()
        row_bytes, waiting = self.charges.fudge * self.charges.row_bytes, self.charges.in_chunks()
        hit = cached_rows = cached_keys = absent = 0.0
        for rows, part in self._rows_of_keys():
            each = rows * row_bytes
            if rows == 0:
                if self.absent_bytes is None:
                    continue
                each = self.absent_bytes
            worth = share * cycle_tuples * waiting > self.switching_factor * each
            # who never comes is not cached, however little it takes
            count = part * (keys * worth * np.minimum(1.0, share * cycle_tuples)).sum()
            hit += part * float((keys * share * worth).sum())
            cached_rows += rows * count
            cached_keys += count
            absent += count * each if rows == 0 else 0.0
        memory = self.buffer_rows * self.charges.row_bytes + cached_rows * row_bytes + absent
        memory += cycle_tuples * (1 - hit) * waiting
        return Balanced(cycle_tuples, hit, float(cached_rows), float(cached_keys), float(memory))

    def in_memory(self, memory_bytes: float) -> Balanced:
        """The most tuples a cycle that a memory can hold."""
        low, high = 0.0, 1.0
        least = self.at(0.0).memory_bytes
        if memory_bytes <= least:
            raise BudgetError(
                f"memory={memory_bytes:.0f} bytes: the disk buffer alone takes {least:.0f} bytes; give more",
                part="disk buffer",
                needed_bytes=int(least) + 1,
                smallest_bytes=int(least) + 1,
            )
        while self.at(high).memory_bytes < memory_bytes and high < 1e15:
            high *= 2
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if self.at(middle).memory_bytes < memory_bytes else (low, middle)
        return self.at(low)

    def iteration(self, balanced: Balanced, costs: UnitCosts) -> Iteration:
        """One partition's worth of a cycle: SSBJ Eq. 2, corrected."""
        loads = max(1.0, self.rows / self.buffer_rows)
        both = balanced.cycle_tuples / loads
        misses = both * (1 - balanced.hit_share)
        return Iteration(
            both - misses,
            misses,
            {
                "all": {
                    "read": costs.read(self.buffer_rows * self.charges.row_bytes, scanning=True),
                    "probe": self.buffer_rows * costs.probe_s,
                    "probe cache": both * costs.cache_probe_s,
                    "take": both * costs.take_s,
                    "admit": misses * costs.admit_s,
                    "leave": misses * costs.leave_s,
                    "settle": both * costs.settle_s,
                }
            },
        )

    def rate_in(self, memory_bytes: float, costs: UnitCosts) -> float:
        """The rate that a memory carries, mu."""
        return self.iteration(self.in_memory(memory_bytes), costs).rate

    def memory_for(self, rate: float, costs: UnitCosts) -> Balanced:
        """The least memory for a rate: MESHJOIN's other goal. Tuples a cycle = rate * seconds a cycle, which they lengthen in turn."""
        low, high = 0.0, 1.0

        def carries(tuples: float) -> bool:
            return self.iteration(self.at(tuples), costs).rate >= rate

        while not carries(high):
            high *= 2
            if high > 1e15:
                limit = self.iteration(self.at(high), costs)
                dearest = max(limit.terms, key=lambda term: limit.terms[term])
                raise UsageError(
                    f"rate={rate:.0f} tuples/s: with any memory not more than {limit.rate:.0f} tuples/s are possible here, and "
                    f"{dearest!r} takes most of the time; ask for less, or take a faster machine"
                )
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (low, middle) if carries(middle) else (middle, high)
        return self.at(high)


def belongs(rows: float, tuples: float, charges: Charges = PUBLISHED) -> bool:
    """The printed inequality, Theorem 2: whether a key with so many rows and so many tuples in a cycle belongs in the cache.

    >>> belongs(rows=1, tuples=6), belongs(rows=1, tuples=7), belongs(rows=0, tuples=1)
    (False, True, True)
    """
    return rows * charges.row_bytes < tuples * charges.tuple_bytes
