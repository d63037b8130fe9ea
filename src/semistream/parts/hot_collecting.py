"""Collecting the rows of a word in the hot cache when they do not come all at once."""

from __future__ import annotations

import numpy as np

from semistream.parts.compiler import kernel
from semistream.parts.hot_cache import ROWS, HotCache, add_row, forget, record_of, room
from semistream.parts.memory import Memory
from semistream.parts.probing import Picked
from semistream.parts.stream_table import find


@kernel
def pick_collected(cache: HotCache, rows: Picked) -> int:
    """Move those rows to the front whose words are being collected; returns how many."""
    count = 0
    for i in range(rows.words.size):
        entry = find(cache, rows.words[i])
        if cache.tag[entry] != 0 and cache.records[np.int64(cache.entry_head[entry]), ROWS] < 0:
            rows.words[count], rows.row_at[count], rows.heap_at[count] = rows.words[i], rows.row_at[i], rows.heap_at[i]
            count += 1
    return count


@kernel
def collect(cache: HotCache, memory: Memory, rows: Picked) -> int:
    """Add to words that are being collected those of the rows that are theirs; a word without room is forgotten. Returns how many were."""
    dropped = 0
    for i in range(rows.words.size):
        record = record_of(cache, rows.words[i])
        if record >= 0 and cache.records[record, ROWS] < 0:
            if room(cache, memory, rows.row_at[i : i + 1]):
                add_row(cache, memory, record, rows.row_at[i], rows.heap_at[i])
            else:
                forget(cache, memory, record)
                dropped += 1
    return dropped


@kernel
def complete(cache: HotCache, record: int) -> None:
    """All rows of a collected word are here: it may answer from now on."""
    cache.records[record, ROWS] = -1 - cache.records[record, ROWS]
