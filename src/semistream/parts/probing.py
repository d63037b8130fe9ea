"""Probing: the rows of a load against the stream table.

    pages -> pick_rows -> rows that probably match -> probe or claim -> pairs (slot, row)

Most rows of a master meet no waiting tuple. `pick_rows` turns them away by their tags alone, without a branch that depends on the
outcome, so that the processor overlaps the cache misses of many rows; everything after it sees few rows.

All three stop when their output is full and go on where the cursor says: a key with thousands of rows and thousands of waiting tuples gives
any number of pairs, and the list of pairs has one size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semistream.parts.compiler import kernel
from semistream.parts.memory import I64, Memory
from semistream.parts.slots import NEXT, WORD
from semistream.parts.stream_table import StreamTable, drop_entry, find, head_of, home_of, tag_of
from semistream.parts.words import spread


class Picked(NamedTuple):
    """Rows of a load whose word has a waiting tuple, most likely: word, place, heap base."""

    words: I64
    row_at: I64
    heap_at: I64


def closed(picked: Picked, open_words: I64) -> Picked:
    """Picked rows without those of words that go on outside the load (flag, word, flag, word)."""
    for flag, word in open_words.reshape(2, 2):
        if flag:
            picked = without(picked, word)
    return picked


def without(picked: Picked, word: int) -> Picked:
    """Picked rows without those of one word."""
    stay = picked.words != word
    return Picked(*(array[stay] for array in picked))


@kernel
def pick_rows(table: StreamTable, memory: Memory, page_at: I64, width: int, cursor: I64, picked: Picked) -> int:
    """Sift rows of pages by tags, as many as `picked` could hold; returns how many stayed. `cursor` (page, row) says where to go on."""
    size = table.tag.size
    count = 0
    while cursor[0] < page_at.size:
        at = page_at[cursor[0]]
        rows = np.int64(memory.b4[(at >> 2) + 1])
        first = at + np.int64(memory.b4[(at >> 2) + 6])
        stop = min(rows, cursor[1] + picked.words.size - count)
        for row in range(cursor[1], stop):
            word = np.int64(memory.b8[(at >> 3) + 4 + row])
            mixed = spread(word)
            tag, entry = tag_of(mixed), home_of(mixed, size)
            while table.tag[entry] != 0 and table.tag[entry] != tag:
                entry += 1
                if entry == size:
                    entry = 0
            picked.words[count] = word  # written in any case, counted only if it stays: no branch to mispredict
            picked.row_at[count] = first + row * width
            picked.heap_at[count] = at
            count += 1 if table.tag[entry] != 0 else 0
        if stop < rows:
            cursor[1] = stop
            return count
        cursor[0] += 1
        cursor[1] = 0
    return count


@kernel
def take_rows(memory: Memory, page_at: I64, width: int, cursor: I64, picked: Picked) -> int:
    """Rows of pages, all of them, as many as `picked` holds; returns how many. `cursor` (page, row) says where to go on."""
    count = 0
    while cursor[0] < page_at.size:
        at = page_at[cursor[0]]
        rows = np.int64(memory.b4[(at >> 2) + 1])
        first = at + np.int64(memory.b4[(at >> 2) + 6])
        stop = min(rows, cursor[1] + picked.words.size - count)
        for row in range(cursor[1], stop):
            picked.words[count] = np.int64(memory.b8[(at >> 3) + 4 + row])
            picked.row_at[count] = first + row * width
            picked.heap_at[count] = at
            count += 1
        if stop < rows:
            cursor[1] = stop
            return count
        cursor[0] += 1
        cursor[1] = 0
    return count


@kernel
def probe(table: StreamTable, picked: Picked, cursor: I64, found: Picked) -> int:
    """Pair picked rows with every pending tuple of their word, until `found` is full; returns the number of pairs.

    `cursor` (row, slot) says where to go on; its first number equals the number of rows when all is done. `found.words` gets slots.
    """
    pairs = 0
    while cursor[0] < picked.words.size:
        row = cursor[0]
        slot = cursor[1] if cursor[1] >= 0 else head_of(table, picked.words[row])
        while slot >= 0:
            if pairs == found.words.size:
                cursor[1] = slot
                return pairs
            found.words[pairs] = slot
            found.row_at[pairs] = picked.row_at[row]
            found.heap_at[pairs] = picked.heap_at[row]
            pairs += 1
            slot = np.int64(table.slots.links[slot, NEXT])
        cursor[1] = -1
        cursor[0] += 1
    return pairs


@kernel
def claim(table: StreamTable, picked: Picked, cursor: I64, found: Picked, heads: I64, more: bool) -> int:
    """As `probe`, for rows in word order: when a word's rows end, its tuples have seen all they can match and are detached.

    `heads` collects the chains that left; `cursor[2]` counts them. With `more`, rows of the last word may follow in another call.
    """
    pairs = 0
    while cursor[0] < picked.words.size:
        row = cursor[0]
        word = picked.words[row]
        entry = find(table, word)
        if table.tag[entry] != 0:
            if cursor[2] == heads.size:
                return pairs
            slot = cursor[1] if cursor[1] >= 0 else np.int64(table.entry_head[entry])
            while slot >= 0:
                if pairs == found.words.size:
                    cursor[1] = slot
                    return pairs
                found.words[pairs] = slot
                found.row_at[pairs] = picked.row_at[row]
                found.heap_at[pairs] = picked.heap_at[row]
                pairs += 1
                slot = np.int64(table.slots.links[slot, NEXT])
            ends = not more if row + 1 == picked.words.size else picked.words[row + 1] != word
            if ends:
                heads[cursor[2]] = table.entry_head[entry]
                cursor[2] += 1
                drop_entry(table, entry)
        cursor[1] = -1
        cursor[0] += 1
    return pairs


@kernel
def wanted(table: StreamTable, picked: Picked, least: float, chosen: Picked, waiting: I64) -> int:
    """Rows of the words on which enough tuples wait: `least` for every row of the word; returns how many rows.

    Rows of a word stand side by side. `waiting` gets for every chosen row how many tuples wait on its word, counted a little
    further than was asked for: who keeps them may prefer the hottest.
    """
    count, at = 0, 0
    while at < picked.words.size:
        word, stop = picked.words[at], at + 1
        while stop < picked.words.size and picked.words[stop] == word:
            stop += 1
        enough, waits = least * (stop - at), 0
        entry = find(table, word)
        slot = np.int64(table.entry_head[entry]) if table.tag[entry] != 0 else np.int64(-1)
        while slot >= 0 and waits < 64 + enough:
            waits += 1
            slot = np.int64(table.slots.links[slot, NEXT])
        if waits > 0 and waits >= enough:
            for i in range(at, stop):
                chosen.words[count] = word
                chosen.row_at[count] = picked.row_at[i]
                chosen.heap_at[count] = picked.heap_at[i]
                waiting[count] = waits
                count += 1
        at = stop
    return count


@kernel
def long_chains(table: StreamTable, heads: I64, least: int, words: I64, lengths: I64) -> int:
    """Words of those detached chains that have at least `least` tuples, and how many they have; returns how many there are."""
    count = 0
    for head in heads:
        length, slot = 0, head
        while slot >= 0:
            length += 1
            slot = np.int64(table.slots.links[slot, NEXT])
        if length >= least and count < words.size:
            words[count], lengths[count] = table.slots.wide[head, WORD], length
            count += 1
    return count
