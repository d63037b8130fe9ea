"""What waiting stream tuples ask of the budget."""

from __future__ import annotations

from typing import NamedTuple

from semistream.budget import Share
from semistream.parts import row_heap, slots, stream_table
from semistream.records import RowCodec

PAIR_BYTES = 8 * 8  # the lists of picked rows, found pairs, leaving chains and leaving tuples
SETTLING_BYTES = 5 * 8  # arrays that are made for a pair while it is settled
_LEAST_SLOTS = 16
_PADDING = 16 * 64  # arrays begin at multiples of 64 bytes
_HEAP_SLACK = 1.15  # rows are not all of average length, and a heap that is nearly full compacts too often


def match_count(memory_bytes: int) -> int:
    """Length of the list of found pairs."""
    return max(64, min(8192, memory_bytes // 4096))


class StreamRows(NamedTuple):
    """What the stream's rows need: their codec, the heap bytes a typical row takes, and how many a recipe wants to wait at most."""

    codec: RowCodec
    heap_bytes: float
    most_slots: int | None = None

    def record_bytes(self) -> int:
        """Bytes of a waiting tuple's record."""
        return slots.record_bytes(self.codec.width, bool(self.codec.cells))

    def slots_in(self, given_bytes: int) -> int:
        """How many tuples may wait in so many bytes."""
        return max(_LEAST_SLOTS, int((given_bytes - _PADDING) / self.slot_bytes()))

    def slot_bytes(self) -> float:
        """Bytes a waiting tuple costs, everything counted."""
        heap = (self.heap_bytes + 8 + row_heap.RECORD_BYTES) * _HEAP_SLACK if self.codec.cells else 0
        return self.record_bytes() + stream_table.ENTRIES_PER_SLOT * stream_table.ENTRY_BYTES + heap

    def shares(self, matches: int) -> list[Share]:
        """What waiting tuples ask of the budget."""
        least = int(_LEAST_SLOTS * self.slot_bytes()) + _PADDING
        return [
            Share("stream table", least, weight=1.0),
            Share("matches", (PAIR_BYTES + SETTLING_BYTES) * matches + _PADDING),
        ]
