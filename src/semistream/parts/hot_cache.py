"""The hot cache: all master rows of some words, found by word, so that a tuple of such a word need not wait.

    tag | entry_word | entry_head -> record of the word -> slot -> slot        the entries are those of the stream table
                                     head, rows, hits, since    each slot: next row, [heap place], the row's fixed part

A word is here whole or not at all, which keeps many-to-many joins exact. A word without rows is surely absent from the master. A word
whose rows are still being collected (its `rows` count below zero) answers nobody. Rows lie in slots of one size, their bytes of variable
length in a row heap; a row here looks like a row in a page, so that nobody who reads rows knows the difference.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from semistream.parts import row_heap
from semistream.parts.compiler import kernel
from semistream.parts.memory import I32, I64, U8, Memory
from semistream.parts.page import copy_bytes
from semistream.parts.probing import Picked
from semistream.parts.row_heap import RowHeap
from semistream.parts.stream_table import ENTRIES_PER_SLOT, ENTRY_BYTES, KEYS, drop_entry, find, tag_of
from semistream.parts.words import spread

# positions in `state`; KEYS, the number of words, lies between them
FREE_SLOT, FREE_SLOTS, FREE_RECORD, FIRST_ROW, WIDTH, DICE = 0, 1, 3, 4, 5, 6
STATE = 7
# columns of `records`; NEXT_FREE shares its place with HEAD
HEAD, ROWS, HITS, SINCE = 0, 1, 2, 3
NEXT_FREE = HEAD
NOBODY = -(2**31)  # `rows` of a record that is free
WORD_BYTES = ENTRIES_PER_SLOT * ENTRY_BYTES + 8 + 16
_MOST = 2**31 - 1


class HotCache(NamedTuple):
    """Entries by word, a record a word, slots with rows as 4-byte and as 8-byte numbers, and the heap of their cells."""

    tag: U8
    entry_word: I64
    entry_head: I32
    record_word: I64
    records: NDArray[np.int32]
    links: NDArray[np.int32]
    wide: NDArray[np.int64]
    heap: RowHeap
    cells: I64
    state: I64


def slot_header_bytes(has_cells: bool) -> int:
    """Bytes of a slot before its row."""
    return 16 if has_cells else 8


def reset(cache: HotCache, first_row: int, width: int, seed: int) -> None:
    """Empty the cache. `first_row` is where the row of slot 0 lies in the slab, `width` the bytes of a row's fixed part."""
    slots, records = cache.links.shape[0], cache.records.shape[0]
    cache.tag.fill(0)
    cache.links[:, 0] = np.arange(1, slots + 1, dtype=np.int32)
    cache.links[slots - 1 :, 0] = -1
    cache.records[:, NEXT_FREE] = np.arange(1, records + 1, dtype=np.int32)
    cache.records[records - 1 :, NEXT_FREE] = -1
    cache.records[:, ROWS] = NOBODY
    cache.state[:] = (0 if slots else -1, slots, 0, 0 if records else -1, first_row, width, seed)


@kernel
def record_of(cache: HotCache, word: int) -> int:
    """The record of a word, or -1."""
    entry = find(cache, word)
    return np.int64(cache.entry_head[entry]) if cache.tag[entry] != 0 else np.int64(-1)


@kernel
def answer(cache: HotCache, words: I64, picks: I64, cursor: I64, found: Picked, gone: I64) -> int:
    """Pair picked tuples with all rows of their words, until `found` or `gone` is full; returns the number of pairs.

    `cursor` (pick, slot, misses, gone) says where to go on; all is done when its first number equals the number of picks. Picks that
    miss are moved to the front of `picks`. `found.words` gets picks. A tuple is gone once all its pairs are out.
    """
    at, slot, misses, left, pairs = cursor[0], cursor[1], cursor[2], cursor[3], 0
    slot_bytes, has_cells = 8 * cache.wide.shape[1], cache.cells.size > 0
    while at < picks.size:
        pick = picks[at]
        entry = find(cache, words[pick])
        record = np.int64(cache.entry_head[entry])
        if cache.tag[entry] == 0 or cache.records[record, ROWS] < 0:
            picks[misses] = pick
            misses += 1
            at += 1
            continue
        if left == gone.size:
            break
        slot = slot if slot >= 0 else np.int64(cache.records[record, HEAD])
        while slot >= 0 and pairs < found.words.size:
            found.words[pairs] = pick
            found.row_at[pairs] = cache.state[FIRST_ROW] + slot * slot_bytes
            found.heap_at[pairs] = cache.wide[slot, 1] if has_cells else 0
            pairs += 1
            slot = np.int64(cache.links[slot, 0])
        if slot >= 0:
            break
        cache.records[record, HITS] += 1 if cache.records[record, HITS] < _MOST else 0
        gone[left] = pick
        left += 1
        at += 1
    cursor[0], cursor[1], cursor[2], cursor[3] = at, slot, misses, left
    return pairs


