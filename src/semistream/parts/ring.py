"""The ring: bytes of variable length that come and go in one order, as those of tuples in a queue do.

    | free | bytes | bytes | bytes ... | free |        places are counted on and on, and wrap at the ring's length
           ^ head                      ^ tail

Bytes that belong together lie side by side: what would reach over the end begins at the start again, and the end stays unused for that
round. One thread moves the tail and another the head; neither needs to know more than how far the other has come.
"""

from __future__ import annotations

import numpy as np

from semistream.parts.compiler import kernel
from semistream.parts.memory import I64, Memory
from semistream.parts.page import copy_bytes


@kernel
def begin_of(tail: int, size: int, room: int) -> int:
    """Where bytes begin that come behind the tail."""
    left = room - tail % room
    return tail if size <= left else tail + left


@kernel
def reserve(room: int, head: int, tail: int, sizes: I64, places: I64) -> tuple[int, int]:
    """Give bytes of these sizes their places, counted from the ring's start, as long as there is room: how many got one, the new tail."""
    for i in range(sizes.size):
        size = sizes[i] + 7 >> 3 << 3
        begin = begin_of(tail, size, room)
        if begin + size - head > room:
            return i, tail
        places[i] = begin % room
        tail = begin + size
    return sizes.size, tail


@kernel
def release(room: int, head: int, sizes: I64) -> int:
    """The oldest bytes, of these sizes, are gone: the new head."""
    for i in range(sizes.size):
        size = sizes[i] + 7 >> 3 << 3
        head = begin_of(head, size, room) + size
    return head


@kernel
def move_rows(memory: Memory, from_at: I64, at: I64, width: int) -> None:
    """Copy the fixed parts of rows, which begin at multiples of 8 and end where their records do."""
    words = width + 7 >> 3
    for i in range(from_at.size):
        source, target = np.uint64(from_at[i] >> 3), np.uint64(at[i] >> 3)
        for k in range(words):
            memory.b8[target + np.uint64(k)] = memory.b8[source + np.uint64(k)]


@kernel
def move_cells(memory: Memory, from_at: I64, at: I64, sizes: I64) -> None:
    """Copy the bytes of variable length of rows; cells count from where these begin, and stay as they are."""
    for i in range(from_at.size):
        copy_bytes(memory.b1, from_at[i], memory.b1, at[i], sizes[i])
