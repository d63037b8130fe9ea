"""The intermediate buffer: where tuples stand in line between two threads, in the order of the stream.

    stream phase -- append --> | tuple | tuple | tuple | ... | -- arrivals, drop --> disk phase
                               ^ head                        ^ tail

Nobody meets a master row here. One thread appends and moves the tail, once rows are written; another takes and moves the head, once rows
are copied. So neither ever sees half a tuple, and there is nothing to lock. A row too wide for the buffer is held out by the one and taken
straight from its batch by the other, when all before it have gone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semistream.budget import Share, Slab
from semistream.parts import ring
from semistream.parts.memory import I64, Memory
from semistream.protocols import Area
from semistream.records import RowCodec
from semistream.stream_rows import StreamRows
from semistream.stream_side import NO_SLOTS, Arriving, Block, Waiting

PART = "intermediate buffer"
_WORD, _STAMP, _SIZE, _CELLS = 0, 1, 2, 3  # of a record; the last two only if rows have cells
_LEAST, _PADDING, _AT_ONCE = 16, 4 * 64, 4096


def _record_bytes(rows: StreamRows) -> int:
    return (32 if rows.codec.cells else 16) + -(-rows.codec.width // 8) * 8


def _cell_bytes(rows: StreamRows) -> float:
    return 1.15 * (rows.heap_bytes + 8) if rows.codec.cells else 0.0


def share(rows: StreamRows, most_bytes: int) -> Share:
    """So many bytes, and room for some tuples at least."""
    least = int(_LEAST * (_record_bytes(rows) + _cell_bytes(rows))) + _PADDING
    return Share(PART, least, weight=1.0, most=max(least, most_bytes))


class Moving(NamedTuple):
    """The oldest tuples of the buffer, on their way to where they will wait."""

    words: I64
    stamps: I64
    picks: I64
    side: Waiting
    records: I64  # their numbers
    sizes: I64

    def sizes_of(self, picks: I64) -> I64:
        """See `Arriving`."""
        return self.sizes[picks]

    def pack(self, codec: RowCodec, picks: I64, memory: Memory, row_at: I64, heap_at: I64) -> None:
        """See `Arriving`."""
        rows, cells = self.side.places(self.records[picks])
        ring.move_rows(memory, rows, row_at, codec.width)
        if self.sizes.size:
            ring.move_cells(memory, cells, heap_at, self.sizes[picks])


class IntermediateBuffer:
    """Tuples in line, within `given_bytes` of the slab."""

    def __init__(self, slab: Slab, rows: StreamRows, given_bytes: int) -> None:
        self._codec, self._memory, record_bytes = rows.codec, slab.memory, _record_bytes(rows)
        self.slots = max(_LEAST, int((given_bytes - _PADDING) / (record_bytes + _cell_bytes(rows))))
        at = slab.place(PART, self.slots * record_bytes)
        records = slab.memory.b1[at:][: self.slots * record_bytes].view(np.int64)
        self._records: I64 = records.reshape(self.slots, record_bytes // 8)
        self._side = Waiting(
            rows.codec, slab.memory, at, self._records, _WORD, _STAMP, _CELLS if rows.codec.cells else -1
        )
        self._room = (given_bytes - self.slots * record_bytes - 128) // 8 * 8 if rows.codec.cells else 0
        self._cells_at = slab.place(PART, self._room)
        self._head = self._tail = 0  # tuples that have gone, and that have come
        self._cells_head = self._cells_tail = 0
        self._wide: Block | None = None  # its first tuple is too wide for the buffer
        self._wide_taken = False
        self.now = 0  # stream position: tuples that came before this one

    @property
    def waiting(self) -> int:
        """Tuples in line."""
        return self._tail - self._head + (self._wide is not None and not self._wide_taken)

    @property
    def holding(self) -> bool:
        """Whether a tuple too wide for the line is served from its block: the next `append` of that block will count it."""
        return self._wide is not None

    def oldest_position(self) -> int:
        """Stream position of the oldest tuple, or -1; for the thread that appends."""
        head = self._head
        if head < self._tail:
            return int(self._records[head % self.slots, _STAMP]) >> 1
        wide = self._wide
        return -1 if wide is None or self._wide_taken else int(wide.stamps[wide.picks[0]]) >> 1

    # ------------------------------------------------------------------------------------------------ the one thread

    def append(self, block: Block) -> int:
        """Take as many of the block's picks as have room; returns how many."""
        if self._wide is not None:
            if not self._wide_taken:
                return 0
            self._wide, self._wide_taken = None, False
            return 1
        picks = block.picks[: self.slots - (self._tail - self._head)]
        cells, cells_tail = NO_SLOTS, 0
        if self._codec.cells:
            sizes, cells = block.sizes_of(picks), np.empty(picks.size, np.int64)
            fit, cells_tail = ring.reserve(self._room, self._cells_head, self._cells_tail, sizes, cells)
            if not fit and picks.size and self._head == self._tail:
                self._wide = block
            picks, cells, sizes = picks[:fit], cells[:fit] + self._cells_at, sizes[:fit]
        if not picks.size:
            return 0
        numbers = (self._tail + np.arange(picks.size)) % self.slots
        self._records[numbers, _WORD], self._records[numbers, _STAMP] = block.words[picks], block.stamps[picks]
        if self._codec.cells:
            self._records[numbers, _SIZE], self._records[numbers, _CELLS] = sizes, cells
        block.pack(self._codec, picks, self._memory, *self._side.places(numbers))
        self.now = (int(block.stamps[picks[-1]]) >> 1) + 1
        self._cells_tail = cells_tail
        self._tail += picks.size  # last of all: now they can be seen
        return picks.size

    # ------------------------------------------------------------------------------------------------ the other thread

    def arrivals(self, most: int) -> Arriving | None:
        """The oldest tuples in line, `most` of them or fewer."""
        count = min(self._tail - self._head, most, _AT_ONCE)
        if not count:
            wide = self._wide
            return None if wide is None or self._wide_taken else wide._replace(picks=wide.picks[:1])
        numbers = (self._head + np.arange(count)) % self.slots
        words, stamps = self._records[numbers, _WORD], self._records[numbers, _STAMP]
        sizes = self._records[numbers, _SIZE] if self._codec.cells else NO_SLOTS
        return Moving(words, stamps, np.arange(count), self._side, numbers, sizes)

    def drop(self, count: int) -> None:
        """So many of the oldest have been taken."""
        if self._head == self._tail:
            assert self._wide is not None
            self.now, self._wide_taken = (int(self._wide.stamps[self._wide.picks[0]]) >> 1) + 1, True
            return
        if self._codec.cells:
            numbers = (self._head + np.arange(count)) % self.slots
            self._cells_head = ring.release(self._room, self._cells_head, self._records[numbers, _SIZE])
        self._head += count


