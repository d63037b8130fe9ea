"""The tile cache: hot keys with all their rows, in tiles that are filled one after the other and emptied oldest first.

    tag | word, what ->  tile:  item | item | item ...      an item is a key: header, then its rows, then their bytes of variable length

    item      i64  bytes of the item
              i64  key word
              ...  fixed parts of the rows, one after the other
              ...  heap: a row's cells count from the start of the item

A key is kept whole or not at all, so a hit needs no page. A key that the master lacks is an item without rows. `what` says where the
item lies, how many rows it has, and how often it was hit since it was written there:

    what = place / 8 << 32 | rows << 16 | hits

How items come and go is told in tile_items.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from semistream.parts import tiles as tile_lists
from semistream.parts.compiler import kernel
from semistream.parts.memory import I64, U8
from semistream.parts.stream_table import home_of, tag_of
from semistream.parts.tiles import Tiles
from semistream.parts.words import spread

WORD, WHAT = 0, 1
# positions in `state`: ends of the list of tiles, tiles held, keys held, tiles that may be held
OLDEST, NEWEST, HELD, KEYS, MOST = 0, 1, 2, 3, 4
# numbers of a tile: stream position at which it was opened, bytes used
BORN, USED = 0, 1
ENTRY_BYTES = 17
ENTRIES_PER_KEY = 1.5
KEY_BYTES = 26  # what a key costs in the table
HEADER_BYTES = 16
ROWS_MOST = (1 << 16) - 1
_BLOCK = 64
_NONE, _ONE = np.uint64(0), np.uint64(1)
# hits are counted up to here, and who has so many stays: threads that write to the same hot entries all the time wait for each other
HITS_MOST = np.int64(255)


class TileCache(NamedTuple):
    """Entries by word, and the list of tiles that hold their items, with the numbers of every tile."""

    tag: U8
    entry: I64
    state: I64
    tile: I64


def reset(cache: TileCache, tiles_most: int) -> None:
    """Forget everything (the tiles are the pool's)."""
    cache.tag.fill(0)
    cache.state[:] = (-1, -1, 0, 0, tiles_most)


@kernel
def clear(cache: TileCache, tiles: Tiles) -> None:
    """Forget everything and give the tiles back."""
    tile = cache.state[OLDEST]
    for _ in range(cache.state[HELD]):
        behind = np.int64(tiles.link[tile])
        tile_lists.give(tiles, tile)
        tile = behind
    cache.tag[:] = 0
    cache.state[:4] = 0
    cache.state[OLDEST] = cache.state[NEWEST] = -1


@kernel
def find(cache: TileCache, word: int) -> int:
    """Entry of a word, or the empty entry where it would go."""
    size = cache.tag.size
    mixed = spread(word)
    tag, entry = tag_of(mixed), home_of(mixed, size)
    while cache.tag[entry] != 0 and (cache.tag[entry] != tag or cache.entry[entry, WORD] != word):
        entry += 1
        if entry == size:
            entry = 0
    return entry


@kernel
def drop_entry(cache: TileCache, entry: int) -> None:
    """Remove an entry and shift back those that a probe would no longer reach."""
    size = cache.tag.size
    hole, at = entry, entry
    cache.state[KEYS] -= 1
    while True:
        at += 1
        if at == size:
            at = 0
        if cache.tag[at] == 0:
            break
        home = home_of(spread(cache.entry[at, WORD]), size)
        reachable = (hole < home <= at) if hole <= at else (home > hole or home <= at)
        if not reachable:
            cache.tag[hole] = cache.tag[at]
            cache.entry[hole, WORD] = cache.entry[at, WORD]
            cache.entry[hole, WHAT] = cache.entry[at, WHAT]
            hole = at
    cache.tag[hole] = 0


class Answers(NamedTuple):
    """Room for what a probe finds: pairs (tuple, row, heap base), tuples that are answered, tuples that are not."""

    picks: I64
    row_at: I64
    heap_at: I64
    done: I64
    missed: I64


@kernel
def _touch_entries(cache: TileCache, words: I64, picks: I64, homes: NDArray[np.uint64]) -> int:
    """Work out where a block's probes begin, and touch the entries by loads that nothing waits for: many are fetched at a time."""
    touched = np.int64(0)
    for k in range(picks.size):
        homes[k] = np.uint64(home_of(spread(words[np.uint64(picks[k])]), cache.tag.size))
        touched += np.int64(cache.tag[homes[k]])
    for k in range(picks.size):
        if cache.tag[homes[k]] != 0:
            touched ^= cache.entry[homes[k], WORD]
    return touched


@kernel
def answer(cache: TileCache, words: I64, picks: I64, width: int, cursor: I64, answers: Answers) -> int:
    """Look picked tuples up, until there is no room for the pairs of the next one.

    `cursor` counts tuples looked up, pairs, tuples answered, tuples missed; the caller sets the pairs and the answered back to 0. What is
    returned means nothing.
    """
    size, room = np.uint64(cache.tag.size), answers.picks.size
    pairs, done, missed = cursor[1], cursor[2], cursor[3]
    stop = picks.size
    homes, touched = np.empty(_BLOCK, np.uint64), np.int64(0)
    for i in range(cursor[0], picks.size):
        ahead = (i - cursor[0]) & (_BLOCK - 1)
        if ahead == 0:
            touched ^= _touch_entries(cache, words, picks[i : i + _BLOCK], homes)
        word = words[np.uint64(picks[i])]
        tag, entry = tag_of(spread(word)), homes[ahead]
        while cache.tag[entry] != 0 and (cache.tag[entry] != tag or cache.entry[entry, WORD] != word):
            entry += _ONE
            if entry == size:
                entry = _NONE
        if cache.tag[entry] == 0:
            answers.missed[np.uint64(missed)] = picks[i]
            missed += 1
            continue
        what = cache.entry[entry, WHAT]
        rows = (what >> 16) & 0xFFFF
        if pairs + rows > room or done == answers.done.size:
            stop = i
            break
        if what & 0xFFFF != HITS_MOST:
            cache.entry[entry, WHAT] = what + 1
        item = (what >> 32 & 0xFFFFFFFF) << 3
        for row in range(rows):
            place = np.uint64(pairs)
            answers.picks[place] = picks[i]
            answers.row_at[place] = item + HEADER_BYTES + row * width
            answers.heap_at[place] = item
            pairs += 1
        answers.done[np.uint64(done)] = picks[i]
        done += 1
    cursor[0], cursor[1], cursor[2], cursor[3] = stop, pairs, done, missed
    return touched
