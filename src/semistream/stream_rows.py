"""What waiting stream tuples ask of the budget."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import numpy as np

from semistream.budget import Share, Slab
from semistream.errors import BudgetError
from semistream.parts import row_heap, slots, stream_table
from semistream.parts.stream_table import StreamTable
from semistream.records import RowCodec

PAIR_BYTES = 8 * 8  # the lists of picked rows, found pairs, leaving chains and leaving tuples
SETTLING_BYTES = 5 * 8  # arrays that are made for a pair while it is settled
_LEAST_SLOTS = 16
_PADDING = 16 * 64  # arrays begin at multiples of 64 bytes
_HEAP_SLACK = 1.15  # rows are not all of average length, and a heap that is nearly full compacts too often


def match_count(memory_bytes: int) -> int:
    """Length of the list of found pairs."""
    return max(64, min(8192, memory_bytes // 4096))


def refuse_row(row_bytes: int, room_bytes: int, memory_bytes: int) -> None:
    """A row that could never wait."""
    raise BudgetError(
        f"stream rows: one row has {row_bytes} bytes of text or binary values and all waiting rows together may have {room_bytes}; "
        f"give the join more memory (about {4 * row_bytes} bytes more) or drop the wide column",
        part="stream rows",
        needed_bytes=row_bytes,
        smallest_bytes=memory_bytes + 4 * row_bytes,
    )


class StreamRows(NamedTuple):
    """What the stream's rows need: their codec, and the heap bytes a typical row takes."""

    codec: RowCodec
    heap_bytes: float

    def record_bytes(self) -> int:
        """Bytes of a waiting tuple's record."""
        return slots.record_bytes(self.codec.width, bool(self.codec.cells))

    def slots_in(self, given_bytes: int, extra_bytes: int = 0) -> int:
        """How many tuples may wait in so many bytes, if a recipe keeps `extra_bytes` for each."""
        return max(_LEAST_SLOTS, int((given_bytes - _PADDING) / (self.slot_bytes() + extra_bytes)))

    def bytes_for(self, slots: int) -> int:
        """Bytes in which so many tuples may wait."""
        return ceil(slots * self.slot_bytes()) + _PADDING

    def slot_bytes(self) -> float:
        """Bytes a waiting tuple costs, everything counted."""
        heap = (self.heap_bytes + 8 + row_heap.RECORD_BYTES) * _HEAP_SLACK if self.codec.cells else 0
        return self.record_bytes() + stream_table.ENTRIES_PER_SLOT * stream_table.ENTRY_BYTES + heap

    def new_table(self, slab: Slab, count: int) -> tuple[int, StreamTable]:
        """Where the records of so many slots begin, and an empty stream table over them (`reset` it once all its parts are there)."""
        at = slab.place("stream table", count * self.record_bytes())
        records = slab.memory.b1[at:][: count * self.record_bytes()]
        entries, take = stream_table.entries_for(count), slab.take
        return at, StreamTable(
            tag=take("stream table", entries, np.uint8),
            entry_word=take("stream table", entries, np.int64),
            entry_head=take("stream table", entries, np.int32),
            slots=slots.Slots(records.view(np.int32).reshape(count, -1), records.view(np.int64).reshape(count, -1)),
            state=take("stream table", 4, np.int64),
        )

    def shares(self, matches: int) -> list[Share]:
        """What waiting tuples ask of the budget."""
        least = int(_LEAST_SLOTS * self.slot_bytes()) + _PADDING
        return [
            Share("stream table", least, weight=1.0),
            Share("matches", (PAIR_BYTES + SETTLING_BYTES) * matches + _PADDING),
        ]