class BothRooms:
    """Tuples in line, and those in the stream table behind: an `Area` of which any thread may ask."""

    def __init__(self, line: IntermediateBuffer, table: Area) -> None:
        self._line, self._table = line, table
        self.slots = line.slots + table.slots
        self._oldest = -1  # in the table, as it was when somebody last looked from the thread that serves it

    @property
    def hurry(self) -> bool:
        """See `Area`."""
        return self._table.hurry

    @hurry.setter
    def hurry(self, hurry: bool) -> None:
        self._table.hurry = hurry

    @property
    def waiting(self) -> int:
        """See `Area`. Tuples are in the table before they have left the line, so that this order counts none too few."""
        return self._line.waiting + self._table.waiting

    @property
    def holding(self) -> bool:
        """See `Area`."""
        return self._line.holding

    @property
    def wait_histogram(self) -> I64:
        """See `Area`."""
        return self._table.wait_histogram

    @property
    def wait_max(self) -> int:
        """See `Area`."""
        return self._table.wait_max

    def oldest_position(self) -> int:
        """See `Area`. It may be that of a tuple that has just left, never that of one too young."""
        in_line = self._line.oldest_position()
        return self._oldest if self._oldest >= 0 else in_line

    def look(self) -> None:
        """Note who is the oldest in the table; for the thread that serves it."""
        self._oldest = self._table.oldest_position()
