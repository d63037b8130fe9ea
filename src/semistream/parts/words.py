"""64-bit key words: the hash of keys that are not integers, and the mixing that spreads words over a table.

Only products of two 32-bit halves are used: they cannot wrap, so the kernels give the same answer (and no warning) with the JIT off.
The byte hash is written into master files: change it only together with the format version.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semistream.parts.compiler import kernel
from semistream.parts.memory import F64, I64, U8, Memory

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_P = np.uint64(0x9E3779B1)
_Q = np.uint64(0x85EBCA77)
_R = np.uint64(0xC2B2AE3D)
_SEED_A = np.uint64(0x27D4EB2F165667C5)
_SEED_B = np.uint64(0x165667B19E3779F9)


@kernel
def spread(word: int) -> np.uint64:
    """Mix a word so that both its halves are uniform for integers in sequence, in steps, or differing in any single bit.

    The upper half of a product of 32-bit numbers never comes near 2^32, and the last bits of its lower half are weak: without the
    last line a quarter of a table stayed empty, and an unsuccessful search in the rest of it took 17 steps instead of 4.
    """
    x = np.uint64(np.int64(word))
    x ^= (x & _LOW) * _P ^ ((x >> _HALF) * _Q)
    x ^= x >> np.uint64(29)
    x = (x & _LOW) * _R ^ ((x >> _HALF) * _P)
    return x ^ (x << _HALF) ^ (x >> _HALF)


@kernel
def hash_cells(starts: I64, data: U8, words: I64) -> None:
    """One word per byte string: two lanes of four bytes each, mixed with their length."""
    for i in range(words.size):
        start, stop = starts[i], starts[i + 1]
        a, b = _SEED_A, _SEED_B ^ np.uint64(stop - start)
        for at in range(start, stop, 8):
            left, right = np.uint64(0), np.uint64(0)
            for byte in range(min(4, stop - at)):
                left |= np.uint64(data[at + byte]) << np.uint64(8 * byte)
            for byte in range(4, min(8, stop - at)):
                right |= np.uint64(data[at + byte]) << np.uint64(8 * (byte - 4))
            a = ((a ^ left) & _LOW) * _P ^ (a >> _HALF) ^ (b << np.uint64(11))
            b = ((b ^ right) & _LOW) * _Q ^ (b >> _HALF) ^ (a << np.uint64(7))
        a ^= a >> _HALF
        b ^= b >> _HALF
        high = ((a & _LOW) * _R) ^ (b << np.uint64(3))
        low = ((b & _LOW) * _P) ^ a
        words[i] = np.int64((high ^ (high >> np.uint64(31))) ^ (low << np.uint64(17)) ^ (low >> np.uint64(23)))


@kernel
def float_words(values: F64, words: I64, bits: I64) -> None:
    """Words of floats by Spark's rules: every NaN is one key, and -0.0 is 0.0. `bits` are the same bytes as `values`."""
    for i in range(words.size):
        if values[i] != values[i]:
            words[i] = np.int64(0x7FF8000000000000)
        else:
            words[i] = np.int64(0) if values[i] == 0.0 else bits[i]


@kernel
def append_part(part: I64, valid: U8, data: U8, cursor: I64) -> None:
    """One fixed-width part of composite keys: a flag (0: missing), then 8 bytes."""
    for i in range(cursor.size):
        data[cursor[i]] = valid[i]
        if valid[i]:
            for b in range(8):
                data[cursor[i] + 1 + b] = (part[i] >> (8 * b)) & 0xFF
        cursor[i] += 9


@kernel
def append_cell(starts: I64, source: U8, valid: U8, data: U8, cursor: I64) -> None:
    """One variable part of composite keys: a flag (0: missing), u32 length, the bytes."""
    for i in range(cursor.size):
        length = starts[i + 1] - starts[i] if valid[i] else 0
        data[cursor[i]] = valid[i]
        for b in range(4):
            data[cursor[i] + 1 + b] = (length >> (8 * b)) & 0xFF
        for b in range(length):
            data[cursor[i] + 5 + b] = source[starts[i] + b]
        cursor[i] += 5 + length


class RowSide(NamedTuple):
    """Packed rows, one side of a comparison."""

    memory: Memory
    row_at: I64
    heap_at: I64


class KeyPlaces(NamedTuple):
    """Where a row shows its key for verification: its null bit (0: never missing) and its cell (offset -1: none)."""

    null_at: int
    null_bit: int
    cell: int


@kernel
def same_keys(stream: RowSide, master: RowSide, places: tuple[KeyPlaces, KeyPlaces], null_safe: bool, same: U8) -> None:
    """Whether pairs of rows with equal words have equal keys."""
    s_memory, s_row, s_heap = stream
    m_memory, m_row, m_heap = master
    s, m = places
    for i in range(same.size):
        s_null = (s_memory.b1[s_row[i] + s.null_at] & s.null_bit) != 0
        m_null = (m_memory.b1[m_row[i] + m.null_at] & m.null_bit) != 0
        if s_null or m_null:
            same[i] = 1 if null_safe and s_null and m_null else 0
            continue
        same[i] = 1
        if s.cell >= 0:
            s_cell, m_cell = (s_row[i] + s.cell) >> 2, (m_row[i] + m.cell) >> 2
            length = np.int64(s_memory.b4[s_cell + 1])
            if length != np.int64(m_memory.b4[m_cell + 1]):
                same[i] = 0
                continue
            s_at = s_heap[i] + np.int64(s_memory.b4[s_cell])
            m_at = m_heap[i] + np.int64(m_memory.b4[m_cell])
            for b in range(length):
                if s_memory.b1[s_at + b] != m_memory.b1[m_at + b]:
                    same[i] = 0
                    break


@kernel
def same_plain_keys(
    stream: tuple[I64, U8, U8, I64], master: RowSide, places: tuple[KeyPlaces, KeyPlaces], null_safe: bool, same: U8
) -> None:
    """As `same_keys`, for stream tuples that still are columns: starts and bytes of the key, what is present (empty: all), picks."""
    starts, data, valid, picks = stream
    memory, row_at, heap_at = master
    s, m = places
    for i in range(same.size):
        s_null = s.null_bit != 0 and valid.size != 0 and valid[picks[i]] == 0
        m_null = (memory.b1[row_at[i] + m.null_at] & m.null_bit) != 0
        if s_null or m_null:
            same[i] = 1 if null_safe and s_null and m_null else 0
            continue
        same[i] = 1
        if s.cell >= 0:
            start, cell = starts[picks[i]], (row_at[i] + m.cell) >> 2
            length = starts[picks[i] + 1] - start
            at = heap_at[i] + np.int64(memory.b4[cell])
            if length != np.int64(memory.b4[cell + 1]):
                same[i] = 0
                continue
            for b in range(length):
                if data[start + b] != memory.b1[at + b]:
                    same[i] = 0
                    break
