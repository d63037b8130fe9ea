"""Finding keys in a master that stands in word order: from a word to its bin, to its page, to its rows.

    words --> bins_of --> (a bin is served) --> pages_of --> by_page --> next_load --> match --> pairs (tuple, row)

Everything is a search in sorted words, so there is nothing to build for a load, and any number of rows may share a word.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semistream.parts.compiler import kernel, quick_kernel
from semistream.parts.memory import I32, I64, U8, Memory

_SIGN = np.uint64(1 << 63)
_ONE = np.uint64(1)
_SMALLEST = np.int64(-(1 << 63))
_NEAR = 8


class Finder(NamedTuple):
    """First words of ranges, in order, and for equal steps of the word's upper bits the range where a search may begin."""

    bounds: I64
    steps: I32
    shift: int


def finder_steps(count: int) -> int:
    """Steps that a finder over so many ranges should have."""
    return 4 * count + 2


def finder_over(bounds: I64, steps: I32) -> Finder:
    """Fill `steps` for these bounds."""
    if not bounds.size:
        return Finder(bounds, steps, 0)
    span = int(bounds[-1]) - int(bounds[0])
    shift = max(0, span.bit_length() - (steps.size - 1).bit_length() + 1)
    edges = np.array([min(int(bounds[0]) + (i << shift), int(bounds[-1])) for i in range(steps.size)], np.int64)
    steps[:] = np.maximum(bounds.searchsorted(edges, "right") - 1, 0)
    return Finder(bounds, steps, shift)


@quick_kernel
def bins_of(finder: Finder, words: I64, picks: I64, found: I64) -> None:
    """The range that each picked word falls into; words before the first range count as of the first."""
    bounds, last = finder.bounds, np.uint64(finder.steps.size - 1)
    first, shift = np.uint64(bounds[0]) ^ _SIGN, np.uint64(finder.shift)
    for i in range(picks.size):
        word = words[np.uint64(picks[i])]
        low = np.int64(0)
        if word >= bounds[0]:
            # both halves of the int64 range are one sequence once the sign bit is turned; the difference then cannot wrap
            step = min(((np.uint64(word) ^ _SIGN) - first) >> shift, last)
            low = np.int64(finder.steps[step])
            high = np.int64(finder.steps[step + _ONE]) if step < last else bounds.size - 1
            while low < high:
                middle = (low + high + 1) >> 1
                if bounds[np.uint64(middle)] <= word:
                    low = middle
                else:
                    high = middle - 1
        found[i] = low


@kernel
def words_up_to(words: I64, word: int) -> int:
    """How many of these ascending words are the given one or come before it.

    Keys in sequence and hashes lie evenly, so the first guess is where the word would be if all did, and the answer a few steps from there;
    otherwise what is left is halved. Halving from the beginning took 15 times as long.
    """
    count = words.size
    if count == 0 or word < words[0]:
        return np.int64(0)
    if word >= words[count - 1]:
        return np.int64(count)
    # differences first: far from zero, words of a page may all be the same floating-point number
    first = np.uint64(words[0]) ^ _SIGN
    reach, span = (np.uint64(word) ^ _SIGN) - first, (np.uint64(words[count - 1]) ^ _SIGN) - first
    guess = np.int64(float(reach) / float(span) * (count - 1))
    low: int = min(guess, np.int64(count - 1))
    high: int = low
    if words[np.uint64(low)] <= word:
        high = min(low + _NEAR, count - 1)
        while low < high and words[np.uint64(low + 1)] <= word:
            low += 1
        if low < high:
            return low + 1
        high = np.int64(count - 1)
    else:
        low = max(high - _NEAR, np.int64(0))
        while high > low and words[np.uint64(high - 1)] > word:
            high -= 1
        if high > low:
            return high
        low = np.int64(0)
    while high - low > 1:  # words[low] <= word < words[high]
        middle = (low + high) >> 1
        if words[np.uint64(middle)] <= word:
            low = middle
        else:
            high = middle
    return high


