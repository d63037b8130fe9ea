"""Who waits for which block of the master: for every range of neighbouring pages a chain of tuples, and how many they are.

    word -> last page -> block -> head -> slot -> slot -> slot

A block that is served answers everybody in its chain, so chains are emptied as a whole and need links in one direction only.
A word whose rows go on over several blocks belongs to the block of its last page.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semistream.parts.compiler import kernel
from semistream.parts.memory import F64, I32, I64
from semistream.parts.slots import WORD, Slots
from semistream.parts.word_pages import last_page

BLOCK_BYTES = 4 + 8 + 8  # of a block: head, count, asked
LINK_BYTES = 4  # of a slot


class BlockWaits(NamedTuple):
    """First word and block of every page; chain, its length and how often it was asked for of every block; links between slots."""

    first_words: I64
    block: I32
    head: I32
    count: I64
    asked: F64
    link: I32


@kernel
def block_of(waits: BlockWaits, word: int) -> int:
    """The block that a word belongs to; words before the first page belong to the first block."""
    return np.int64(waits.block[max(0, last_page(waits.first_words, word))])


@kernel
def enter(waits: BlockWaits, slots: Slots, picks: I64) -> None:
    """Hang tuples on the chains of their blocks."""
    for slot in picks:
        block = block_of(waits, slots.wide[slot, WORD])
        waits.link[slot] = waits.head[block]
        waits.head[block] = slot
        waits.count[block] += 1
        waits.asked[block] += 1.0


@kernel
def take(waits: BlockWaits, block: int, picks: I64) -> int:
    """Move tuples of a block's chain into `picks`, as many as it holds; returns how many."""
    slot, count = np.int64(waits.head[block]), 0
    while slot >= 0 and count < picks.size:
        picks[count] = slot
        count += 1
        slot = np.int64(waits.link[slot])
    waits.head[block] = slot
    waits.count[block] -= count
    return count
