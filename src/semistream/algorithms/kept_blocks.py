"""Blocks of the master that stay in memory: a few disk buffers, and a count for every block of how often it was asked for.

A block is loaded into the spare buffer. If it is asked for more than the one of those kept that is asked for least, the two change places:
nothing is copied.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semistream.algorithms.record import Parts
from semistream.budget import Share
from semistream.parts import block_waits, kept_pages
from semistream.parts.memory import I64
from semistream.parts.page import ALIGNMENT
from semistream.protocols import Load, Reader

_PACKING_BYTES = 64  # what a buffer of a database's rows needs beside the rows


def block_bytes(reader: Reader, wanted_bytes: int) -> int:
    """The size of a disk buffer for a block: as wanted, or one page if that is more."""
    least = reader.largest_page_bytes + (_PACKING_BYTES if reader.wants_keys else 0)
    return max(-(-least // ALIGNMENT), wanted_bytes // ALIGNMENT) * ALIGNMENT


def shares(reader: Reader, each_bytes: int, most_kept_bytes: int, weight: float) -> list[Share]:
    """One block at a time lies in memory, and kept blocks, and what must be known of pages and blocks."""
    blocks = -(-reader.pages // max(1, each_bytes // reader.largest_page_bytes))
    known = kept_pages.PAGE_BYTES * (reader.pages + 1) + (block_waits.BLOCK_BYTES + 8) * (blocks + 2)
    least = each_bytes + ALIGNMENT
    return [
        Share("block index", known + 8 * 64),
        Share("blocks", least, weight=weight, most=max(least, most_kept_bytes + least)),
    ]


class KeptBlocks:
    """Loads blocks, and keeps some."""

    def __init__(self, parts: Parts, each_bytes: int) -> None:
        *self._buffers, self._spare = parts.buffers("blocks", each_bytes)
        self._holds: I64 = np.full(len(self._buffers), -1, np.int64)  # block of every buffer but the spare one
        self._slab, self.pages = parts.slab, parts.reader.pages
        bounds = self._bounds() if parts.reader.word_order else range(self.pages + 1)
        self.blocks = max(1, len(bounds) - 1)  # of an empty master one block without pages
        self.bounds: I64 = self.take(self.blocks + 1, np.int64)
        self.bounds[: len(bounds)] = bounds
        self.asked = self.take(self.blocks, np.float64)
        self.at: I64 = self.take(self.pages, np.int64, -1)  # where in the slab a page lies

    def _bounds(self) -> list[int]:
        """First pages of blocks that are each as long as a buffer allows, and what comes behind the last one."""
        bounds = [0]
        while bounds[-1] < self.pages:
            bounds.append(self._spare.stop_of(bounds[-1]))
        return bounds

    def take(self, count: int, kind: Any, start: int = 0) -> Any:
        """An array of numbers for pages or blocks."""
        array = self._slab.take("block index", count, kind)
        array[:] = start
        return array

    @property
    def some(self) -> bool:
        """Whether any block is kept."""
        return bool((self._holds >= 0).any())

    def held(self) -> I64:
        """The blocks that are kept."""
        return self._holds[self._holds >= 0]

    def load(self, block: int) -> Load:
        """The pages of a block, from memory if it is kept, else from disk; then it is kept if it is asked for enough."""
        held = np.flatnonzero(self._holds == block)
        buffer = self._buffers[held[0]] if held.size else self._spare
        load = buffer.read(int(self.bounds[block]), int(self.bounds[block + 1]))
        if not held.size and self._buffers:
            self._offer(block, load)
        return load

    def _offer(self, block: int, load: Load) -> None:
        """Keep the block that lies in the spare buffer in place of the one that is asked for least, unless that is asked for more."""
        place = int(np.where(self._holds < 0, -1.0, self.asked[self._holds]).argmin())
        least = int(self._holds[place])
        if least >= 0:
            if self.asked[block] < self.asked[least]:
                return
            self.at[self.bounds[least] : self.bounds[least + 1]] = -1
        self._holds[place] = block
        self._buffers[place], self._spare = self._spare, self._buffers[place]
        self.at[self.bounds[block] : self.bounds[block + 1]] = load.page_at