@quick_kernel
def pages_of(first_words: I64, continues: U8, words: I64, pages: I64) -> int:
    """Page of each word; -1: the master lacks it for sure; -2: its rows stand in several pages. Returns how many are -2."""
    several = 0
    for i in range(words.size):
        word = words[i]
        page = words_up_to(first_words, word) - 1
        if page >= 0 and continues[np.uint64(page)] and first_words[np.uint64(page)] == word:
            page = np.int64(-2)
            several += 1
        pages[i] = page
    return several


@quick_kernel
def by_page(pages: I64, starts: I64, order: I64) -> int:
    """Counting sort: `order` gets the tuples by page, arrivals in order. Those of no single page come first; returns their number.

    `starts` is scratch, two numbers more than there are pages.
    """
    starts[:] = 0
    for page in pages:
        starts[np.uint64(max(page, -1) + 2)] += 1
    for i in range(1, starts.size):
        starts[i] += starts[i - 1]
    elsewhere = starts[1]
    for i in range(pages.size):
        place = np.uint64(max(pages[i], -1) + 1)
        order[np.uint64(starts[place])] = i
        starts[place] += 1
    return elsewhere


@quick_kernel
def next_load(pages: I64, order: I64, start: int, page_at: I64, room: int, gap: int) -> tuple[int, int, int]:
    """Pages to read together for the tuples from `start` on: (first page, stop page, the first tuple that is not served by them).

    Pages nobody waits for are read along when skipping them would not pay (`gap` bytes).
    """
    first = pages[order[start]]
    stop, at = first + 1, start
    while at < order.size:
        page = pages[np.uint64(order[np.uint64(at)])]
        if page >= stop:
            if page_at[page + 1] - page_at[first] > room or page_at[page] - page_at[stop] > gap:
                break
            stop = page + 1
        at += 1
    return first, stop, at


class Wanted(NamedTuple):
    """Tuples that are looked for: pick, word and page, and room for the numbers of those that have no row."""

    picks: I64
    words: I64
    pages: I64
    absent: I64


class Pairs(NamedTuple):
    """Room for what is found: tuple, place of the row, its heap base."""

    picks: I64
    row_at: I64
    heap_at: I64


@kernel
def first_row(words: I64, word: int) -> int:
    """The first of these ascending words that does not come before the given one."""
    return words_up_to(words, word - 1) if word != _SMALLEST else np.int64(0)


@kernel
def match(
    memory: Memory,
    page_at: I64,
    first: int,
    width: int,
    wanted: Wanted,
    order: I64,
    cursor: I64,
    pairs: Pairs,
    asked: I32,
) -> int:
    """Pair tuples with the rows of their page until `pairs` is full; returns the number of pairs. All rows of a word are in its page.

    `cursor` is (tuple in `order`, row, absent tuples so far), the row -1 at the beginning of a tuple. `asked` counts, for every row of the
    load, how many tuples asked for it; its first row is number 0.
    """
    numbers = memory.b8.view(np.int64)
    base_row = numbers[(page_at[0] >> 3) + 2]
    count, room = 0, pairs.picks.size
    for place in range(cursor[0], order.size):
        i = np.uint64(order[place])
        at, word = page_at[np.uint64(wanted.pages[i] - first)], wanted.words[i]
        rows = np.int64(memory.b4[np.uint64((at >> 2) + 1)])
        words = numbers[(at >> 3) + 4 : (at >> 3) + 4 + rows]
        row = cursor[1] if cursor[1] >= 0 else first_row(words, word)
        number = numbers[np.uint64((at >> 3) + 2)] - base_row
        if cursor[1] < 0 and (row == rows or words[np.uint64(row)] != word):
            wanted.absent[cursor[2]] = i
            cursor[2] += 1
        base = at + np.int64(memory.b4[np.uint64((at >> 2) + 6)])
        while row < rows and words[np.uint64(row)] == word:
            if count == room:
                cursor[0], cursor[1] = place, row
                return count
            pairs.picks[np.uint64(count)] = wanted.picks[i]
            pairs.row_at[np.uint64(count)] = base + row * width
            pairs.heap_at[np.uint64(count)] = at
            asked[np.uint64(number + row)] += 1
            count += 1
            row += 1
        cursor[1] = -1
    cursor[0] = order.size
    return count
