"""The papers' formulas for the tuples of an iteration, as they are printed, for comparison. docs/errata.md says what is wrong with each.

All are for keys by Zipf's law with exponent 1 over a sorted master.
"""

from __future__ import annotations

from math import log, log2
from typing import NamedTuple

EULER = 0.5772156649


class Split(NamedTuple):
    """Tuples of an iteration: answered by what stays in memory, and by what was read (w_N, w_S)."""

    hits: float
    misses: float


def harmonic(rank: float) -> float:
    """The sum of 1/x as X-HYBRIDJOIN takes it: without the 1/2m, and so infinitely wrong at 0, where it is 0."""
    return log(rank) + EULER if rank > 0 else 0.0


def x_hybridjoin(slots: float, rows: float, buffer_rows: float, pinned_rows: float, *, mean: bool = False) -> Split:
    """X-HYBRIDJOIN Eq. 7, 8, 9. With `mean` the number of matches is taken to be N p, as it is, and not its variance N p (1 - p)."""
    partitions = (rows - pinned_rows) / buffer_rows
    pinned = harmonic(pinned_rows) / harmonic(rows)
    old = 1 / partitions
    new = pinned + (1 - pinned) / partitions
    if not mean:
        old, new = old * (1 - old), new * (1 - new)
    both = slots * old / (1 + old - new)
    return Split(both * pinned, both * (1 - pinned))


def cached_share(rows: float, cached_rows: float) -> float:
    """Optimised X-HYBRIDJOIN Eq. 4: gamma is dropped."""
    return log(cached_rows) / log(rows)


def partition_share(rows: float, buffer_rows: float, cached_rows: float) -> float:
    """Optimised X-HYBRIDJOIN Eq. 7: gamma is kept, and the share is of the whole stream."""
    partitions = (rows - cached_rows) / buffer_rows
    return (log(rows) - log(cached_rows + 1)) / (partitions * (log(rows) + EULER))


def optimised_x_hybridjoin(slots: float, rows: float, buffer_rows: float, cached_rows: float) -> Split:
    """Optimised X-HYBRIDJOIN Eq. 6 and 9, with the shares of Eq. 4 and 7 (the power laws of 5 and 8 have no constant)."""
    misses = partition_share(rows, buffer_rows, cached_rows) * slots
    hits = cached_share(rows, cached_rows)
    return Split(misses * hits / (1 - hits), misses)  # S / N is the iteration itself: w_N = p_N (w_N + w_S)


def power_law(rows: float, cached_rows: float) -> float:
    """Optimised X-HYBRIDJOIN Eq. 5: the share of the cache as a product of powers, without a constant."""
    once = cached_share(rows, cached_rows)
    of_rows, of_cached = cached_share(2 * rows, cached_rows) / once, cached_share(rows, 2 * cached_rows) / once
    return float(rows ** log2(of_rows) * cached_rows ** log2(of_cached))


def ssbj_rate(iteration_s: float, memory_parts: tuple[float, float, float]) -> float:
    """SSBJ Eq. 6: (bytes of the cache + bytes of the disk buffer + bytes of waiting tuples) / seconds. That is no rate of tuples."""
    return sum(memory_parts) / iteration_s


def due_interval(threshold: float, slots: float, frequency: float) -> float:
    """Queue of frequent pages: tuples until a page is due, frequency = matches / slots; a probability multiplied by the slots once more."""
    return threshold * slots / frequency
