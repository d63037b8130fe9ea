"""The row heap: bytes of variable length that belong to slots, in a log that is compacted when it is full.

    | slot, size | bytes, padded to 8 | slot, size | bytes ... | free
                                                              ^ tail

A record whose slot left is dead (slot -1). When a new record does not fit behind the tail, the live ones are moved together; slots
know where their bytes begin (`heap_at`, a column of the slots' records), so nothing else changes. Compared with chains of small blocks,
bytes of a row stay side by side and are copied in one go.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semistream.parts.compiler import kernel
from semistream.parts.memory import I64, Memory

# positions in `state`; all are byte offsets into the slab but the last, which counts bytes
START, STOP, TAIL, LIVE = 0, 1, 2, 3
RECORD_BYTES = 8


class RowHeap(NamedTuple):
    """Where the heap lies in the slab and how full it is. Where a slot's bytes begin stands in the slot's record."""

    state: I64


def reset(heap: RowHeap, start: int, stop: int) -> None:
    """Give the heap its part of the slab, empty."""
    heap.state[:] = (start, stop, start, 0)


@kernel
def room(heap: RowHeap, sizes: I64) -> int:
    """How many rows of these sizes would fit, counting what compaction would free."""
    left = heap.state[STOP] - heap.state[START] - heap.state[LIVE]
    for i in range(sizes.size):
        left -= 8 + (sizes[i] + 7 >> 3 << 3)
        if left < 0:
            return i
    return sizes.size


@kernel
def compact(heap: RowHeap, memory: Memory, heap_at: I64) -> None:
    """Move live records together at the start of the heap."""
    at, tail = heap.state[START], heap.state[START]
    while at < heap.state[TAIL]:
        slot = np.int64(np.int32(memory.b4[at >> 2]))
        size = 8 + (np.int64(memory.b4[(at >> 2) + 1]) + 7 >> 3 << 3)
        if slot >= 0:
            for i in range(size >> 3):
                memory.b8[(tail >> 3) + i] = memory.b8[(at >> 3) + i]
            heap_at[slot] = tail + 8
            tail += size
        at += size
    heap.state[TAIL] = tail


@kernel
def reserve(heap: RowHeap, memory: Memory, heap_at: I64, picks: I64, sizes: I64) -> None:
    """Open a record of `sizes` bytes for every picked slot; `room` has said that they fit."""
    for i in range(picks.size):
        size = 8 + (sizes[i] + 7 >> 3 << 3)
        if heap.state[TAIL] + size > heap.state[STOP]:
            compact(heap, memory, heap_at)
        at = heap.state[TAIL]
        memory.b4[at >> 2] = np.uint32(picks[i])
        memory.b4[(at >> 2) + 1] = np.uint32(sizes[i])
        heap_at[picks[i]] = at + 8
        heap.state[TAIL] = at + size
        heap.state[LIVE] += size


@kernel
def release(heap: RowHeap, memory: Memory, heap_at: I64, picks: I64) -> None:
    """Declare the records of picked slots dead."""
    for slot in picks:
        at = heap_at[slot] - 8
        memory.b4[at >> 2] = np.uint32(0xFFFFFFFF)
        heap.state[LIVE] -= 8 + (np.int64(memory.b4[(at >> 2) + 1]) + 7 >> 3 << 3)
    if heap.state[LIVE] == 0:
        heap.state[TAIL] = heap.state[START]
