"""The slab: one block of bytes, seen as 1-, 2-, 4- and 8-byte words at once.

Disk buffer, stream rows and caches all live in one slab, so a row anywhere is one number, its byte offset. A kernel that copies rows
does not care where they came from, and the budget is simply the length of the slab.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

U8: TypeAlias = NDArray[np.uint8]
I32: TypeAlias = NDArray[np.int32]
F64: TypeAlias = NDArray[np.float64]
I64: TypeAlias = NDArray[np.int64]


class Memory(NamedTuple):
    """The same bytes four times. Offsets are in bytes everywhere; a kernel shifts them to index a wider view."""

    b1: NDArray[np.uint8]
    b2: NDArray[np.uint16]
    b4: NDArray[np.uint32]
    b8: NDArray[np.uint64]


def view(block: U8) -> Memory:
    """All views of `block`, whose length must be a multiple of 8 and whose start must be 8-byte aligned."""
    return Memory(block, block.view(np.uint16), block.view(np.uint32), block.view(np.uint64))
