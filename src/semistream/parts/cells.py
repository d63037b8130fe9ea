"""Byte strings of variable length, side by side: value i is data[starts[i]:starts[i + 1]]. Used to encode nested values."""

from __future__ import annotations

import numpy as np

from semistream.parts.compiler import kernel
from semistream.parts.memory import I64, U8


@kernel
def flag_cells(starts: I64, data: U8, valid: U8) -> tuple[I64, U8]:
    """Every value behind a 1, every missing value as a single 0."""
    rows = valid.size
    ends = np.zeros(rows + 1, np.int64)
    for i in range(rows):
        ends[i + 1] = ends[i] + 1 + (starts[i + 1] - starts[i] if valid[i] else 0)
    flagged = np.zeros(max(ends[rows], 1), np.uint8)
    for i in range(rows):
        flagged[ends[i]] = valid[i]
        for b in range(ends[i + 1] - ends[i] - 1):
            flagged[ends[i] + 1 + b] = data[starts[i] + b]
    return ends, flagged


@kernel
def read_flags(starts: I64, data: U8) -> U8:
    """1 where a value is present."""
    present = np.zeros(starts.size - 1, np.uint8)
    for i in range(present.size):
        if starts[i + 1] > starts[i]:
            present[i] = data[starts[i]]
    return present


@kernel
def unflag_cells(starts: I64, data: U8, present: U8, size: int) -> tuple[I64, U8]:
    """Values without their flags; with a fixed `size` (not -1) missing values take as many zero bytes."""
    rows = present.size
    ends = np.zeros(rows + 1, np.int64)
    for i in range(rows):
        length = starts[i + 1] - starts[i] - 1 if present[i] else 0
        ends[i + 1] = ends[i] + (size if size >= 0 else length)
    plain = np.zeros(max(ends[rows], 8), np.uint8)
    for i in range(rows):
        if present[i]:
            for b in range(starts[i + 1] - starts[i] - 1):
                plain[ends[i] + b] = data[starts[i] + 1 + b]
    return ends, plain


@kernel
def join_cells(starts: I64, child: U8, groups: I64, valid: U8, data: U8, cursor: I64) -> None:
    """Append to row i, at cursor[i], the child values groups[i] to groups[i + 1], each behind its length."""
    for i in range(valid.size):
        if valid[i]:
            at = cursor[i]
            for k in range(groups[i], groups[i + 1]):
                length = starts[k + 1] - starts[k]
                for b in range(4):
                    data[at + b] = (length >> (8 * b)) & 0xFF
                for b in range(length):
                    data[at + 4 + b] = child[starts[k] + b]
                at += 4 + length
            cursor[i] = at


@kernel
def _length(data: U8, at: int) -> int:
    return (
        np.int64(data[at]) | np.int64(data[at + 1]) << 8 | np.int64(data[at + 2]) << 16 | np.int64(data[at + 3]) << 24
    )


@kernel
def count_cells(starts: I64, data: U8, present: U8) -> I64:
    """How many child values every row holds."""
    counts = np.zeros(present.size, np.int64)
    for i in range(present.size):
        at = starts[i] + 1
        while present[i] and at < starts[i + 1]:
            at += 4 + _length(data, at)
            counts[i] += 1
    return counts


@kernel
def split_cells(cursor: I64, data: U8, counts: I64, present: U8) -> tuple[I64, U8]:
    """Take the next counts[i] child values of every row; `cursor` moves behind them. The children of missing rows are empty."""
    total, size = 0, 0
    for i in range(counts.size):
        total += counts[i]
        at = cursor[i]
        for _ in range(counts[i] if present[i] else 0):
            length = _length(data, at)
            size += length
            at += 4 + length
    starts = np.zeros(total + 1, np.int64)
    child = np.zeros(max(size, 1), np.uint8)
    filled = 0
    for i in range(counts.size):
        for _ in range(counts[i]):
            length = _length(data, cursor[i]) if present[i] else 0
            for b in range(length):
                child[starts[filled] + b] = data[cursor[i] + 4 + b]
            cursor[i] += 4 + length if present[i] else 0
            starts[filled + 1] = starts[filled] + length
            filled += 1
    return starts, child
