"""Pending stream tuples: what every recipe admits into, probes and lets leave.

`Pending` puts the parts together (slots, stream table, arrival queue, row heap) and gives recipes a few verbs. Verbs that
can find many matches are generators of `Found`: each item fits the match list, and tuples are freed only after the join has
settled it.

    admit(block)        as many of the block's tuples as have room
    probe(load)         every row of the load against every pending tuple (scans)
    claim(load)         the same for rows in word order; tuples whose word is complete leave
    probe_word(load, w) the rows of one word only; `probe_words` takes several
    leave_word(w)       the tuples of a word leave, matched or not; `leave_words` takes several
    leave_oldest(n)     the oldest tuples leave, matched or not
    leave_chains(heads) tuples leave that a kernel has detached; `leave_absent` if the master lacks their words
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from semistream.budget import Slab
from semistream.parts import probing, queue_mark, row_heap, slots, stream_table, waits
from semistream.parts.memory import I64
from semistream.protocols import Found, Keeper, Load
from semistream.showing import Showing
from semistream.stream_rows import SETTLING_BYTES, StreamRows, refuse_row
from semistream.stream_side import NO_SLOTS, Arriving, Waiting

_REFILL_ROWS = 4096  # admit that many at once: admitting a handful after every step costs more than it gains


class Pending:
    """Tuples that wait, within `given_bytes` of the slab."""

    def __init__(
        self,
        slab: Slab,
        rows: StreamRows,
        given_bytes: int,
        matches: int,
        row_width: int,
        keeper: Keeper | None = None,
    ) -> None:
        self.codec, self._memory, self._row_width = rows.codec, slab.memory, row_width
        take = slab.take
        self.slots = rows.slots_in(given_bytes)
        at, self.table = rows.new_table(slab, self.slots)
        self.records = self.table.slots
        self._ends = take("stream table", 2, np.int64)
        self._ends[:] = -1
        heap = slots.HEAP if rows.codec.cells else -1
        self.side = Waiting(rows.codec, slab.memory, at, self.records.wide, slots.WORD, slots.ARRIVED, heap)
        self.heap: row_heap.RowHeap | None = None
        if rows.codec.cells:
            self.heap = row_heap.RowHeap(take("stream table", 4, np.int64))
            self._heap_at = self.records.wide[:, slots.HEAP]
            left = (given_bytes - slab.bytes_by_part["stream table"]) // 8 * 8 - 64
            heap_at = slab.place("stream table", left)
            row_heap.reset(self.heap, heap_at, heap_at + left)
        self._picked, self._found = (
            probing.Picked(*(take("matches", matches, np.int64) for _ in range(3))) for _ in range(2)
        )
        self._heads, self._gone = (take("matches", matches, np.int64) for _ in range(2))
        self._showing = Showing(keeper, self.table, self._found, self._heads) if keeper is not None else None
        slab.charge("matches", SETTLING_BYTES * matches)
        self.refill = max(1, min(_REFILL_ROWS, self.slots // 48))
        self.admitted = NO_SLOTS  # slots of the latest admission
        self.mark: I64 | None = None  # a place in the arrival queue that somebody wants to be kept
        self.now = 0  # stream position: tuples that came before this one
        self.wait_histogram: I64 = np.zeros(waits.BUCKETS, np.int64)
        self.wait_max, self.hurry, self.holding = 0, False, False
        stream_table.reset(self.table)

    @property
    def waiting(self) -> int:
        """Tuples that wait."""
        return int(self.table.state[stream_table.PENDING])

    def keys_of(self, words: Iterable[int], names: list[str]) -> list[tuple[Any, ...]]:
        """The different keys that wait on some words, for masters that look keys up by value."""
        return self.side.distinct(
            np.concatenate([NO_SLOTS, *(stream_table.chain_of(self.table, word) for word in words)]), names
        )

    def oldest(self) -> int:
        """Slot of the tuple that has waited longest, or -1."""
        return int(self._ends[0])

    def oldest_word(self) -> int:
        """Word of the tuple that has waited longest."""
        return int(self.side.words[self.oldest()])

    def newest_word(self) -> int:
        """Word of the tuple that came last."""
        return int(self.side.words[int(self._ends[1])])

    def oldest_words(self, count: int) -> I64:
        """The different words of the oldest tuples, in order; those of `count` tuples at most."""
        oldest = self._gone[: min(count, self._gone.size)]
        return np.unique(self.side.words[oldest[: slots.oldest(self.records, self._ends, oldest)]])

    def waits_for(self, word: int) -> bool:
        """Whether somebody waits for a word."""
        return int(stream_table.head_of(self.table, word)) >= 0

    def oldest_position(self) -> int:
        """Stream position of the tuple that has waited longest, or -1."""
        oldest = self.oldest()
        return -1 if oldest < 0 else int(self.side.stamps[oldest]) >> 1

    def admit(self, block: Arriving, most: int) -> int:
        """Admit as many of the block's picks as have room, at most `most`; returns how many."""
        most = min(most, block.picks.size)
        free = self.slots - self.waiting
        if most <= 0 or free < min(most, self.refill):
            return 0
        picks, sizes = block.picks[: min(most, free)], NO_SLOTS
        if self.heap is not None:
            sizes = block.sizes_of(picks)
            fit = row_heap.room(self.heap, sizes)
            if not fit and not self.waiting:
                refuse_row(int(sizes[0]), row_heap.capacity(self.heap), self._memory.b1.size)
            if fit < min(picks.size, self.refill) and self.waiting:
                return 0
            picks, sizes = picks[:fit], sizes[:fit]
        admitted = np.empty(picks.size, np.int64)
        stream_table.admit(self.table, block.words, block.stamps, picks, admitted)
        if self.heap is not None:
            row_heap.reserve(self.heap, self._memory, self._heap_at, admitted, sizes)
        block.pack(self.codec, picks, self._memory, *self.side.places(admitted))
        slots.enqueue(self.records, self._ends, admitted)
        self.now, self.admitted = (int(block.stamps[picks[-1]]) >> 1) + 1, admitted
        return picks.size

    # ------------------------------------------------------------------------------------------------ probing

    def probe(self, load: Load, whole: bool = False) -> Iterator[Found]:
        """Pair every row of the load with every waiting tuple of its word; with `whole`, rows of words that are complete in it."""
        for picked, more in self._sift(load):
            if self._showing is not None:
                self._showing.piece(picked, load.open_words, more)
            yield from self._probe(probing.closed(picked, load.open_words) if whole else picked)

    def probe_word(self, load: Load, word: int) -> Iterator[Found]:
        """Pair the rows of one word with the tuples that wait for it."""
        if self.waits_for(word):
            yield from self.probe_words(load, np.array([word], np.int64))

    def probe_words(self, load: Load, words: I64) -> Iterator[Found]:
        """Pair the rows of some words, given in order, with the tuples that wait for them."""
        for picked, _ in self._sift(load):
            places = np.minimum(words.searchsorted(picked.words), words.size - 1)
            rows = np.flatnonzero(words[places] == picked.words)
            mine = probing.Picked(*(array[rows] for array in picked))
            if self._showing is not None:
                self._showing.rows_of(mine)
            yield from self._probe(mine)

    def claim(self, load: Load) -> Iterator[Found]:
        """As `probe`, for rows in word order; tuples whose word is complete in this load leave."""
        carried: int | None = None  # word whose rows may go on in the next piece of the load
        for picked, more in self._sift(load):
            if self._showing is not None:
                self._showing.piece(picked, load.open_words, more)
            picked = probing.closed(picked, load.open_words)
            if carried is not None and not (picked.words.size and picked.words[0] == carried):
                head = stream_table.detach_word(self.table, carried)  # its tuples have seen its rows in pieces before
                yield from self.leave_chains(np.array([head] if head >= 0 else [], np.int64))
            cursor = np.array([0, -1, 0], np.int64)
            while cursor[0] < picked.words.size:
                cursor[2] = 0
                pairs = probing.claim(self.table, picked, cursor, self._found, self._heads, more)
                yield self._pairs(pairs)
                yield from self.leave_chains(self._heads[: int(cursor[2])])
            carried = int(picked.words[-1]) if more and picked.words.size else None

    def _probe(self, picked: probing.Picked) -> Iterator[Found]:
        cursor = np.array([0, -1], np.int64)
        while cursor[0] < picked.words.size:
            yield self._pairs(probing.probe(self.table, picked, cursor, self._found))

    def _sift(self, load: Load) -> Iterator[tuple[probing.Picked, bool]]:
        """Rows of the load that probably match, in pieces of the match list's length, and whether more pieces follow."""
        cursor = np.zeros(2, np.int64)
        while cursor[0] < load.page_at.size:
            count = probing.pick_rows(self.table, self._memory, load.page_at, self._row_width, cursor, self._picked)
            yield probing.Picked(*(array[:count] for array in self._picked)), bool(cursor[0] < load.page_at.size)

    # ------------------------------------------------------------------------------------------------ leaving

    def leave_word(self, word: int) -> Iterator[Found]:
        """The tuples of a word leave, matched or not: all its rows have been probed."""
        yield from self.leave_words(np.array([word], np.int64))

    def leave_words(self, words: I64) -> Iterator[Found]:
        """The tuples of some words leave, matched or not: all their rows have been probed."""
        if self._showing is not None:
            for word in words.tolist():
                self._showing.finish(word)
        for start in range(0, words.size, self._heads.size):
            some = words[start : start + self._heads.size]
            count = stream_table.detach_words(self.table, some, self._heads)
            yield from self.leave_chains(self._heads[:count])

    def leave(self, picks: I64) -> Iterator[Found]:
        """These tuples leave, matched or not."""
        stream_table.detach(self.table, picks)
        yield Found(self.side, NO_SLOTS, NO_SLOTS, NO_SLOTS, picks)
        self._free(picks)

    def leave_oldest(self, count: int) -> Iterator[Found]:
        """The `count` oldest tuples leave, matched or not."""
        while count > 0:
            gone = self._gone[: min(count, self._gone.size)]
            gone = gone[: slots.oldest(self.records, self._ends, gone)]
            if not gone.size:
                return
            yield from self.leave(gone)
            count -= gone.size

    def _pairs(self, count: int) -> Found:
        words, row_at, heap_at = (array[:count] for array in self._found)
        return Found(self.side, words, row_at, heap_at, NO_SLOTS)

    def leave_absent(self, heads: I64) -> Iterator[Found]:
        """The tuples of detached chains leave: the master lacks their words."""
        if self._showing is not None:
            self._showing.absent(heads)
        yield from self.leave_chains(heads)

    def leave_chains(self, heads: I64) -> Iterator[Found]:
        """The tuples of detached chains leave, matched or not."""
        while heads.size and (count := stream_table.unchain(self.table, heads, self._gone)):
            gone = self._gone[:count]
            yield Found(self.side, NO_SLOTS, NO_SLOTS, NO_SLOTS, gone)
            self._free(gone)

    def _free(self, gone: I64) -> None:
        longest = waits.add_waits(self.wait_histogram, self.side.stamps, gone, self.now)
        self.wait_max = max(self.wait_max, longest)
        if self.mark is None:
            slots.dequeue(self.records, self._ends, gone)
        else:
            queue_mark.dequeue(self.records, self._ends, self.mark, gone)
        if self.heap is not None:
            row_heap.release(self.heap, self._memory, self._heap_at, gone)
        stream_table.free(self.table, gone)
