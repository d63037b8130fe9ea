"""A master in word order, cut into blocks of neighbouring pages: who waits for each, how often each is asked for, which are kept in memory.

Two recipes are made of it: they differ in which block is next, and in when. Tuples of kept blocks are answered as they arrive; the others
hang on their block and leave together when it is served.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import numpy as np

from semistream.algorithms import kept_blocks
from semistream.algorithms.record import Parts
from semistream.algorithms.serving import WordServer
from semistream.budget import Share
from semistream.parts import block_waits, kept_pages
from semistream.parts.memory import I64
from semistream.pending import Pending
from semistream.protocols import Found, Order, Reader
from semistream.stream_rows import match_count
from semistream.stream_side import Block


def shares(reader: Reader, memory_bytes: int, each_bytes: int, most_kept_bytes: int, weight: float) -> list[Share]:
    """Blocks, a list of answers, and a disk buffer for words that a block alone cannot complete."""
    return [
        *kept_blocks.shares(reader, each_bytes, most_kept_bytes, weight),
        Share("answers", 4 * 8 * match_count(memory_bytes) + 4 * 64),
        Share("disk buffer", reader.largest_page_bytes + 8192),
    ]


class Blocks:
    """The blocks of one join."""

    def __init__(self, parts: Parts, order: Order, pending: Pending, each_bytes: int) -> None:
        self._pending = pending
        self._server = WordServer(parts.reader, parts.buffer(), pending, parts.key_names)
        self._memory, self._width = parts.slab.memory, parts.master_codec.width
        self.kept = kept = kept_blocks.KeptBlocks(parts, each_bytes)
        block = kept.take(max(1, kept.pages), np.int32)
        block[: kept.pages] = np.repeat(np.arange(kept.blocks, dtype=np.int32), np.diff(kept.bounds))
        self._waits = block_waits.BlockWaits(
            first_words=order.first_words,
            block=block,
            head=kept.take(kept.blocks, np.int32, -1),
            count=kept.take(kept.blocks, np.int64),
            asked=kept.asked,
            link=parts.slab.take("stream table", pending.slots, np.int32),
        )
        self.waiting: I64 = self._waits.count  # tuples that wait for every block
        self._pages = kept_pages.KeptPages(order.first_words, order.continues, kept.at, block, kept.asked)
        matches = match_count(parts.slab.total_bytes)
        self._found = kept_pages.Answers(*(parts.slab.take("answers", matches, np.int64) for _ in range(4)))

    def answer(self, block: Block) -> Generator[Found, None, Block]:
        """Answer tuples of a batch whose rows are all kept; returns the block with the others."""
        if not self.kept.some:
            return block
        asked = kept_pages.Questions(block.words, block.picks, np.empty(block.picks.size, np.int64))
        cursor = np.array([0, -1, 0, 0, 0], np.int64)
        found = self._found
        while cursor[kept_pages.PICK] < block.picks.size:
            pairs = kept_pages.answer(self._pages, self._memory, self._width, asked, cursor, found)
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

    def serve(self, block: int) -> Iterator[Found]:
        """Answer everybody who waits for a block; they leave."""
        if self.kept.pages:
            load = self.kept.load(block)
            yield from self._pending.probe(load, whole=True)
            flag, word = load.open_words[:2].tolist()
            if flag and self._block_of(word) == block:  # it ends here and began before
                yield from self._server.pair(word)
        while (count := block_waits.take(self._waits, block, self._found.gone)) > 0:
            yield from self._pending.leave(self._found.gone[:count])
