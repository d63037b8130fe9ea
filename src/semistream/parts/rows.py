"""Rows of bytes <-> columns.

A row has a fixed part and, when some column has values of variable length, bytes in a heap:

    fixed part   | column | column | ... | null bits |      every column at its own offset, wide columns first, so all are aligned
    a variable column's fixed part is a cell (u32 start, u32 length); its bytes begin at  heap base of the row + start

Columns come in one array each and leave one array each; rows may lie anywhere in a slab. `row_at` and `heap_at` give, for every row,
the byte offsets of its fixed part and of its heap base.

Gathering walks over blocks of rows small enough for the first-level cache and does all columns of a block before the next: gathering
column by column over many rows fetched every row from memory once per column. Places are unsigned wherever a loop is hot: before a
signed one is used, compiled code asks whether it counts from the end, and gathering 28 columns took three times as long.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from semistream.parts.compiler import kernel, quick_kernel
from semistream.parts.memory import I64, U8, Memory

_BLOCK_ROWS = 128


class Columns(NamedTuple):
    """Where the fixed parts of some columns lie in a row, and how wide they are."""

    offset: I64
    size: I64


class Target(NamedTuple):
    """Where gathered columns go: byte offset of each column's first value in `memory`."""

    memory: Memory
    column_at: I64


# ------------------------------------------------------------------------------------------------------------ columns -> rows


