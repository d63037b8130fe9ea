"""From the number of a master row to its key: scattered or in order, dense or with gaps, and keys that no row has."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from semistream.workloads.blocks import Int64s, generator, mixed, need_whole

_ROUNDS = 4  # with three, the steps between neighbours fail a chi-square test


@dataclass(frozen=True)
class Scatter:
    """A seeded shuffle of 1..size that needs no table: popular ranks land anywhere ("unsorted R" in the papers).

    Multiply, add and fold the high bits down, four times over, is a bijection of b-bit numbers. Where the result
    falls outside 1..size it is sent round again; since the whole is a bijection the walk always comes back, after
    less than two turns on average.

    >>> sorted(Scatter(5, seed=3)(np.arange(1, 6)).tolist())
    [1, 2, 3, 4, 5]
    """

    size: int
    seed: int = 0

    def __post_init__(self) -> None:
        need_whole("size", self.size, 1, 1 << 62)
        need_whole("seed", self.seed, 0)

    def __call__(self, numbers: Int64s) -> Int64s:
        """The place of every number, both from 1..size."""
        places = self._turn((numbers - 1).astype(np.uint64))
        while (outside := np.flatnonzero(places >= self.size)).size:
            places[outside] = self._turn(places[outside])
        return places.astype(np.int64) + 1

    @cached_property
    def _constants(self) -> npt.NDArray[np.uint64]:
        return generator(self.seed, "scatter").integers(0, 1 << 63, (_ROUNDS, 2), dtype=np.uint64)

    def _turn(self, bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        width = max(1, (self.size - 1).bit_length())
        mask, fold = np.uint64((1 << width) - 1), np.uint64((width + 1) // 2)
        for factor, offset in self._constants:
            bits = (bits * (factor | np.uint64(1)) + offset) & mask
            bits = bits ^ (bits >> fold)
        return bits


@dataclass(frozen=True)
class Domain:
    """The key of every master row 1..size: the number itself, or with a `gap` one key somewhere in every `gap` values.

    Where a key lies in its gap depends on the row's number alone, so that every master and every stream of a domain
    agree.

    >>> Domain(4).keys(np.arange(1, 5)).tolist(), Domain(4, gap=10).keys(np.arange(1, 5)).tolist()
    ([1, 2, 3, 4], [6, 11, 24, 39])
    """

    size: int
    gap: int = 1

    def __post_init__(self) -> None:
        need_whole("master_rows", self.size, 1, 1 << 40)
        need_whole("gap", self.gap, 1, 1 << 20)

    def keys(self, numbers: Int64s) -> Int64s:
        """The key of every row number; ascending where the numbers are."""
        if self.gap == 1:
            return numbers
        return (numbers - 1) * self.gap + self._place(numbers) + 1

    def absent(self, numbers: Int64s) -> Int64s:
        """For every row number a key that no row has: a neighbour in its gap, or beyond the end of a dense domain."""
        if self.gap == 1:
            return numbers + self.size
        away = 1 + (mixed(-numbers) % np.uint64(self.gap - 1)).astype(np.int64)
        return (numbers - 1) * self.gap + (self._place(numbers) + away) % self.gap + 1

    def _place(self, numbers: Int64s) -> Int64s:
        return (mixed(numbers) % np.uint64(self.gap)).astype(np.int64)
