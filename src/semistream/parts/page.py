"""What a page of master rows looks like, in memory and on disk.

    byte 0   u32  magic
         4   u32  rows in the page
         8   u64  checksum of all other bytes of the page (`sum_of`)
        16   i64  number of the page's first row in the master
        24   u32  byte offset of the first row (words end there, rounded up to 8)
        28   u32  byte offset behind the last used byte
        32   i64  key word of every row
        ...       fixed part of every row, one after the other
        ...       heap: bytes of variable-length values; a row's cells count from the start of the page

Words come first and side by side: probing reads 8 bytes a row and touches a row only when it matches. Pages start at multiples of
4 KiB in the file, so that they can be read past the page cache.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from semistream.parts.compiler import kernel, quick_kernel
from semistream.parts.memory import I64, U8, Memory

MAGIC = 0x31505353  # "SSP1"
HEADER_BYTES = 32
ALIGNMENT = 4096


class Rows(NamedTuple):
    """Packed master rows in the order they are to be written: words, fixed parts, and heap bytes of row i at heap[ends[i]:ends[i+1]]."""

    words: I64
    fixed: U8
    width: int
    heap: U8
    ends: I64


def rows_at(rows: int) -> int:
    """Byte offset of the first row in a page of so many rows."""
    return HEADER_BYTES + 8 * rows


@kernel
def copy_bytes(source: U8, start: int, target: U8, at: int, count: int) -> None:
    """Copy bytes, eight at a time where both sides allow it: numba makes no memcpy of a loop over arrays that may overlap.

    Heaps of packed rows are padded to 8, so that they allow it; byte by byte, building a master with text took a third longer.
    """
    done = 0
    if (start | at) & 7 == 0:
        words = count >> 3
        theirs, ours = source[start : start + 8 * words].view(np.uint64), target[at : at + 8 * words].view(np.uint64)
        for i in range(words):
            ours[i] = theirs[i]
        done = 8 * words
    for b in range(done, count):
        target[at + b] = source[start + b]


@kernel
def cut_pages(ends: I64, width: int, page_bytes: int, starts: I64) -> int:
    """Cut rows into pages: `starts[p]` becomes the first row of page p; returns the number of pages. A too wide row gets its own page."""
    rows = ends.size - 1
    pages, first = 0, 0
    while first < rows:
        starts[pages] = first
        last = first
        while last < rows:
            count = last + 1 - first
            if HEADER_BYTES + count * (8 + width) + ends[last + 1] - ends[first] > page_bytes and count > 1:
                break
            last += 1
        first = last
        pages += 1
    starts[pages] = rows
    return pages


@kernel
def fill_pages(memory: Memory, page_at: I64, rows: Rows, starts: I64, first_row: int, cells: I64) -> None:
    """Write rows starts[p] to starts[p + 1] as a page at byte page_at[p], for every p; the checksums are not set yet.

    `first_row` is the number in the master of row starts[0]. `cells` are the offsets of the variable columns in a row: their starts,
    relative to the row's own heap until now, are moved to count from the start of the page.
    """
    for p in range(page_at.size):
        at, first, stop = page_at[p], starts[p], starts[p + 1]
        count, width = stop - first, rows.width
        body = HEADER_BYTES + 8 * count
        heap = body + count * width
        heap_bytes = rows.ends[stop] - rows.ends[first]
        for i in range(count):
            memory.b8[(at >> 3) + 4 + i] = np.uint64(rows.words[first + i])
        copy_bytes(rows.fixed, first * width, memory.b1, at + body, count * width)
        copy_bytes(rows.heap, rows.ends[first], memory.b1, at + heap, heap_bytes)
        for i in range(count):
            base = heap + rows.ends[first + i] - rows.ends[first]
            for cell in cells:
                memory.b4[(at + body + i * width + cell) >> 2] += np.uint32(base)
        memory.b4[at >> 2] = np.uint32(MAGIC)
        memory.b4[(at >> 2) + 1] = np.uint32(count)
        memory.b8[(at >> 3) + 2] = np.uint64(first_row + first - starts[0])
        memory.b4[(at >> 2) + 6] = np.uint32(body)
        memory.b4[(at >> 2) + 7] = np.uint32(heap + heap_bytes)


# Keys of the checksum: one for each word of 8 KiB, from a linear congruential generator (Knuth's constants).
def _keys(count: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    state, low, high = 1, np.empty(count, np.uint64), np.empty(count, np.uint64)
    for i in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        low[i], high[i] = state & 0xFFFFFFFF, state >> 32
    return low, high


_KEY_LOW, _KEY_HIGH = _keys(1024)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@kernel
def _products(part: NDArray[np.uint64]) -> tuple[np.uint64, np.uint64]:
    """Sums of the lower and of the upper halves of the products."""
    low, high = np.uint64(0), np.uint64(0)
    for i in range(part.size):
        left, right = (part[i] & _LOW) + _KEY_LOW[i], (part[i] >> _HALF) + _KEY_HIGH[i]
        product = (left & _LOW) * (right & _LOW)
        low += product & _LOW
        high += product >> _HALF
    return low, high


@kernel
def sum_of(words: NDArray[np.uint64]) -> np.uint64:
    """Checksum of 64-bit words: the sum of products of their halves, each half plus a key of its place (the NH family of hashes).

    Two different pages have the same sum with a chance of 2^-32. It runs at the speed of memory; a library's hash, called page by page from
    Python, took a sixth of a join's time. Nothing in it can wrap.
    """
    total_low, total_high = np.uint64(words.size), np.uint64(0)
    for start in range(0, words.size, _KEY_LOW.size):
        low, high = _products(words[start : start + _KEY_LOW.size])
        # parts are told apart by what came before them
        total_low = (total_low & _LOW) * _KEY_LOW[1] ^ (total_low >> _HALF) ^ low
        total_high = (total_high & _LOW) * _KEY_HIGH[1] ^ (total_high >> _HALF) ^ high
    return total_low ^ (total_high << _HALF) ^ (total_high >> _HALF)


def _products_of_arrays(part: NDArray[np.uint64]) -> tuple[np.uint64, np.uint64]:
    """Sums of the lower and of the upper halves of the products. This form is for kernels that run as plain Python: no loop over words."""
    left, right = (part & _LOW) + _KEY_LOW[: part.size], (part >> _HALF) + _KEY_HIGH[: part.size]
    products = (left & _LOW) * (right & _LOW)
    return (products & _LOW).sum(), (products >> _HALF).sum()


if numba.config.DISABLE_JIT:
    _products = _products_of_arrays


@kernel
def seal_pages(memory: Memory, page_at: I64, sizes: I64) -> None:
    """Write the checksum of every page into its header."""
    for p in range(page_at.size):
        first = page_at[p] >> 3
        memory.b8[first + 1] = np.uint64(0)
        memory.b8[first + 1] = sum_of(memory.b8[first : first + (sizes[p] >> 3)])


@kernel
def first_damaged_page(memory: Memory, page_at: I64, sizes: I64) -> int:
    """The first page whose bytes are not those that were written, or -1. The pages are left as they were found."""
    for p in range(page_at.size):
        first = page_at[p] >> 3
        written = memory.b8[first + 1]
        memory.b8[first + 1] = np.uint64(0)
        found = sum_of(memory.b8[first : first + (sizes[p] >> 3)])
        memory.b8[first + 1] = written
        if found != written:
            return p
    return -1


@kernel
def take_heap(heap: U8, ends: I64, order: I64, new_ends: I64) -> U8:
    """Heap bytes of rows in another order."""
    taken = np.empty(max(new_ends[-1], 1), np.uint8)[: new_ends[-1]]
    for i in range(order.size):
        copy_bytes(heap, ends[order[i]], taken, new_ends[i], new_ends[i + 1] - new_ends[i])
    return taken


@quick_kernel
def first_bad_page(memory: Memory, page_at: I64, sizes: I64, width: int, cells: I64) -> int:
    """The first page whose numbers point outside of it, or -1.

    A checksum only says that the bytes are those that were written, and kernels trust the numbers: a page from another hand must not
    make them read elsewhere.
    """
    for p in range(page_at.size):
        at, size = page_at[p], sizes[p]
        rows = np.int64(memory.b4[(at >> 2) + 1])
        first, end = np.int64(memory.b4[(at >> 2) + 6]), np.int64(memory.b4[(at >> 2) + 7])
        if memory.b4[at >> 2] != np.uint32(MAGIC) or first < HEADER_BYTES + 8 * rows or first & 7 != 0:
            return p
        if first + rows * width > end or end > size:
            return p
        for row in range(rows if cells.size else 0):
            for cell in cells:
                place = (at + first + row * width + cell) >> 2
                if np.int64(memory.b4[place]) + np.int64(memory.b4[place + 1]) > size:
                    return p
    return -1


@kernel
def row_places(memory: Memory, page_at: I64, width: int, row_at: I64, heap_at: I64, words: I64) -> int:
    """Word, place and heap base of every row of pages, in order; returns their number."""
    filled = 0
    for at in page_at:
        count = np.int64(memory.b4[(at >> 2) + 1])
        first = at + np.int64(memory.b4[(at >> 2) + 6])
        for i in range(count):
            words[filled] = np.int64(memory.b8[(at >> 3) + 4 + i])
            row_at[filled] = first + i * width
            heap_at[filled] = at
            filled += 1
    return filled


@quick_kernel
def count_rows(words: NDArray[np.uint32], page_at: I64) -> int:
    """Rows in pages that lie at these byte offsets."""
    total = 0
    for at in page_at:
        total += np.int64(words[(at >> 2) + 1])
    return total
