"""Zipf: rank k of 1..size comes with probability proportional to k ** -exponent, exactly and for any exponent >= 0.

Two modes. `exact` samples the bounded distribution by rejection-inversion (Hoermann and Derflinger 1996): a draw
under the continuous curve x ** -exponent is rounded to the nearest rank and kept if it also lies under that rank's
bar. Nearly all draws are kept, nothing is tabulated, so 100 million ranks cost the same as 100. numpy's own `zipf` is
unbounded and needs an exponent above 1. `truncated_continuous` is what the prototypes of the papers did instead:
invert the continuous integral from 1 to size and cut off the fraction. It flattens the head (the top key of 2 million
gets 0.048 of the stream instead of 0.066 at exponent 1) and never draws the last rank. Their "exponent 0" is 0.01.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from semistream.errors import UsageError
from semistream.workloads.blocks import BLOCK_ROWS, Float64s, Int64s, need_number, need_whole

MODES = ("exact", "truncated_continuous")
_SUMMED = 1024  # ranks summed one by one before the Euler-Maclaurin tail takes over; leaves an error below 1e-15


@dataclass(frozen=True)
class Zipf:
    """The distribution of ranks 1..size.

    >>> Zipf(100, exponent=1.0).cdf(np.array([20])).round(2).tolist()
    [0.69]
    """

    size: int
    exponent: float = 1.0
    mode: str = "exact"

    def __post_init__(self) -> None:
        need_whole("size", self.size, 1, 1 << 48)
        need_number("exponent", self.exponent, 0, 1000)
        if self.mode not in MODES:
            raise UsageError(f"workloads: mode={self.mode!r}: need one of {', '.join(MODES)}")
        if self.mode != "exact" and self.size < 2:
            raise UsageError("workloads: mode='truncated_continuous' never draws the last rank: need size >= 2, got 1")

    def ranks(self, generator: np.random.Generator, count: int) -> Int64s:
        """`count` independent ranks."""
        ranks = np.empty(count, np.int64)
        for first in range(0, count, BLOCK_ROWS):  # pieces that stay in the processor's cache
            piece = ranks[first : first + BLOCK_ROWS]
            if self.mode == "truncated_continuous":
                _fill_truncated(self, generator, piece)
            elif self.exponent == 0:
                piece[:] = generator.integers(1, self.size, len(piece), endpoint=True)
            else:
                _fill_exact(self, generator, piece)
        return ranks

    def cdf(self, ranks: npt.ArrayLike) -> Float64s:
        """The exact share of tuples that ask for one of the ranks 1..rank, for every rank given."""
        asked = np.clip(np.asarray(ranks, np.float64), 0, self.size)
        if self.mode == "truncated_continuous":
            return np.asarray(_area(np.minimum(asked + 1, self.size), self.exponent) / _area(self.size, self.exponent))
        return harmonic(asked, self.exponent) / harmonic(self.size, self.exponent)

    def probability(self, ranks: npt.ArrayLike) -> Float64s:
        """The exact share of tuples that ask for each rank given."""
        asked = np.asarray(ranks, np.float64)
        if self.mode == "truncated_continuous":
            return self.cdf(asked) - self.cdf(asked - 1)
        return np.asarray(asked**-self.exponent / harmonic(self.size, self.exponent))


def harmonic(ranks: npt.ArrayLike, exponent: float) -> Float64s:
    """Sum of k ** -exponent over k = 1..rank, for every rank given; fast for any rank.

    >>> harmonic([1, 2, 4], 1.0).round(4).tolist()
    [1.0, 1.5, 2.0833]
    """
    asked = np.asarray(ranks, np.float64)
    start = float(_SUMMED)
    head = np.cumsum(np.arange(1.0, start + 1) ** -exponent)
    far = np.maximum(asked, start)
    tail = _area(far, exponent) - _area(start, exponent) + (far**-exponent - start**-exponent) / 2
    tail += exponent / 12 * (start ** -(exponent + 1) - far ** -(exponent + 1))
    small = np.concatenate(([0.0], head))[np.minimum(asked, start).astype(np.int64)]
    return np.asarray(small + np.where(asked > start, tail, 0.0))


def _area(x: npt.ArrayLike, exponent: float) -> Float64s:
    """Integral of t ** -exponent from 1 to x, written so that exponents next to 1 lose no digits."""
    log_x, power = np.log(x), 1 - exponent
    return np.asarray(log_x if power == 0 else np.expm1(power * log_x) / power)


def _area_inverse(area: Float64s, exponent: float) -> Float64s:
    """The x at which `_area` has this value; infinite where rounding leaves no finite one."""
    power = 1 - exponent
    if power == 0:
        return np.asarray(np.exp(area))
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(np.exp(np.log1p(np.maximum(area * power, -1.0)) / power))


def _fill_exact(zipf: Zipf, generator: np.random.Generator, out: Int64s) -> None:
    """Rejection-inversion.

    With A = the area, rank k >= 2 owns the areas between A(k - 1/2) and A(k + 1/2), which is at least its bar k **
    -exponent because the curve is convex: it keeps the upper part of that size. Rank 1 is given just its bar below
    A(3/2).
    """
    exponent = zipf.exponent
    highest = _area(zipf.size + 0.5, exponent)
    span = highest - (_area(1.5, exponent) - 1)
    # A draw this near to its rank, measured from below, is under the bar of any rank: no second look at the curve.
    near = 2 - _area_inverse(_area(2.5, exponent) - 2.0**-exponent, exponent)
    filled = 0
    while filled < len(out):
        need = len(out) - filled
        area = highest - generator.random(need + need // 64 + 8) * span
        x = np.minimum(_area_inverse(area, exponent), zipf.size)
        rank = np.maximum(np.floor(x + 0.5), 1)
        keep = (rank - x <= near) | (rank == 1)
        doubtful = np.flatnonzero(~keep)
        bar = rank[doubtful]
        keep[doubtful] = area[doubtful] >= _area(bar + 0.5, exponent) - bar**-exponent
        kept = rank[keep][:need]
        out[filled : filled + len(kept)] = kept
        filled += len(kept)


def _fill_truncated(zipf: Zipf, generator: np.random.Generator, out: Int64s) -> None:
    """Inversion of the continuous integral; a draw that rounding lifts to the last rank is put back below it."""
    area = generator.random(len(out)) * _area(zipf.size, zipf.exponent)
    out[:] = np.minimum(np.floor(_area_inverse(area, zipf.exponent)), zipf.size - 1)
