"""Popularity: what share of the stream asks for the hottest keys, and for each partition of the master.

Any distribution is kept in the same form, a curve: `shares[i]` of the stream asks for the `ranks[i]` hottest keys, and keys between two
points of the curve are equally hot. A curve of some thousand points stands for any number of keys.

>>> demand = zipf(2_000_000, 1.0)
>>> round(demand.hottest(2_500), 4)
0.5569
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from semistream.errors import UsageError
from semistream.parts.memory import F64
from semistream.workloads.zipf import Zipf

_EXACT = 4096  # of the hottest keys have a point each
_GROWTH = 1.005  # from point to point behind them
_PLACED = (
    1 << 17
)  # of the hottest keys are placed one by one over a master that is not sorted; the others spread evenly
_RARE = 5  # so few times in a sample is hardly more than chance
_SEED = 20_190_901


class Popularity(NamedTuple):
    """Keys by popularity, hottest first, and whether the master's rows stand in that order."""

    ranks: F64
    shares: F64
    sorted_master: bool = False

    @property
    def keys(self) -> float:
        """How many keys there are: one for each row, where keys are unique."""
        return float(self.ranks[-1])

    def hottest(self, count: float) -> float:
        """The share of the stream that asks for the hottest `count` keys."""
        return float(np.interp(count, self.ranks, self.shares))

    def classes(self, beyond: float = 0.0) -> tuple[F64, F64]:
        """Classes of equally hot keys, without the hottest `beyond`: how many keys each has, and the share of each key."""
        ranks = np.concatenate([[beyond], self.ranks[self.ranks > beyond]])
        counts = np.diff(ranks)
        return counts, np.diff(np.interp(ranks, self.ranks, self.shares)) / counts

    def needed(self, partition_rows: float, beyond: float = 0.0) -> F64:
        """The share of each partition among tuples that ask for none of the hottest `beyond` keys."""
        if self.sorted_master:
            # pinned or cached rows are not read again: partitions begin behind them
            bounds = np.append(np.arange(beyond, self.keys, partition_rows), self.keys)
            needed = np.diff(np.interp(bounds, self.ranks, self.shares))
        else:
            needed = self._strewn(max(1, round(self.keys / partition_rows)), beyond)
        total = needed.sum()
        return np.asarray(needed / total if total > 0 else np.full(needed.size, 1 / max(1, needed.size)))

    def _strewn(self, partitions: int, beyond: float) -> F64:
        """Hot keys fall somewhere; the others are so many that every partition has its even share of them."""
        placed = np.arange(beyond, min(self.keys, beyond + _PLACED) + 1)
        each = np.diff(np.interp(placed, self.ranks, self.shares))
        where = np.random.default_rng(_SEED).integers(0, partitions, each.size)
        rest = 1.0 - self.hottest(placed[-1])
        return np.asarray(np.bincount(where, each, partitions) + rest / partitions)


def zipf(keys: int, exponent: float, *, sorted_master: bool = False, mode: str = "exact") -> Popularity:
    """Zipf's law for any exponent; `mode` as in the workloads: the prototypes' generator is "truncated_continuous"."""
    far = _EXACT * _GROWTH ** np.arange(1, max(1, np.log(max(keys, _EXACT) / _EXACT) / np.log(_GROWTH)))
    ranks = np.unique(np.append(np.arange(min(_EXACT, keys) + 1.0), [*np.floor(far[far < keys]), keys]))
    return Popularity(ranks, Zipf(keys, exponent, mode).cdf(ranks), sorted_master)


def empirical(counts: npt.ArrayLike | Sequence[int], keys: int, *, sorted_master: bool = False) -> Popularity:
    """From how often the keys of a sample came, of a master with so many keys.

    What is missing from the sample is not zero: the share of keys not seen yet is about that of keys seen once (Good and Turing).
    """
    seen = np.sort(np.asarray(counts, np.float64))[::-1]
    if seen.size == 0 or seen[0] <= 0 or seen[-1] < 0:
        raise UsageError(
            "the stream sample is empty: need counts of keys, at least one above 0; give a sample with some rows"
        )
    seen = seen[seen > 0]
    unseen_keys = max(0, keys - seen.size)
    unseen = min(1.0, (seen == 1).sum() / seen.sum()) if unseen_keys else 0.0
    share = seen / seen.sum()
    rare = seen <= _RARE
    if (
        unseen < 1.0 and unseen_keys
    ):  # the unseen take their share from the rare: a count of 1 says too much, one of 100 does not
        share[rare] *= max(0.0, 1 - unseen / share[rare].sum()) if rare.any() else 1.0
    curve = np.concatenate([[0.0], np.cumsum(share)])
    ranks = np.arange(curve.size, dtype=np.float64)
    if unseen_keys:
        curve, ranks = np.append(curve, 1.0), np.append(ranks, float(keys))
    if unseen == 1.0:  # no key came twice: as good as uniform
        curve, ranks = np.array([0.0, 1.0]), np.array([0.0, float(keys)])
    curve[-1] = 1.0
    return Popularity(ranks, curve, sorted_master)
