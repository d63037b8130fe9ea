"""Tuples that wait in bins, by the part of the master that holds their key, and the loads that serve them.

    admit   word -> bin -> record behind the bin's last one
    choose  bins whose tuples have waited longest, all waits of a bin added up (longest wait first: algorithms' square-root rule)
    serve   a bin's tuples by page -> loads of neighbouring pages -> rows of every tuple's page with its word -> pairs; all leave

Tuples of different bins have nothing in common, so several threads may serve bins at the same time, each with a `Desk` of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Lock
from typing import TypeAlias

import numpy as np

from semistream.budget import Slab
from semistream.desk import Desk
from semistream.parts import bins, page, page_search, tiles
from semistream.parts.memory import I32, I64
from semistream.protocols import Found, Load, Order, Reader
from semistream.stream_rows import StreamRows
from semistream.stream_side import NO_SLOTS, Block, Side, Waiting

# told of a load, how often each of its rows was asked for, and words that were asked for and that it lacks
Served: TypeAlias = Callable[[Load, I32, I64], None]


class Binned:
    """The bins, in tiles of a pool that others take from as well."""

    def __init__(
        self, slab: Slab, pool: tiles.Tiles, rows: StreamRows, reader: Reader, width: int, count: int, lock: Lock
    ) -> None:
        """At most `count` bins; `width` is that of a master row."""
        assert reader.order is not None
        codec = rows.codec
        self._reader, self._width = reader, width
        self._order: Order = reader.order
        self._tiles, self._lock, self._codec, self._memory = pool, lock, codec, slab.memory
        record, self.tile_bytes = bins.record_bytes(codec.width, bool(codec.cells)), int(pool.state[tiles.BYTES])
        at = int(pool.state[tiles.AT])
        block = slab.memory.b1[at : at + pool.link.size * self.tile_bytes]
        self._pages = reader.pages
        self._pages_per_bin = max(1, -(-reader.pages // count))
        firsts = np.arange(0, max(1, reader.pages), self._pages_per_bin)
        take = slab.take
        self.bins = bins.Bins(
            head=take("bins", firsts.size, np.int32),
            tail=take("bins", firsts.size, np.int32),
            numbers=take("bins", 4 * firsts.size, np.int64).reshape(-1, 4),
            filled=take("bins", pool.link.size, np.int32),
            records=block.view(np.int64).reshape(-1, record // 8),
        )
        bins.reset(self.bins)
        bounds = take("bins", firsts.size, np.int64)
        bounds[:] = self._order.first_words[firsts] if reader.pages else 0
        self._finder = page_search.finder_over(bounds, take("bins", page_search.finder_steps(firsts.size), np.int32))
        self._served_at = take("bins", firsts.size, np.int64)
        self.side = Waiting(
            codec, slab.memory, at, self.bins.records, bins.WORD, bins.STAMP, bins.HEAP if codec.cells else -1
        )
        self.slots = block.size // record  # if the cache held nothing
        self.widest_bytes = self.tile_bytes - record  # heap bytes of a tuple that can wait
        self.waiting, self.hurry = 0, False  # the oldest is served in any case
        self.holding = False
        self.now = 0  # stream position: tuples that came before this one
        self.period = 0.0  # stream tuples between two services of a bin, lately
        self.desks: list[Desk] = []

    # ------------------------------------------------------------------------------------------------ the area

    @property
    def wait_histogram(self) -> I64:
        """How long tuples waited."""
        total: I64 = np.sum([desk.wait_histogram for desk in self.desks], axis=0)
        return total

    @property
    def wait_max(self) -> int:
        """The longest wait."""
        return max(int(desk.longest[0]) for desk in self.desks)

    def oldest_position(self) -> int:
        """Stream position of the tuple that has waited longest, or -1."""
        return int(self.bins.numbers[:, bins.OLDEST].min()) if self.waiting else -1

    def admit(self, block: Block) -> int:
        """Take as many of the block's picks as there are tiles for; returns how many. None is wider than `widest_bytes`."""
        picks = block.picks
        found, admitted = np.empty(picks.size, np.int64), np.empty(picks.size, np.int64)
        page_search.bins_of(self._finder, block.words, picks, found)
        sizes = NO_SLOTS if block.encoded.sizes is None else block.encoded.sizes[picks]
        with self._lock:
            count = bins.admit(self.bins, self._tiles, block.words, picks, found, sizes, block.position, admitted)
        if count:
            admitted = admitted[:count]
            self._codec.pack(block.encoded, picks[:count], self._memory, *self.side.places(admitted))
            self.waiting += count
            self.now = block.position + int(picks[count - 1]) + 1
        return count

    # ------------------------------------------------------------------------------------------------ choosing

    def choose(self, share: float, most: int) -> list[I64]:
        """Bins that together hold this share of the waiting tuples (or `most` tuples, if that is more), in groups of neighbours.

        Those whose tuples have waited longest, all their waits added up, and in any case the one with the oldest tuple.
        """
        numbers = self.bins.numbers
        counts = numbers[:, bins.COUNT]
        order = np.argsort(numbers[:, bins.ARRIVED] - counts * self.now, kind="stable")
        oldest = int(numbers[:, bins.OLDEST].argmin())
        order = np.concatenate([[oldest], order[order != oldest]])
        wanted = min(self.waiting, max(int(share * self.waiting), most))
        reach = int(np.searchsorted(np.cumsum(counts[order]), wanted)) + 1
        chosen = np.sort(order[:reach])
        chosen = chosen[counts[chosen] > 0]
        groups = np.cumsum(counts[chosen]) // max(1, most)
        return [part for part in np.split(chosen, np.flatnonzero(np.diff(groups)) + 1) if part.size]

    # ------------------------------------------------------------------------------------------------ serving

    def serve(self, desk: Desk, group: I64, served: Served) -> Iterator[Found]:
        """Answer all tuples of some bins; `served` is told of every load. The bins are empty afterwards."""
        low = int(group[0]) * self._pages_per_bin
        high = min(self._pages, (int(group[-1]) + 1) * self._pages_per_bin)
        count = 0
        for one in group.tolist():
            cursor = np.array([-1, 0], np.int64)
            while cursor[0] != -2:
                count += bins.list_tuples(self.bins, self._tiles, one, cursor, desk.picks[count:], desk.words[count:])
                if cursor[0] != -2:  # the desk is full
                    yield from self._look_up(desk, self.side, count, (low, high), served)
                    count = 0
        yield from self._look_up(desk, self.side, count, (low, high), served)
        for one in group.tolist():
            longest = bins.add_waits(self.bins, self._tiles, one, desk.wait_histogram, self.now)
            desk.longest[0] = max(int(desk.longest[0]), longest)
        with self._lock:
            counts = self.bins.numbers[group, bins.COUNT]
            self.waiting -= int(counts.sum())
            passed = float(np.average(self.now - self._served_at[group], weights=counts))
            self.period = passed if self.period == 0.0 else 0.9 * self.period + 0.1 * passed
            self._served_at[group] = self.now
            for one in group.tolist():
                bins.clear(self.bins, self._tiles, one)

    def serve_at_once(self, desk: Desk, block: Block, picks: I64, served: Served) -> Iterator[Found]:
        """Answer tuples that cannot wait, because they are too wide."""
        for start in range(0, picks.size, desk.picks.size):
            part = picks[start : start + desk.picks.size]
            desk.picks[: part.size], desk.words[: part.size] = part, block.words[part]
            yield from self._look_up(desk, block, part.size, (0, self._pages), served)

    def _look_up(self, desk: Desk, side: Side, count: int, span: tuple[int, int], served: Served) -> Iterator[Found]:
        """Answer the desk's tuples, whose words lie between two pages."""
        low, high = span
        if not count:
            return
        order, pages = desk.order[:count], desk.pages[:count]
        firsts, continues = self._order.first_words[low:high], self._order.continues[low:high]
        page_at = self._order.page_at[low : high + 1]
        page_search.pages_of(firsts, continues, desk.words[:count], pages)
        if high - low + 2 <= desk.starts.size:
            at = page_search.by_page(pages, desk.starts[: high - low + 2], order)
        else:
            order[:] = np.argsort(pages, kind="stable")
            at = int(np.searchsorted(pages[order], 0))
        if at:
            yield from self._elsewhere(desk, side, order[:at], served)
        room, gap = desk.buffer.room_bytes, self._reader.gap_bytes
        while at < count:
            first, stop, end = page_search.next_load(pages, order, at, page_at, room, gap)
            load = desk.buffer.read(low + first, low + stop)
            yield from self._serve_load(desk, side, load, int(first), order[at:end], served)
            at = end

    def _serve_load(
        self, desk: Desk, side: Side, load: Load, first: int, order: I64, served: Served
    ) -> Iterator[Found]:
        """Pair tuples with the rows of a load, which holds all rows of their words."""
        cursor = np.array([0, -1, 0], np.int64)
        wanted = page_search.Wanted(desk.picks, desk.words, desk.pages, desk.absent)
        asked = desk.asked[: page.count_rows(self._memory.b4, load.page_at)]
        asked.fill(0)
        while cursor[0] < order.size:
            count = page_search.match(
                self._memory, load.page_at, first, self._width, wanted, order, cursor, desk.pairs, asked
            )
            gone = desk.picks[order] if cursor[0] == order.size else NO_SLOTS
            yield self._found(desk, side, count, gone)
        served(load, asked, desk.words[desk.absent[: int(cursor[2])]])

    def _elsewhere(self, desk: Desk, side: Side, order: I64, served: Served) -> Iterator[Found]:
        """Answer tuples whose words come before all pages, or whose rows stand in several."""
        nowhere = order[desk.pages[order] == -1]
        if nowhere.size:
            yield self._found(desk, side, 0, desk.picks[nowhere])
        several = order[desk.pages[order] == -2]
        words = desk.words[several]
        for word in np.unique(words).tolist():
            yield from self._serve_word(desk, side, several[words == word], word)

    def _serve_word(self, desk: Desk, side: Side, order: I64, word: int) -> Iterator[Found]:
        """Answer the tuples of one word whose rows fill more than a page."""
        wanted = page_search.Wanted(desk.picks, desk.words, desk.pages, desk.absent)
        for first, behind in self._reader.look_up(word, []):
            while first < behind:
                stop = min(behind, desk.buffer.stop_of(first))
                load = desk.buffer.read(first, stop)
                for number in range(first, stop):
                    desk.pages[order] = number
                    cursor = np.array([0, -1, 0], np.int64)
                    while cursor[0] < order.size:
                        count = page_search.match(
                            self._memory,
                            load.page_at,
                            first,
                            self._width,
                            wanted,
                            order,
                            cursor,
                            desk.pairs,
                            desk.asked,
                        )
                        yield self._found(desk, side, count, NO_SLOTS)
                first = stop
        yield self._found(desk, side, 0, desk.picks[order])

    def _found(self, desk: Desk, side: Side, count: int, gone: I64) -> Found:
        pairs = desk.pairs
        return Found(side, pairs.picks[:count], pairs.row_at[:count], pairs.heap_at[:count], gone)


def bytes_of_bins(count: int, tile_count: int) -> int:
    """What bins take besides tiles."""
    return count * (8 + 32 + 8 + 8) + 4 * page_search.finder_steps(count) + 4 * tile_count + 8 * 64
