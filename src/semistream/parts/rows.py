"""Rows of bytes <-> columns.

A row has a fixed part and, when some column has values of variable length, bytes in a heap:

    fixed part   | column | column | ... | null bits |      every column at its own offset, wide columns first, so all are aligned
    a variable column's fixed part is a cell (u32 start, u32 length); its bytes begin at  heap base of the row + start

Columns come in one array each and leave one array each; rows may lie anywhere in a slab. `row_at` and `heap_at` give, for every row,
the byte offsets of its fixed part and of its heap base. A `row_at` below zero stands for "no such row": zeros and nulls come out.

Gathering walks over blocks of rows small enough for the first-level cache and does all columns of a block before the next: gathering
column by column over many rows fetched every row from memory once per column.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from semistream.parts.compiler import kernel
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


@kernel
def pack_words(values: NDArray[np.generic], picks: I64, rows: NDArray[np.generic], row_at: I64, offset: int) -> None:
    """Copy `values[picks]` into rows; `values` and `rows` are views of one width (1, 2, 4 or 8 bytes)."""
    width = values.itemsize
    for i in range(picks.size):
        rows[(row_at[i] + offset) // width] = values[picks[i]]


@kernel
def pack_bytes(values: U8, size: int, picks: I64, rows: U8, row_at: I64, offset: int) -> None:
    """Copy values of any other width, byte by byte."""
    for i in range(picks.size):
        source, target = picks[i] * size, row_at[i] + offset
        for b in range(size):
            rows[target + b] = values[source + b]


@kernel
def pack_cells(
    starts: I64, data: U8, picks: I64, memory: Memory, row_at: I64, heap_at: I64, used: I64, offset: int
) -> None:
    """Copy values of variable length behind the `used` heap bytes of each row, and their cells into the rows."""
    for i in range(picks.size):
        start, stop = starts[picks[i]], starts[picks[i] + 1]
        cell = (row_at[i] + offset) >> 2
        memory.b4[cell] = used[i]
        memory.b4[cell + 1] = stop - start
        target = heap_at[i] + used[i]
        for b in range(stop - start):
            memory.b1[target + b] = data[start + b]
        used[i] += stop - start


@kernel
def clear_nulls(rows: U8, row_at: I64, offset: int, size: int) -> None:
    """Set the null bits of rows to "all present"."""
    for i in range(row_at.size):
        for b in range(size):
            rows[row_at[i] + offset + b] = 0


@kernel
def pack_nulls(valid: U8, picks: I64, rows: U8, row_at: I64, offset: int, bit: int) -> None:
    """Set one null bit for the rows whose value is missing."""
    for i in range(picks.size):
        if valid[picks[i]] == 0:
            rows[row_at[i] + offset] |= np.uint8(bit)


# ------------------------------------------------------------------------------------------------------------ rows -> columns


@kernel
def gather_fixed(source: Memory, row_at: I64, columns: Columns, target: Target, first: int) -> None:
    """Copy the fixed columns of rows to `target`, at positions `first`, `first + 1`, ... of every column."""
    for start in range(0, row_at.size, _BLOCK_ROWS):
        block = row_at[start : start + _BLOCK_ROWS]
        for c in range(columns.offset.size):
            size = columns.size[c]
            at = target.column_at[c] + (first + start) * size
            if size == 8:
                _gather_8(source.b8, block, columns.offset[c], target.memory.b8, at)
            elif size == 4:
                _gather_4(source.b4, block, columns.offset[c], target.memory.b4, at)
            elif size == 1:
                _gather_1(source.b1, block, columns.offset[c], target.memory.b1, at)
            elif size == 2:
                _gather_2(source.b2, block, columns.offset[c], target.memory.b2, at)
            else:
                _gather_bytes(source.b1, block, columns.offset[c], target.memory.b1, at, size)


# One function per width: a numba function specialises on the array type, and each of the four views has its own.


@kernel
def _gather_8(source: NDArray[np.uint64], row_at: I64, offset: int, target: NDArray[np.uint64], at: int) -> None:
    first = at >> 3
    for i in range(row_at.size):
        target[first + i] = source[(row_at[i] + offset) >> 3] if row_at[i] >= 0 else np.uint64(0)


@kernel
def _gather_4(source: NDArray[np.uint32], row_at: I64, offset: int, target: NDArray[np.uint32], at: int) -> None:
    first = at >> 2
    for i in range(row_at.size):
        target[first + i] = source[(row_at[i] + offset) >> 2] if row_at[i] >= 0 else np.uint32(0)


@kernel
def _gather_2(source: NDArray[np.uint16], row_at: I64, offset: int, target: NDArray[np.uint16], at: int) -> None:
    first = at >> 1
    for i in range(row_at.size):
        target[first + i] = source[(row_at[i] + offset) >> 1] if row_at[i] >= 0 else np.uint16(0)


@kernel
def _gather_1(source: U8, row_at: I64, offset: int, target: U8, at: int) -> None:
    for i in range(row_at.size):
        target[at + i] = source[row_at[i] + offset] if row_at[i] >= 0 else np.uint8(0)


@kernel
def _gather_bytes(source: U8, row_at: I64, offset: int, target: U8, at: int, size: int) -> None:
    for i in range(row_at.size):
        for b in range(size):
            target[at + i * size + b] = source[row_at[i] + offset + b] if row_at[i] >= 0 else np.uint8(0)


@kernel
def gather_valid(rows: U8, row_at: I64, offset: int, bit: int, valid: U8, first: int) -> int:
    """Write 1 for a present and 0 for a missing value of each row; returns how many are missing. `bit` 0: only absent rows miss."""
    missing = 0
    for i in range(row_at.size):
        # a row without columns has no byte to read
        absent = row_at[i] < 0 or (bit != 0 and (rows[row_at[i] + offset] & bit) != 0)
        valid[first + i] = 0 if absent else 1
        missing += 1 if absent else 0
    return missing


@kernel
def cell_bytes(words: NDArray[np.uint32], row_at: I64, offset: int) -> int:
    """Total length of one variable column over rows."""
    total = 0
    for i in range(row_at.size):
        if row_at[i] >= 0:
            total += words[((row_at[i] + offset) >> 2) + 1]
    return total


@kernel
def gather_cells(
    source: Memory, row_at: I64, heap_at: I64, offset: int, ends: NDArray[np.signedinteger], data: U8, first: int
) -> None:
    """Append one variable column of rows: `ends[i]` is the end of value i in `data`, `ends[first]` where this call starts to write."""
    end = np.int64(ends[first])
    for i in range(row_at.size):
        if row_at[i] >= 0:
            cell = (row_at[i] + offset) >> 2
            start = heap_at[i] + np.int64(source.b4[cell])
            length = np.int64(source.b4[cell + 1])
            for b in range(length):
                data[end + b] = source.b1[start + b]
            end += length
        ends[first + i + 1] = end


# ------------------------------------------------------------------------------------------------------------ columns -> columns


@kernel
def take_words(values: NDArray[np.generic], picks: I64, target: NDArray[np.generic], first: int) -> None:
    """Copy `values[picks]` to `target[first:]`; both are views of one width (1, 2, 4 or 8 bytes)."""
    for i in range(picks.size):
        target[first + i] = values[picks[i]]


@kernel
def take_bytes(values: U8, size: int, picks: I64, target: U8, at: int) -> None:
    """Copy values of any other width to byte `at` on."""
    for i in range(picks.size):
        source, place = picks[i] * size, at + i * size
        for b in range(size):
            target[place + b] = values[source + b]


@kernel
def take_valid(present: U8, picks: I64, valid: U8, first: int) -> int:
    """Write 1 for a present and 0 for a missing value of every picked row; returns how many are missing."""
    missing = 0
    for i in range(picks.size):
        valid[first + i] = present[picks[i]]
        missing += 1 - np.int64(present[picks[i]])
    return missing


@kernel
def picked_bytes(starts: I64, picks: I64) -> int:
    """Total length of the picked values of variable length."""
    total = 0
    for i in range(picks.size):
        total += starts[picks[i] + 1] - starts[picks[i]]
    return total


@kernel
def take_cells(starts: I64, source: U8, picks: I64, ends: NDArray[np.signedinteger], data: U8, first: int) -> None:
    """Append picked values of variable length, as `gather_cells` does for rows."""
    end = np.int64(ends[first])
    for i in range(picks.size):
        start, stop = starts[picks[i]], starts[picks[i] + 1]
        for b in range(stop - start):
            data[end + b] = source[start + b]
        end += stop - start
        ends[first + i + 1] = end
