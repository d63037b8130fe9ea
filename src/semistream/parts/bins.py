"""Bins: pending tuples sorted, as they arrive, by the range of master pages that holds their key.

    word --> bin --> tile -> tile -> tile (being filled)        a tile holds records, in order of arrival

Serving a bin is reading its tiles from front to back: no chain is walked tuple by tuple, and the rows that a bin needs lie side by side
on disk. In a tile records grow from the front, and the bytes of variable length that belong to them from the back:

    record | record | record ...  -->        <--  ... bytes | bytes | bytes

    record    i64  key word
              i64  stream position * 2 + 1 if a match was found
              i64  where the row's heap bytes begin (only if rows have cells)
              ...  the tuple's row (rows.py)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from semistream.parts import tiles as tile_lists
from semistream.parts.compiler import kernel, quick_kernel
from semistream.parts.memory import I32, I64
from semistream.parts.tiles import Tiles
from semistream.parts.waits import bucket_of

# numbers of a record
WORD, STAMP, HEAP = 0, 1, 2
# numbers of a bin: its tuples, bytes used at the back of its last tile, sum of arrival positions, arrival of the oldest
COUNT, BACK, ARRIVED, OLDEST = 0, 1, 2, 3
NOBODY = np.int64((1 << 63) - 1)


class Bins(NamedTuple):
    """First and last tile of every bin, its numbers; how many records each tile holds, and the records of all tiles side by side."""

    head: I32
    tail: I32
    numbers: I64
    filled: I32
    records: NDArray[np.int64]


def record_bytes(row_width: int, has_cells: bool) -> int:
    """Bytes of one record."""
    return 8 * (3 if has_cells else 2) + -(-row_width // 8) * 8


def reset(bins: Bins) -> None:
    """Empty all bins."""
    bins.head.fill(-1)
    bins.tail.fill(-1)
    bins.numbers.fill(0)
    bins.numbers[:, OLDEST] = NOBODY


@kernel
def admit(
    bins: Bins, tiles: Tiles, words: I64, picks: I64, bin_of: I64, sizes: I64, position: int, admitted: I64
) -> int:
    """Give every picked word a record in its bin, until there is no tile for them; returns how many found one. Row 0 stands at `position`.

    `sizes` are the heap bytes of every pick (empty: rows have no cells).
    """
    per_tile = bins.records.shape[0] // tiles.link.size
    tile_bytes, has_cells = tiles.state[tile_lists.BYTES], sizes.size != 0
    record_bytes = 8 * bins.records.shape[1]
    for i in range(picks.size):
        one, size = np.uint64(bin_of[i]), sizes[i] + 7 >> 3 << 3 if has_cells else np.int64(0)
        tail, pick = np.int64(bins.tail[one]), np.uint64(picks[i])
        held = np.int64(bins.filled[np.uint64(tail)]) if tail >= 0 else np.int64(0)
        if tail < 0 or (held + 1) * record_bytes + bins.numbers[one, BACK] + size > tile_bytes:
            if tiles.state[tile_lists.FREE] <= tiles.state[tile_lists.KEPT_BACK]:
                return i
            tile = tile_lists.take(tiles)
            if tail < 0:
                bins.head[one] = tile
                bins.numbers[one, OLDEST] = position + picks[i]
            else:
                tiles.link[tail] = tile
            bins.tail[one] = tail = tile
            held = np.int64(0)
            bins.numbers[one, BACK] = 0
        record = np.uint64(tail * per_tile + held)
        bins.records[record, WORD] = words[pick]
        bins.records[record, STAMP] = (position + picks[i]) << 1
        if has_cells:
            bins.numbers[one, BACK] += size
            bins.records[record, HEAP] = tile_lists.place_of(tiles, tail) + tile_bytes - bins.numbers[one, BACK]
        bins.filled[np.uint64(tail)] = held + 1
        bins.numbers[one, COUNT] += 1
        bins.numbers[one, ARRIVED] += position + picks[i]
        admitted[i] = record
    return picks.size


@quick_kernel
def list_tuples(bins: Bins, tiles: Tiles, one: int, cursor: I64, picks: I64, words: I64) -> int:
    """The next tuples of a bin, oldest first, and their words, until `picks` is full; `cursor` is (tile, record in it), at first (-1, 0).

    Behind the last one the tile becomes -2.
    """
    per_tile = bins.records.shape[0] // tiles.link.size
    count = 0
    tile = np.int64(bins.head[one]) if cursor[0] == -1 else cursor[0]
    while tile >= 0:
        for k in range(cursor[1], bins.filled[tile]):
            if count == picks.size:
                cursor[0], cursor[1] = tile, k
                return count
            record = tile * per_tile + k
            picks[np.uint64(count)] = record
            words[np.uint64(count)] = bins.records[np.uint64(record), WORD]
            count += 1
        tile, cursor[1] = np.int64(tiles.link[tile]), 0
    cursor[0] = -2
    return count


@quick_kernel
def add_waits(bins: Bins, tiles: Tiles, one: int, histogram: I64, now: int) -> int:
    """Count how long the tuples of a bin have waited when the stream has come to position `now`; returns the longest wait."""
    per_tile = bins.records.shape[0] // tiles.link.size
    longest, tile = np.int64(0), np.int64(bins.head[one])
    while tile >= 0:
        for record in range(tile * per_tile, tile * per_tile + bins.filled[tile]):
            wait = now - (bins.records[np.uint64(record), STAMP] >> 1)
            histogram[np.uint64(bucket_of(wait))] += 1
            longest = max(longest, wait)
        tile = np.int64(tiles.link[tile])
    return longest


@quick_kernel
def clear(bins: Bins, tiles: Tiles, one: int) -> None:
    """Give a bin's tiles back: its tuples have left."""
    tile = np.int64(bins.head[one])
    while tile >= 0:
        behind = np.int64(tiles.link[tile])
        tile_lists.give(tiles, tile)
        tile = behind
    bins.head[one] = bins.tail[one] = -1
    bins.numbers[one, COUNT] = bins.numbers[one, BACK] = bins.numbers[one, ARRIVED] = 0
    bins.numbers[one, OLDEST] = NOBODY
