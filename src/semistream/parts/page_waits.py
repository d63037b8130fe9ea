"""Who waits for which pages: for every group of neighbouring pages its waiting tuples, how many, and since when.

    word -> group (the sparse index, searched)     group -> head -> slot -> slot -> slot      the tuples that wait for it
                                                            count, total and first of their stream positions

A load answers all tuples whose word lies between its first word and that of the next page, those of absent keys included, so a chain is
emptied at once and needs links in one direction only: the stream table's back links serve. What stays is a word whose rows go on
outside the load.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semistream.parts.compiler import kernel
from semistream.parts.memory import I32, I64
from semistream.parts.slots import ARRIVED, WORD
from semistream.parts.stream_table import StreamTable, drop_entry, find

GROUP_BYTES = 4 * 8


class PageWaits(NamedTuple):
    """The groups: `pages` neighbours each, with first words `first_words[::pages]`."""

    first_words: I64
    pages: int
    head: I64
    count: I64
    total: I64
    first: I64
    link: I32


def reset(waits: PageWaits) -> None:
    """Nobody waits."""
    waits.head.fill(-1)
    waits.count.fill(0)
    waits.total.fill(0)


@kernel
def group_of(waits: PageWaits, word: int) -> int:
    """The last group whose first word does not lie behind `word`."""
    low, high = 0, waits.head.size
    while high - low > 1:
        middle = (low + high) >> 1
        if waits.first_words[middle * waits.pages] <= word:
            low = middle
        else:
            high = middle
    return low


@kernel
def chain(waits: PageWaits, group: int, slot: int, position: int) -> None:
    """Hang a tuple on its group."""
    waits.link[slot] = waits.head[group]
    waits.head[group] = slot
    if waits.count[group] == 0 or position < waits.first[group]:
        waits.first[group] = position
    waits.count[group] += 1
    waits.total[group] += position


@kernel
def enter(waits: PageWaits, table: StreamTable, picks: I64) -> None:
    """Hang tuples that were admitted on their groups."""
    wide = table.slots.wide
    for slot in picks:
        chain(waits, group_of(waits, wide[slot, WORD]), slot, wide[slot, ARRIVED] >> 1)


@kernel
def sweep(waits: PageWaits, table: StreamTable, group: int, edges: I64, open_words: I64, heads: I64) -> int:
    """Go through the tuples of a group after a load: those that have left already are dropped, those whose word the load has answered
    are detached into `heads`, the others stay. Returns how many heads; if the list is full there may be more.

    `edges` (flag, word, flag, word) are the first word of the load and of what follows it. A flag of 2 says that nothing is answered.
    """
    wide, slot, count = table.slots.wide, waits.head[group], 0
    waits.head[group], waits.count[group], waits.total[group] = -1, 0, 0
    while slot >= 0:
        behind = np.int64(waits.link[slot])
        word = wide[slot, WORD]
        entry = find(table, word)
        if (
            table.tag[entry] != 0
        ):  # tuples of a word leave together, and slots keep their words until somebody else moves in
            inside = (edges[0] == 0 or word >= edges[1]) and (edges[2] == 0 or word < edges[3])
            is_open = (open_words[0] != 0 and word == open_words[1]) or (open_words[2] != 0 and word == open_words[3])
            if edges[0] != 2 and inside and not is_open and count < heads.size:
                heads[count] = table.entry_head[entry]
                count += 1
                drop_entry(table, entry)
            else:
                chain(waits, group, slot, wide[slot, ARRIVED] >> 1)
        slot = behind
    return count


@kernel
def longest_wait(waits: PageWaits, now: int, product: bool) -> int:
    """The group with the largest sum of waits; with `product`, of waiting tuples times the wait of the first."""
    best, largest = 0, np.int64(-1)
    for group in range(waits.count.size):
        count = waits.count[group]
        score = count * (now - waits.first[group]) if product else count * now - waits.total[group]
        if score > largest:
            best, largest = group, score
    return best
