"""The stream table: pending stream tuples, found by key word.

Every distinct pending word has one entry in an open-addressing table (linear probing, deletion by shifting back, so no tombstones);
the tuples of a word hang on its entry as a chain of slots linked both ways:

    tag | entry_word | entry_head ->  slot <-> slot <-> slot        one entry a word, however many tuples wait for it

One chain a word, and not one a bucket: with skewed keys a chain of thousands of tuples of a hot word must not be walked by the other
words of its bucket. The back link makes leaving by identity cheap (MESHJOIN expires tuples, not keys); where tuples leave by word only,
a recipe may have it for a chain of its own (`take_back_links`). No word is reserved to
mean "empty": an entry is empty when its tag is 0.

The tags, one byte of hash an entry, answer most probes from an array small enough for the second-level cache.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semistream.parts.compiler import kernel
from semistream.parts.memory import I32, I64, U8
from semistream.parts.slots import ARRIVED, NEXT, PREV, WORD, Slots
from semistream.parts.words import spread

# positions in `state`
FREE_HEAD, PENDING, KEYS, ONE_WAY = 0, 1, 2, 3
ENTRIES_PER_SLOT = (
    1.5  # load factor 2/3 when all pending words differ: about 2 steps a successful probe, 5 an unsuccessful one
)
ENTRY_BYTES = 1 + 8 + 4


class StreamTable(NamedTuple):
    """Entries by word, the slots that hang on them, and the head of the free slots."""

    tag: U8
    entry_word: I64
    entry_head: I32
    slots: Slots
    state: I64


def entries_for(slots: int) -> int:
    """Entries a table of so many slots needs."""
    return int(slots * ENTRIES_PER_SLOT) + 8


def reset(table: StreamTable) -> None:
    """Empty the table: every slot free, every entry empty."""
    count = table.slots.links.shape[0]
    table.tag.fill(0)
    table.slots.links[:, NEXT] = np.arange(1, count + 1, dtype=np.int32)
    table.slots.links[count - 1, 0] = -1
    table.state[:] = 0


def take_back_links(table: StreamTable) -> I32:
    """The back links, -1 for every tuple that is admitted: chains need them no more, and nobody may be detached by identity."""
    table.state[ONE_WAY] = 1
    return table.slots.links[:, PREV]


@kernel
def home_of(mixed: np.uint64, size: int) -> int:
    """Entry where the probe for a mixed word begins."""
    return np.int64(((mixed >> np.uint64(32)) * np.uint64(size)) >> np.uint64(32))


@kernel
def tag_of(mixed: np.uint64) -> np.uint8:
    """Tag of a mixed word, never 0."""
    return np.uint8((mixed & np.uint64(0xFF)) | np.uint64(1))


@kernel
def find(table: StreamTable, word: int) -> int:
    """Entry of a word, or the empty entry where it would go."""
    size = table.tag.size
    mixed = spread(word)
    tag, entry = tag_of(mixed), home_of(mixed, size)
    while table.tag[entry] != 0 and (table.tag[entry] != tag or table.entry_word[entry] != word):
        entry += 1
        if entry == size:
            entry = 0
    return entry


@kernel
def head_of(table: StreamTable, word: int) -> int:
    """First slot of a word's chain, or -1."""
    entry = find(table, word)
    return np.int64(table.entry_head[entry]) if table.tag[entry] != 0 else np.int64(-1)


@kernel
def chain_of(table: StreamTable, word: int) -> I64:
    """The slots that wait on a word."""
    count, slot = 0, head_of(table, word)
    while slot >= 0:
        count += 1
        slot = np.int64(table.slots.links[slot, NEXT])
    chain = np.empty(count, np.int64)
    slot = head_of(table, word)
    for i in range(count):
        chain[i] = slot
        slot = np.int64(table.slots.links[slot, NEXT])
    return chain


