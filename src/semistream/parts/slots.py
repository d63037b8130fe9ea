"""Slots: one record for everything that belongs to a pending stream tuple, so that touching a tuple touches one or two cache lines.

    byte 0   i32  next slot in the chain of its word (or of free slots)
         4   i32  previous slot in the chain
         8   i32  next older tuple in the arrival queue
        12   i32  next newer one
        16   i64  key word
        24   i64  stream position * 2 + 1 if a match was found
        32   i64  where the row's heap bytes begin (only if rows have cells)
        ...       the tuple's row (rows.py)

Kept as one array a field, these made seven cache misses a tuple, and the join ran at half the speed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from semistream.parts.compiler import kernel
from semistream.parts.memory import I64

# columns of `links` and of `wide`
NEXT, PREV, OLDER, NEWER = 0, 1, 2, 3
WORD, ARRIVED, HEAP = 2, 3, 4
HEADER_BYTES = 32


class Slots(NamedTuple):
    """The records, as 4-byte and as 8-byte numbers, one line a slot."""

    links: NDArray[np.int32]
    wide: NDArray[np.int64]


def record_bytes(row_width: int, has_cells: bool) -> int:
    """Bytes of one slot."""
    return HEADER_BYTES + (8 if has_cells else 0) + -(-row_width // 8) * 8


# ------------------------------------------------------------------------------------------------------------ arrival queue


@kernel
def enqueue(slots: Slots, ends: I64, picks: I64) -> None:
    """Put tuples behind the newest, in order; `ends` holds the oldest and the newest slot (-1: none)."""
    for slot in picks:
        newest = ends[1]
        slots.links[slot, OLDER] = newest
        slots.links[slot, NEWER] = -1
        if newest >= 0:
            slots.links[newest, NEWER] = slot
        else:
            ends[0] = slot
        ends[1] = slot


@kernel
def dequeue(slots: Slots, ends: I64, picks: I64) -> None:
    """Take tuples out, wherever they stand."""
    for slot in picks:
        older, newer = slots.links[slot, OLDER], slots.links[slot, NEWER]
        if older >= 0:
            slots.links[older, NEWER] = newer
        else:
            ends[0] = newer
        if newer >= 0:
            slots.links[newer, OLDER] = older
        else:
            ends[1] = older


@kernel
def oldest(slots: Slots, ends: I64, picks: I64) -> int:
    """Fill `picks` with the oldest tuples, oldest first; returns how many there were."""
    slot = ends[0]
    for i in range(picks.size):
        if slot < 0:
            return i
        picks[i] = slot
        slot = slots.links[slot, NEWER]
    return picks.size
