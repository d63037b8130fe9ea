"""A master in word order, cut into blocks of neighbouring pages: who waits for each, how often each is asked for, which are kept in memory.

Two recipes are made of it: they differ in which block is next, and in when. Tuples of kept blocks are answered as they arrive; the others
hang on their block and leave together when it is served.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import numpy as np

from semistream.algorithms.record import Parts
from semistream.algorithms.serving import WordServer
from semistream.budget import Share
from semistream.parts import block_waits, kept_pages
from semistream.parts.memory import I64
from semistream.parts.page import ALIGNMENT
from semistream.pending import Pending
from semistream.protocols import Found, Load, Order, Reader
from semistream.stream_rows import match_count
from semistream.stream_side import Block


def block_bytes(reader: Reader, wanted_bytes: int) -> int:
    """The size of a disk buffer for a block: as wanted, or one page if that is more."""
    return max(-(-reader.largest_page_bytes // ALIGNMENT), wanted_bytes // ALIGNMENT) * ALIGNMENT


def shares(reader: Reader, memory_bytes: int, each_bytes: int, most_kept_bytes: int, weight: float) -> list[Share]:
    """One block at a time lies in memory, and kept blocks; what must be known of pages and blocks; a list of answers."""
    blocks = -(-reader.pages // max(1, each_bytes // reader.largest_page_bytes))
    known = kept_pages.PAGE_BYTES * reader.pages + (block_waits.BLOCK_BYTES + 8) * (blocks + 1)
    least = each_bytes + ALIGNMENT
    return [
        Share("block index", known + 8 * 64),
        Share("answers", 4 * 8 * match_count(memory_bytes) + 4 * 64),
        Share("blocks", least, weight=weight, most=max(least, most_kept_bytes + least)),
        Share("disk buffer", reader.largest_page_bytes + 8192),  # for words that a block alone cannot complete
    ]


class Blocks:
    """The blocks of one join."""

    def __init__(self, parts: Parts, order: Order, pending: Pending, each_bytes: int) -> None:
        self._pending, self._order = pending, order
        self._server = WordServer(parts.reader, parts.buffer(), pending, parts.key_names)
        *self._buffers, self._spare = parts.buffers("blocks", each_bytes)
        self._holds: I64 = np.full(len(self._buffers), -1, np.int64)  # block of every buffer but the spare one
        self._memory, self._width = parts.slab.memory, parts.master_codec.width
        pages, bounds = parts.reader.pages, [0]
        while bounds[-1] < pages:
            bounds.append(self._spare.stop_of(bounds[-1]))
        bounds += [0] if not pages else []  # of an empty master one block without pages

        def take(part: str, count: int, kind: Any, start: int = 0) -> Any:
            array = parts.slab.take(part, count, kind)
            array[:] = start
            return array

        self.blocks = len(bounds) - 1
        self._bounds = take("block index", self.blocks + 1, np.int64)
        self._bounds[:] = bounds
        block = take("block index", max(1, pages), np.int32)
        block[:pages] = np.repeat(np.arange(self.blocks, dtype=np.int32), np.diff(self._bounds))
        self.asked = take("block index", self.blocks, np.float64)
        self._at = take("block index", pages, np.int64, -1)
        self._waits = block_waits.BlockWaits(
            first_words=order.first_words,
            block=block,
            head=take("block index", self.blocks, np.int32, -1),
            count=take("block index", self.blocks, np.int64),
            asked=self.asked,
            link=take("stream table", pending.slots, np.int32),
        )
        self.waiting: I64 = self._waits.count  # tuples that wait for every block
        self._kept = kept_pages.KeptPages(order.first_words, order.continues, self._at, block, self.asked)
        matches = match_count(parts.slab.total_bytes)
        self._found = kept_pages.Answers(*(take("answers", matches, np.int64) for _ in range(4)))

    # ------------------------------------------------------------------------------------------------ stream tuples

    def answer(self, block: Block) -> Generator[Found, None, Block]:
        """Answer tuples of a batch whose rows are all kept; returns the block with the others."""
        if (self._holds < 0).all():
            return block
        asked = kept_pages.Questions(block.words, block.picks, np.empty(block.picks.size, np.int64))
        cursor = np.array([0, -1, 0, 0, 0], np.int64)
        found = self._found
        while cursor[kept_pages.PICK] < block.picks.size:
            pairs = kept_pages.answer(self._kept, self._memory, self._width, asked, cursor, found)
            gone = found.gone[: cursor[kept_pages.GONE]]
            if gone.size or pairs:
                yield Found(block, found.picks[:pairs], found.row_at[:pairs], found.heap_at[:pairs], gone)
        return block._replace(picks=asked.left[: cursor[kept_pages.LEFT]])

    def enter(self) -> None:
        """Hang the tuples that were admitted last on their blocks."""
        block_waits.enter(self._waits, self._pending.records, self._pending.admitted)

    def block_of_oldest(self) -> int:
        """The block of the tuple that has waited longest."""
        return self._block_of(self._pending.oldest_word())

    def _block_of(self, word: int) -> int:
        return int(block_waits.block_of(self._waits, word))

    # ------------------------------------------------------------------------------------------------ serving

    def serve(self, block: int) -> Iterator[Found]:
        """Answer everybody who waits for a block; they leave. It is kept if it is asked for more than another that is."""
        if self._at.size:
            yield from self._pair(block)
        while (count := block_waits.take(self._waits, block, self._found.gone)) > 0:
            yield from self._pending.leave(self._found.gone[:count])

    def _pair(self, block: int) -> Iterator[Found]:
        load, stays = self._load(block)
        yield from self._pending.probe(load, whole=True)
        if not stays:
            self._offer(block, load)
        flag, word = load.open_words[:2].tolist()
        if flag and self._block_of(word) == block:  # it ends here and began before
            yield from self._server.pair(word)

    def _load(self, block: int) -> tuple[Load, bool]:
        """The pages of a block, and whether they were in memory already."""
        held = np.flatnonzero(self._holds == block)
        buffer = self._buffers[held[0]] if held.size else self._spare
        return buffer.read(int(self._bounds[block]), int(self._bounds[block + 1])), bool(held.size)

    def _offer(self, block: int, load: Load) -> None:
        """Let a block stay in memory, in place of the one that is asked for least, if that is not asked for more."""
        if not self._buffers:
            return
        place = int(np.where(self._holds < 0, -1.0, self.asked[self._holds]).argmin())
        least = int(self._holds[place])
        if least >= 0:
            if self.asked[block] < self.asked[least]:
                return
            self._at[self._bounds[least] : self._bounds[least + 1]] = -1
        self._holds[place] = block
        self._buffers[place], self._spare = self._spare, self._buffers[place]
        self._at[self._bounds[block] : self._bounds[block + 1]] = load.page_at