# ------------------------------------------------------------------------------------------------------------ keeping


@kernel
def heap_bytes(cache: HotCache, memory: Memory, row_at: int) -> int:
    """Bytes of variable length of a row."""
    size = 0
    for cell in cache.cells:
        size += np.int64(memory.b4[((row_at + cell) >> 2) + 1])
    return size


@kernel
def room(cache: HotCache, memory: Memory, row_at: I64) -> int:
    """How many of these rows would fit."""
    count = min(row_at.size, cache.state[FREE_SLOTS])
    if cache.cells.size:
        sizes = np.empty(count, np.int64)
        for i in range(count):
            sizes[i] = heap_bytes(cache, memory, row_at[i])
        count = row_heap.room(cache.heap, sizes)
    return count


@kernel
def open_record(cache: HotCache, word: int, rows: int, hits: int, now: int) -> int:
    """Give a word that is not here a record: with 0 rows, or with -1 to say that its rows are yet to be collected."""
    record = cache.state[FREE_RECORD]
    cache.state[FREE_RECORD] = cache.records[record, NEXT_FREE]
    cache.state[KEYS] += 1
    entry = find(cache, word)
    cache.tag[entry] = tag_of(spread(word))
    cache.entry_word[entry] = word
    cache.entry_head[entry] = record
    cache.record_word[record] = word
    cache.records[record, HEAD] = -1
    cache.records[record, ROWS] = rows
    cache.records[record, HITS] = min(hits, _MOST)
    cache.records[record, SINCE] = now
    return record


@kernel
def add_row(cache: HotCache, memory: Memory, record: int, row_at: int, heap_at: int) -> None:
    """Copy a row, for which there is room, to a word's rows. Its cells count from its own heap place from now on."""
    slot = cache.state[FREE_SLOT]
    cache.state[FREE_SLOT] = cache.links[slot, 0]
    cache.state[FREE_SLOTS] -= 1
    cache.links[slot, 0] = cache.records[record, HEAD]
    cache.records[record, HEAD] = slot
    cache.records[record, ROWS] += 1 if cache.records[record, ROWS] >= 0 else -1
    at = cache.state[FIRST_ROW] + slot * 8 * cache.wide.shape[1]
    copy_bytes(memory.b1, row_at, memory.b1, at, cache.state[WIDTH])
    if cache.cells.size:
        picks, sizes = np.full(1, slot), np.full(1, heap_bytes(cache, memory, row_at))
        row_heap.reserve(cache.heap, memory, cache.wide[:, 1], picks, sizes)
        target, used = cache.wide[slot, 1], 0
        for cell in cache.cells:
            start = np.int64(memory.b4[(row_at + cell) >> 2])
            length = np.int64(memory.b4[((row_at + cell) >> 2) + 1])
            copy_bytes(memory.b1, heap_at + start, memory.b1, target + used, length)
            memory.b4[(at + cell) >> 2] = np.uint32(used)
            used += length


@kernel
def keep(cache: HotCache, memory: Memory, rows: Picked, waiting: I64, now: int) -> int:
    """Copy whole words, their rows side by side, that are not here yet; returns the place of the first row that found no room.

    `waiting` gives for every row how many tuples wait on its word: these are its first hits.
    """
    at = 0
    while at < rows.words.size:
        word, stop = rows.words[at], at + 1
        while stop < rows.words.size and rows.words[stop] == word:
            stop += 1
        if record_of(cache, word) < 0:
            if cache.state[FREE_RECORD] < 0 or room(cache, memory, rows.row_at[at:stop]) < stop - at:
                return at
            record = open_record(cache, word, 0, waiting[at], now)
            for i in range(at, stop):
                add_row(cache, memory, record, rows.row_at[i], rows.heap_at[i])
        at = stop
    return at


# ------------------------------------------------------------------------------------------------------------ forgetting


@kernel
def forget(cache: HotCache, memory: Memory, record: int) -> int:
    """Let go of a word and its rows; returns how many rows, at least 1."""
    rows, slot = 0, np.int64(cache.records[record, HEAD])
    while slot >= 0:
        if cache.cells.size:
            row_heap.release(cache.heap, memory, cache.wide[:, 1], np.full(1, slot))
        following = np.int64(cache.links[slot, 0])
        cache.links[slot, 0] = cache.state[FREE_SLOT]
        cache.state[FREE_SLOT] = slot
        rows += 1
        slot = following
    cache.state[FREE_SLOTS] += rows
    drop_entry(cache, find(cache, cache.record_word[record]))  # counts KEYS down
    cache.records[record, ROWS] = NOBODY
    cache.records[record, NEXT_FREE] = cache.state[FREE_RECORD]
    cache.state[FREE_RECORD] = record
    return max(rows, 1)
