"""Pages that stay in memory answer tuples at once: binary search for the page, for the row in it, and the rows of its word from there.

A word is answered only if every page that may hold a row of it is kept; then the answer is complete, even if it is "none".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semistream.parts.compiler import kernel
from semistream.parts.memory import F64, I32, I64, U8, Memory
from semistream.parts.word_pages import first_page, last_page

PAGE_BYTES = 8 + 4  # of a page: where it lies, its block
# positions in the cursor: tuple, page and row in hand, tuples left over so far, tuples answered by this call
PICK, PAGE, ROW, LEFT, GONE = 0, 1, 2, 3, 4


class KeptPages(NamedTuple):
    """The sparse index; where every page lies in the slab (-1: it does not), its block, and how often each block was asked for."""

    first_words: I64
    continues: U8
    at: I64
    block: I32
    asked: F64


class Questions(NamedTuple):
    """Words of a batch, the tuples that ask, and room for those that are left over."""

    words: I64
    picks: I64
    left: I64


class Answers(NamedTuple):
    """Room for pairs (tuple, row, heap base) and for tuples that are answered."""

    picks: I64
    row_at: I64
    heap_at: I64
    gone: I64


@kernel
def start_of(kept: KeptPages, word: int) -> int:
    """The first page of a word all of whose pages are kept, or -1."""
    last = last_page(kept.first_words, word)
    if last < 0 or kept.at[last] < 0:
        return np.int64(-1)
    first = first_page(kept.first_words, kept.continues, word, last)
    for page in range(first, last):
        if kept.at[page] < 0:
            return np.int64(-1)
    kept.asked[kept.block[last]] += 1.0
    return first


@kernel
def first_row(memory: Memory, at: int, word: int) -> int:
    """The first row of a page whose word is not smaller."""
    low, high = np.int64(0), np.int64(memory.b4[(at >> 2) + 1])
    while low < high:
        middle = (low + high) >> 1
        if np.int64(memory.b8[(at >> 3) + 4 + middle]) < word:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def answer(kept: KeptPages, memory: Memory, width: int, asked: Questions, cursor: I64, found: Answers) -> int:
    """Answer tuples until `found` is full or all have been asked; returns the number of pairs. `cursor` says where to go on."""
    pairs = 0
    cursor[GONE] = 0
    while cursor[PICK] < asked.picks.size and cursor[GONE] < found.gone.size:
        pick = asked.picks[cursor[PICK]]
        word, page, row = asked.words[pick], cursor[PAGE], cursor[ROW]
        if page < 0:
            page = start_of(kept, word)
            if page < 0:
                asked.left[cursor[LEFT]] = pick
                cursor[LEFT] += 1
                cursor[PICK] += 1
                continue
            row = first_row(memory, kept.at[page], word)
        while page >= 0:
            at = kept.at[page]
            rows = np.int64(memory.b4[(at >> 2) + 1])
            base = at + np.int64(memory.b4[(at >> 2) + 6])
            while row < rows and np.int64(memory.b8[(at >> 3) + 4 + row]) == word:
                if pairs == found.picks.size:
                    cursor[PAGE], cursor[ROW] = page, row
                    return pairs
                found.picks[pairs] = pick
                found.row_at[pairs] = base + row * width
                found.heap_at[pairs] = at
                pairs += 1
                row += 1
            goes_on = row == rows and page + 1 < kept.at.size and kept.first_words[page + 1] == word
            page, row = (page + 1 if goes_on else -1), 0
        found.gone[cursor[GONE]] = pick
        cursor[GONE] += 1
        cursor[PICK] += 1
        cursor[PAGE] = -1
    return pairs
