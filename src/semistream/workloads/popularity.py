"""Which key each stream tuple asks for: Zipf ranks, drift, scattering and keys that the master does not have.

rank (zipf) -> item holding it now (drift) -> row number (scatter) -> key (domain), for some tuples an absent one
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from semistream.workloads.blocks import BLOCK_ROWS, Int64s, generator, need_number, need_whole
from semistream.workloads.drift import Drift
from semistream.workloads.keys import Domain, Scatter
from semistream.workloads.zipf import Zipf


@dataclass(frozen=True)
class Popularity:
    """How often which key is asked for.

    `exponent`, `mode`: the Zipf distribution (0 = uniform). `scattered`: popular keys lie anywhere in the key domain
    ("unsorted R"), in an order that `scatter_seed` chooses and that every stream of the workload shares; otherwise
    the smallest key is the most popular ("sorted R"). `absent_share`: the share of tuples that ask for a key no row
    has; such keys are as skewed as the others. `drift`: changes along the stream.

    >>> Popularity(exponent=1.0, scattered=False).hottest(3, size=1000).tolist()
    [1, 2, 3]
    """

    exponent: float = 1.0
    mode: str = "exact"
    scattered: bool = True
    scatter_seed: int = 0
    absent_share: float = 0.0
    drift: Drift = field(default_factory=Drift)

    def __post_init__(self) -> None:
        Zipf(2, self.exponent, self.mode)
        need_number("absent_share", self.absent_share, 0, 1)
        need_whole("scatter_seed", self.scatter_seed, 0)

    def keys(self, domain: Domain, seed: int, block: int) -> Int64s:
        """The keys of one block of the stream."""
        numbers = self._numbers(domain.size, generator(seed, "popularity", block), block * BLOCK_ROWS)
        keys = domain.keys(numbers)
        if self.absent_share == 0:
            return keys
        absent = generator(seed, "absent", block).random(BLOCK_ROWS) < self.absent_share
        return np.where(absent, domain.absent(numbers), keys)

    def hottest(self, count: int, size: int, row: int = 0) -> Int64s:
        """The numbers of the `count` most popular master rows, hottest first, when tuple number `row` arrives."""
        ranks = np.arange(1, min(count, size) + 1, dtype=np.int64)
        return self._placed(self.drift.holders(ranks, np.full_like(ranks, row), size), size)

    def _numbers(self, size: int, draws: np.random.Generator, first_row: int) -> Int64s:
        ranks = np.empty(BLOCK_ROWS, np.int64)
        for start, count in self.drift.stretches(first_row, BLOCK_ROWS):
            zipf = Zipf(size, self.drift.exponent_at(start, self.exponent), self.mode)
            ranks[start - first_row : start - first_row + count] = zipf.ranks(draws, count)
        rows = np.arange(first_row, first_row + BLOCK_ROWS, dtype=np.int64)
        return self._placed(self.drift.holders(ranks, rows, size), size)

    def _placed(self, items: Int64s, size: int) -> Int64s:
        return Scatter(size, self.scatter_seed)(items) if self.scattered else items
