"""The budget: one number of bytes in, every array out, once.

`split` shares the bytes out among named parts; `Slab` is the single block they are cut from. Nothing grows afterwards, so the budget
is kept by construction: there is no other memory to grow into.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from semistream.errors import BudgetError
from semistream.parts.memory import Memory, view
from semistream.units import format_bytes

_LINE = 64
_PRIVATE = hasattr(mmap, "MAP_PRIVATE")


@dataclass(frozen=True)
class Share:
    """What one part asks for: never less than `least` bytes, then its `weight` of what is left, never more than `most`."""

    part: str
    least: int
    weight: float = 0.0
    most: int | None = None


def split(total_bytes: int, shares_of: Callable[[int], Sequence[Share]]) -> dict[str, int]:
    """Bytes for every part, or a `BudgetError` that names the first part that does not fit and the smallest budget that works.

    What parts ask for may itself depend on the budget (`shares_of`), as long as a larger budget leaves more over.

    >>> split(1000, lambda _: [Share("index", 200), Share("disk buffer", 100, weight=1, most=300), Share("stream table", 50, weight=3)])
    {'index': 200, 'disk buffer': 262, 'stream table': 537}
    """
    shares = shares_of(total_bytes)
    smallest = sum(share.least for share in shares)
    if total_bytes < smallest:
        _refuse(total_bytes, shares, _smallest(smallest, shares_of))
    given = {share.part: share.least for share in shares}
    left = total_bytes - smallest
    open_shares = [share for share in shares if share.weight > 0]
    while open_shares and left > 0:
        weights = sum(share.weight for share in open_shares)
        full = [s for s in open_shares if s.most is not None and given[s.part] + left * s.weight / weights >= s.most]
        if not full:
            for share in open_shares:
                given[share.part] += int(left * share.weight / weights)
            break
        for share in full:  # capped parts first; what they leave goes to the others
            assert share.most is not None
            top = max(share.most, share.least)
            left -= top - given[share.part]
            given[share.part] = top
            open_shares.remove(share)
    return given


def _smallest(total_bytes: int, shares_of: Callable[[int], Sequence[Share]]) -> int:
    """The smallest budget that covers what the parts ask for at that budget."""
    while (needed := sum(share.least for share in shares_of(total_bytes))) > total_bytes:
        total_bytes = needed
    return total_bytes


def _refuse(total_bytes: int, shares: Sequence[Share], smallest: int) -> None:
    used = 0
    for share in shares:
        used += share.least
        if used > total_bytes:
            raise BudgetError(
                f"memory={total_bytes} bytes ({format_bytes(total_bytes)}) is too small: {share.part} needs {share.least} bytes and "
                f"{max(0, total_bytes - used + share.least)} are left; the smallest budget that works here is {smallest} bytes "
                f"({format_bytes(smallest)})",
                part=share.part,
                needed_bytes=share.least,
                smallest_bytes=smallest,
            )


class Slab:
    """One block of bytes, cut into the arrays of the parts; `bytes_by_part` is the ledger."""

    saved = ()

    def __init__(self, total_bytes: int) -> None:
        self.total_bytes = total_bytes
        self.bytes_by_part: dict[str, int] = {}
        self.used = 0
        size = max(_padded(total_bytes), mmap.PAGESIZE)
        # private: shared memory gets no huge pages
        block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) if _PRIVATE else mmap.mmap(-1, size)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            block.madvise(
                mmap.MADV_HUGEPAGE
            )  # random access to tens of MB: fewer TLB misses; a hint, so no harm elsewhere
        self._block: NDArray[np.uint8] = np.frombuffer(block, np.uint8)
        self.memory: Memory = view(self._block)

    def take(self, part: str, count: int, dtype: DTypeLike, align: int = _LINE) -> NDArray[Any]:
        """An array of zeros for a part."""
        return self._block[self.place(part, count * np.dtype(dtype).itemsize, align) :][
            : count * np.dtype(dtype).itemsize
        ].view(dtype)

    def place(self, part: str, count_bytes: int, align: int = _LINE) -> int:
        """As `take`, but only where: the byte offset of the part's bytes in `memory`."""
        at = -(-self.used // align) * align
        if at + count_bytes > self.total_bytes:
            raise AssertionError(
                f"{part} wants {count_bytes} bytes, {self.total_bytes - at} of {self.total_bytes} are left"
            )
        self.bytes_by_part[part] = self.bytes_by_part.get(part, 0) + at + count_bytes - self.used
        self.used = at + count_bytes
        return at

    def charge(self, part: str, count_bytes: int) -> None:
        """Set bytes aside for memory that cannot lie in the slab (arrays that leave with the caller)."""
        self.place(part, count_bytes, 1)


def _padded(count_bytes: int) -> int:
    return -(-count_bytes // _LINE) * _LINE