@kernel
def count_waiting(table: StreamTable, word: int, most: int) -> int:
    """How many tuples wait on a word, counted up to `most`.

    A count kept beside the head would have to be found again whenever a tuple expires, which costs every scan a cache miss a tuple;
    who asks wants to know whether enough wait, and walks over a chain that is probed next anyway.
    """
    count, slot = 0, head_of(table, word)
    while slot >= 0 and count < most:
        count += 1
        slot = np.int64(table.slots.links[slot, NEXT])
    return count


@kernel
def drop_entry(table: StreamTable, entry: int) -> None:
    """Remove an entry and shift back those that a probe would no longer reach."""
    size = table.tag.size
    hole, at = entry, entry
    table.state[KEYS] -= 1
    while True:
        at += 1
        if at == size:
            at = 0
        if table.tag[at] == 0:
            break
        home = home_of(spread(table.entry_word[at]), size)
        reachable = (hole < home <= at) if hole <= at else (home > hole or home <= at)
        if not reachable:
            table.tag[hole] = table.tag[at]
            table.entry_word[hole] = table.entry_word[at]
            table.entry_head[hole] = table.entry_head[at]
            hole = at
    table.tag[hole] = 0


@kernel
def admit(table: StreamTable, words: I64, stamps: I64, picks: I64, admitted: I64) -> int:
    """Give every picked word a slot, until none is free; returns how many found one. `stamps` say where in the stream they stand."""
    links, wide = table.slots.links, table.slots.wide
    for i in range(picks.size):
        slot = table.state[FREE_HEAD]
        if slot < 0:
            return i
        table.state[FREE_HEAD] = links[slot, NEXT]
        word = words[picks[i]]
        entry = find(table, word)
        head = -1
        if table.tag[entry] == 0:
            table.tag[entry] = tag_of(spread(word))
            table.entry_word[entry] = word
            table.state[KEYS] += 1
        else:
            head = table.entry_head[entry]
            if table.state[ONE_WAY] == 0:
                links[head, PREV] = slot
        table.entry_head[entry] = slot
        links[slot, NEXT] = head
        links[slot, PREV] = -1
        wide[slot, WORD] = word
        wide[slot, ARRIVED] = stamps[picks[i]]
        admitted[i] = slot
        table.state[PENDING] += 1
    return picks.size


@kernel
def detach(table: StreamTable, picks: I64) -> None:
    """Take tuples out of their chains; their slots stay readable until they are freed."""
    links = table.slots.links
    for slot in picks:
        behind, before = links[slot, NEXT], links[slot, PREV]
        if behind >= 0:
            links[behind, PREV] = before
        if before >= 0:
            links[before, NEXT] = behind
        else:
            entry = find(table, table.slots.wide[slot, WORD])
            if behind >= 0:
                table.entry_head[entry] = behind
            else:
                drop_entry(table, entry)


@kernel
def detach_word(table: StreamTable, word: int) -> int:
    """Take all tuples of a word out of the table; returns the first slot of their chain, or -1."""
    entry = find(table, word)
    if table.tag[entry] == 0:
        return np.int64(-1)
    head = np.int64(table.entry_head[entry])
    drop_entry(table, entry)
    return head


@kernel
def detach_words(table: StreamTable, words: I64, heads: I64) -> int:
    """Take all tuples of these words out of the table; `heads` gets the first slot of every chain. Returns how many there are."""
    count = 0
    for word in words:
        head = detach_word(table, word)
        if head >= 0:
            heads[count] = head
            count += 1
    return count


@kernel
def free(table: StreamTable, picks: I64) -> None:
    """Make slots of detached tuples free again."""
    for slot in picks:
        table.slots.links[slot, NEXT] = table.state[FREE_HEAD]
        table.state[FREE_HEAD] = slot
        table.state[PENDING] -= 1


@kernel
def unchain(table: StreamTable, heads: I64, gone: I64) -> int:
    """Flatten detached chains into `gone` until it is full; `heads` keep what is left of them (-1: nothing). Returns how many."""
    count = 0
    for i in range(heads.size):
        slot = heads[i]
        while slot >= 0 and count < gone.size:
            gone[count] = slot
            count += 1
            slot = np.int64(table.slots.links[slot, NEXT])
        heads[i] = slot
        if count == gone.size:
            break
    return count
