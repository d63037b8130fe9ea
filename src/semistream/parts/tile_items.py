"""Items of the tile cache: which keys of a load are to be kept, writing them into tiles, and emptying the oldest tile.

There is no list of free places inside a tile: when room is needed the oldest tile is emptied, and items that were hit often enough
are written again, behind the newest. So rows of any length can come and go, nothing is ever moved for lack of a hole, and the
cache gives memory back in whole tiles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semistream.parts import tiles as tile_lists
from semistream.parts.compiler import kernel, quick_kernel
from semistream.parts.memory import I32, I64, U8, Memory
from semistream.parts.page import copy_bytes
from semistream.parts.stream_table import tag_of
from semistream.parts.tile_cache import (
    BORN,
    HEADER_BYTES,
    HELD,
    HITS_MOST,
    KEY_BYTES,
    KEYS,
    MOST,
    NEWEST,
    OLDEST,
    USED,
    WHAT,
    WORD,
    TileCache,
    drop_entry,
    find,
)
from semistream.parts.tiles import Tiles
from semistream.parts.words import spread


class Shape(NamedTuple):
    """What master rows look like: width of the fixed part, where in it the cells lie, and how many rows a key may have to be kept."""

    width: int
    cells: I64
    rows_most: int


@kernel
def item_bytes(memory: Memory, shape: Shape, row_at: int, rows: int) -> int:
    """Bytes of an item with these rows, which stand one after the other."""
    total = HEADER_BYTES + (rows * shape.width + 7 >> 3 << 3)
    for row in range(rows):
        for cell in shape.cells:
            total += np.int64(memory.b4[((row_at + row * shape.width + cell) >> 2) + 1])
    return total + 7 >> 3 << 3


@kernel
def open_item(cache: TileCache, tiles: Tiles, size: int, now: int) -> int:
    """Room for an item behind the newest one, or -1 if that takes a tile and none is free."""
    newest = cache.state[NEWEST]
    if newest < 0 or cache.tile[newest, USED] + size > tiles.state[tile_lists.BYTES]:
        tile = tile_lists.take(tiles) if cache.state[HELD] < cache.state[MOST] else np.int64(-1)
        if tile < 0:
            return np.int64(-1)
        if newest >= 0:
            tiles.link[newest] = tile
        else:
            cache.state[OLDEST] = tile
        cache.state[NEWEST] = newest = tile
        cache.tile[tile, BORN], cache.tile[tile, USED] = now, 0
        cache.state[HELD] += 1
    at = tile_lists.place_of(tiles, newest) + cache.tile[newest, USED]
    cache.tile[newest, USED] += size
    return np.int64(at)


@kernel
def write_item(memory: Memory, shape: Shape, word: int, row_at: int, heap_at: int, rows: int, at: int) -> None:
    """Copy rows that stand one after the other, and their heap bytes."""
    width = shape.width
    memory.b8[(at >> 3) + 1] = np.uint64(word)
    fixed = at + HEADER_BYTES
    copy_bytes(memory.b1, row_at, memory.b1, fixed, rows * width)
    end = fixed + (rows * width + 7 >> 3 << 3)
    for row in range(rows):
        for cell in shape.cells:
            place = (fixed + row * width + cell) >> 2
            start, length = heap_at + np.int64(memory.b4[place]), np.int64(memory.b4[place + 1])
            memory.b4[place] = np.uint32(end - at)
            for b in range(length):
                memory.b1[end + b] = memory.b1[start + b]
            end += length
    memory.b8[at >> 3] = np.uint64(end - at + 7 >> 3 << 3)


@kernel
def enter(cache: TileCache, word: int, at: int, rows: int) -> None:
    """Make an item known; nothing is known of its word."""
    entry = find(cache, word)
    cache.tag[entry] = tag_of(spread(word))
    cache.entry[entry, WORD] = word
    cache.entry[entry, WHAT] = (at >> 3) << 32 | rows << 16
    cache.state[KEYS] += 1


class Chosen(NamedTuple):
    """Keys to be kept: word, first row, heap base, number of rows (0: the master lacks the key)."""

    words: I64
    row_at: I64
    heap_at: I64
    rows: I64


@kernel
def keep(
    cache: TileCache, tiles: Tiles, memory: Memory, shape: Shape, chosen: Chosen, start: int, now: int, most: int
) -> int:
    """Take keys in from number `start` on; returns the number of the first one for which there is no tile, or that of all.

    Passed over: what is already known, items larger than a tile, keys with too many rows to be answered at once; when `most` keys are
    held nothing is taken in.
    """
    for i in range(start, chosen.words.size):
        rows = chosen.rows[i]
        size = item_bytes(memory, shape, chosen.row_at[i], rows)
        if cache.state[KEYS] >= most or size > tiles.state[tile_lists.BYTES] or rows > shape.rows_most:
            continue
        if cache.tag[find(cache, chosen.words[i])] != 0:
            continue
        at = open_item(cache, tiles, size, now)
        if at < 0:
            return i
        write_item(memory, shape, chosen.words[i], chosen.row_at[i], chosen.heap_at[i], rows, at)
        enter(cache, chosen.words[i], at, rows)
    return chosen.words.size


@kernel
def empty_oldest(cache: TileCache, tiles: Tiles, memory: Memory, scratch: int, hits_for_bytes: float, now: int) -> int:
    """Empty the oldest tile; items with at least `hits_for_bytes` hits for each of their bytes are written again. Returns how many were.

    The tile is copied to `scratch` and given back first, so there is always a tile for those that stay.
    """
    tile = cache.state[OLDEST]
    at, used = tile_lists.place_of(tiles, tile), cache.tile[tile, USED]
    if tile == cache.state[NEWEST]:
        cache.state[NEWEST] = -1
    copy_bytes(memory.b1, at, memory.b1, scratch, used)
    cache.state[OLDEST] = np.int64(tiles.link[tile])
    cache.state[HELD] -= 1
    tile_lists.give(tiles, tile)
    place, stay = np.int64(0), 0
    while place < used:
        size, word = np.int64(memory.b8[(scratch + place) >> 3]), np.int64(memory.b8[((scratch + place) >> 3) + 1])
        entry = find(cache, word)
        what = cache.entry[entry, WHAT]
        hits = what & 0xFFFF
        if hits == HITS_MOST or hits >= hits_for_bytes * (size + KEY_BYTES):
            new = open_item(cache, tiles, size, now)
            copy_bytes(memory.b1, scratch + place, memory.b1, new, size)
            cache.entry[entry, WHAT] = (new >> 3) << 32 | (what & 0xFFFF0000)
            stay += 1
        else:
            drop_entry(cache, entry)
        place += size
    return stay


@quick_kernel
def choose(memory: Memory, page_at: I64, width: int, asked: I32, least: int, cursor: I64, chosen: Chosen) -> int:
    """Keys of a load whose rows were asked for by at least so many tuples, until `chosen` is full; returns how many.

    `cursor` (page, row) says where to go on. Only words that lie in one page were asked for, so the rows of a word stand side by side.
    """
    base_row = np.int64(memory.b8[(page_at[0] >> 3) + 2])
    count = 0
    while cursor[0] < page_at.size:
        at = page_at[cursor[0]]
        rows, first = np.int64(memory.b4[(at >> 2) + 1]), at + np.int64(memory.b4[(at >> 2) + 6])
        number = np.int64(memory.b8[(at >> 3) + 2]) - base_row
        row = cursor[1]
        while row < rows:
            if asked[number + row] < least:
                row += 1
                continue
            if count == chosen.words.size:
                cursor[1] = row
                return count
            start, word = row, np.int64(memory.b8[(at >> 3) + 4 + row])
            while row < rows and np.int64(memory.b8[(at >> 3) + 4 + row]) == word:
                row += 1
            chosen.words[count], chosen.rows[count] = word, row - start
            chosen.row_at[count], chosen.heap_at[count] = first + start * width, at
            count += 1
        cursor[0] += 1
        cursor[1] = 0
    return count


@quick_kernel
def ask_all(memory: Memory, page_at: I64, first_words: I64, continues: U8, first: int, asked: I32) -> None:
    """Count one tuple for every row of a load whose word lies in one page; page `first` of the master is the load's first."""
    number = 0
    for p in range(page_at.size):
        at, page = page_at[p], first + p
        from_before = page < continues.size and continues[page] != 0
        to_next = page + 1 < continues.size and continues[page + 1] != 0
        for row in range(np.int64(memory.b4[(at >> 2) + 1])):
            word = np.int64(memory.b8[(at >> 3) + 4 + row])
            split = (from_before and word == first_words[page]) or (to_next and word == first_words[page + 1])
            asked[number] = 0 if split else 1
            number += 1