@quick_kernel
def pack_words(values: NDArray[np.generic], picks: I64, rows: NDArray[np.generic], row_at: I64, offset: int) -> None:
    """Copy `values[picks]` into rows; `values` and `rows` are views of one width (1, 2, 4 or 8 bytes)."""
    width = values.itemsize
    for i in range(picks.size):
        rows[np.uint64((row_at[i] + offset) // width)] = values[np.uint64(picks[i])]


@kernel
def pack_bytes(values: U8, size: int, picks: I64, rows: U8, row_at: I64, offset: int) -> None:
    """Copy values of any other width, byte by byte."""
    for i in range(picks.size):
        _copy(values, picks[i] * size, rows, row_at[i] + offset, size)


@kernel
def pack_cells(
    starts: I64, data: U8, picks: I64, memory: Memory, row_at: I64, heap_at: I64, used: I64, offset: int
) -> None:
    """Copy values of variable length behind the `used` heap bytes of each row, and their cells into the rows."""
    for i in range(picks.size):
        start = starts[np.uint64(picks[i])]
        length = starts[np.uint64(picks[i] + 1)] - start
        cell = (row_at[i] + offset) >> 2
        memory.b4[np.uint64(cell)] = used[i]
        memory.b4[np.uint64(cell + 1)] = length
        _copy(data, start, memory.b1, heap_at[i] + used[i], length)
        used[i] += length


@quick_kernel
def clear_nulls(rows: U8, row_at: I64, offset: int, size: int) -> None:
    """Set the null bits of rows to "all present"."""
    for i in range(row_at.size):
        for b in range(size):
            rows[row_at[i] + offset + b] = 0


@quick_kernel
def pack_nulls(valid: U8, picks: I64, rows: U8, row_at: I64, offset: int, bit: int) -> None:
    """Set one null bit for the rows whose value is missing."""
    for i in range(picks.size):
        if valid[picks[i]] == 0:
            rows[row_at[i] + offset] |= np.uint8(bit)


# ------------------------------------------------------------------------------------------------------------ rows -> columns


@kernel
def gather_fixed(source: Memory, row_at: I64, columns: Columns, target: Target, first: int) -> np.uint64:
    """Copy the fixed columns of rows to `target`, at positions `first`, `first + 1`, ... of every column. What is returned means nothing.

    First every line of a block's rows is touched, by loads that nothing waits for, so that the processor fetches many at a time. Columns
    alone fetch a few at a time: gathering strewn rows then takes twice as long.
    """
    places, touched = np.empty(_BLOCK_ROWS, np.uint64), np.uint64(0)
    begin, end = columns.offset.min() >> 3, (columns.offset + columns.size).max() - 1 >> 3
    for start in range(0, row_at.size, _BLOCK_ROWS):
        block = places[: min(_BLOCK_ROWS, row_at.size - start)]
        for i in range(block.size):
            block[i] = np.uint64(row_at[start + i])
            word = row_at[start + i] >> 3
            for k in range(word + begin, word + end, 8):
                touched ^= source.b8[np.uint64(k)]
            touched ^= source.b8[np.uint64(word + end)]
        for c in range(columns.offset.size):
            size, offset = columns.size[c], columns.offset[c]
            at = target.column_at[c] + (first + start) * size
            if size == 8:
                _gather(source.b8[offset >> 3 :], block, np.uint64(3), target.memory.b8[at >> 3 :])
            elif size == 4:
                _gather(source.b4[offset >> 2 :], block, np.uint64(2), target.memory.b4[at >> 2 :])
            elif size == 2:
                _gather(source.b2[offset >> 1 :], block, np.uint64(1), target.memory.b2[at >> 1 :])
            elif size == 1:
                _gather(source.b1[offset:], block, np.uint64(0), target.memory.b1[at:])
            elif size & 7 == 0:
                _gather_runs(source.b8[offset >> 3 :], block, np.uint64(3), target.memory.b8[at >> 3 :], size >> 3)
            else:
                _gather_runs(source.b1[offset:], block, np.uint64(0), target.memory.b1[at:], size)
    return touched


@kernel
def _gather(
    source: NDArray[np.generic], places: NDArray[np.uint64], shift: np.uint64, target: NDArray[np.generic]
) -> None:
    for i in range(places.size):
        target[i] = source[places[i] >> shift]


@kernel
def _gather_runs(
    source: NDArray[np.generic], places: NDArray[np.uint64], shift: np.uint64, target: NDArray[np.generic], count: int
) -> None:
    for i in range(places.size):
        start = np.int64(places[i] >> shift)
        for k in range(count):
            target[np.uint64(i * count + k)] = source[np.uint64(start + k)]


@quick_kernel
def gather_valid(rows: U8, row_at: I64, offset: int, bit: int, valid: U8, first: int) -> int:
    """Write 1 for a present and 0 for a missing value of each row; returns how many are missing."""
    missing = 0
    for i in range(row_at.size):
        absent = (
            bit != 0 and (rows[np.uint64(row_at[i] + offset)] & bit) != 0
        )  # a row without columns has no byte to read
        valid[np.uint64(first + i)] = 0 if absent else 1
        missing += 1 if absent else 0
    return missing


@quick_kernel
def cell_bytes(words: NDArray[np.uint32], row_at: I64, offset: int) -> int:
    """Total length of one variable column over rows."""
    total = 0
    for i in range(row_at.size):
        total += np.int64(words[np.uint64(((row_at[i] + offset) >> 2) + 1)])
    return total


@kernel
def gather_cells(
    source: Memory, row_at: I64, heap_at: I64, offset: int, ends: NDArray[np.signedinteger], data: U8, first: int
) -> None:
    """Append one variable column of rows: `ends[i]` is the end of value i in `data`, `ends[first]` where this call starts to write."""
    end = np.int64(ends[first])
    for i in range(row_at.size):
        cell = (row_at[i] + offset) >> 2
        start = heap_at[i] + np.int64(source.b4[np.uint64(cell)])
        length = np.int64(source.b4[np.uint64(cell + 1)])
        _copy(source.b1, start, data, end, length)
        end += length
        ends[np.uint64(first + i + 1)] = end


@kernel
def _copy(source: U8, start: int, target: U8, at: int, count: int) -> None:
    for b in range(count):
        target[np.uint64(at + b)] = source[np.uint64(start + b)]


# ------------------------------------------------------------------------------------------------------------ columns -> columns


@quick_kernel
def take_words(values: NDArray[np.generic], picks: I64, target: NDArray[np.generic], first: int) -> None:
    """Copy `values[picks]` to `target[first:]`; both are views of one width (1, 2, 4 or 8 bytes)."""
    for i in range(picks.size):
        target[np.uint64(first + i)] = values[np.uint64(picks[i])]


@kernel
def take_bytes(values: U8, size: int, picks: I64, target: U8, at: int) -> None:
    """Copy values of any other width to byte `at` on."""
    for i in range(picks.size):
        _copy(values, picks[i] * size, target, at + i * size, size)


@quick_kernel
def take_valid(present: U8, picks: I64, valid: U8, first: int) -> int:
    """Write 1 for a present and 0 for a missing value of every picked row; returns how many are missing."""
    missing = 0
    for i in range(picks.size):
        here = present[np.uint64(picks[i])]
        valid[np.uint64(first + i)] = here
        missing += 1 - np.int64(here)
    return missing


@quick_kernel
def picked_bytes(starts: I64, picks: I64) -> int:
    """Total length of the picked values of variable length."""
    total = 0
    for i in range(picks.size):
        total += starts[np.uint64(picks[i] + 1)] - starts[np.uint64(picks[i])]
    return total


@kernel
def take_cells(starts: I64, source: U8, picks: I64, ends: NDArray[np.signedinteger], data: U8, first: int) -> None:
    """Append picked values of variable length, as `gather_cells` does for rows."""
    end = np.int64(ends[first])
    for i in range(picks.size):
        start = starts[np.uint64(picks[i])]
        length = starts[np.uint64(picks[i] + 1)] - start
        _copy(source, start, data, end, length)
        end += length
        ends[np.uint64(first + i + 1)] = end
