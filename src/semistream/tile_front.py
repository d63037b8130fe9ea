"""The hot cache of the adaptive join: answers tuples at once, takes hot keys in from loads, and gives its memory back.

A key belongs in the cache when it takes less room there than the tuples that would otherwise wait for it (the cache inequality):

    tuples that ask for it while its pages are not read  x  half of that time  x  bytes of a waiting tuple   >   bytes of its rows

Both sides are real bytes. `Waits` keeps what the left side needs: how many stream tuples usually pass between two reads of a page.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from typing import NamedTuple

import numpy as np

from semistream.budget import Slab
from semistream.parts import tile_cache, tile_items, tiles
from semistream.parts.memory import I32, I64, Memory
from semistream.protocols import Buffer, Found, Load, Order
from semistream.records import RowCodec
from semistream.stream_side import NO_SLOTS, Block

KEY_BYTES = tile_cache.KEY_BYTES
_TILES_FOR_ONE = (
    4  # tiles that may be emptied to make room for one key: if all of them stay, the cache is full of better ones
)


class Lookups(NamedTuple):
    """One thread's room for answers."""

    answers: tile_cache.Answers

    @classmethod
    def of(cls, slab: Slab, tuples: int, pairs: int) -> Lookups:
        """Room for pieces of so many tuples."""
        take = slab.take
        room = [take("lookups", pairs, np.int64) for _ in range(3)] + [
            take("lookups", tuples, np.int64) for _ in range(2)
        ]
        return cls(tile_cache.Answers(*room))

    @staticmethod
    def bytes_of(tuples: int, pairs: int) -> int:
        """What `of` takes."""
        return 8 * (3 * pairs + 2 * tuples) + 5 * 64


class TileFront:
    """Hot keys, within the tiles it shares with the tuples that wait."""

    def __init__(
        self,
        slab: Slab,
        pool: tiles.Tiles,
        codec: RowCodec,
        keys: int,
        tiles_most: int,
        chosen: int,
        pairs: int,
        lock: threading.Lock,
    ) -> None:
        """At most `keys` keys, in at most `tiles_most` tiles; `chosen` keys are taken in at once, and `pairs` fit a thread's `Lookups`."""
        self._memory: Memory = slab.memory
        self._tiles, self._lock = pool, lock
        self.keys_most = keys
        entries = table_entries(keys)
        self.cache = tile_cache.TileCache(
            tag=slab.take("hot cache", entries, np.uint8),
            entry=slab.take("hot cache", 2 * entries, np.int64).reshape(-1, 2),
            state=slab.take("hot cache", 5, np.int64),
            tile=slab.take("hot cache", 2 * pool.link.size, np.int64).reshape(-1, 2),
        )
        tile_cache.reset(self.cache, tiles_most)
        self._tile_bytes = int(pool.state[tiles.BYTES])
        self._scratch = slab.place("hot cache", self._tile_bytes)
        self._chosen = tile_items.Chosen(*(slab.take("hot cache", chosen, np.int64) for _ in range(4)))
        cells = np.array([column.offset for column in codec.cells], np.int64)
        self.shape = tile_items.Shape(codec.width, cells, min(pairs, tile_cache.ROWS_MOST))
        self.complete = False  # all of the master lies here: who is not found is absent
        self.taken_in = self.put_out = 0

    @property
    def keys(self) -> int:
        """Keys held, those included that the master lacks."""
        return int(self.cache.state[tile_cache.KEYS])

    @property
    def held_bytes(self) -> int:
        """Bytes of tiles held."""
        return int(self.cache.state[tile_cache.HELD]) * self._tile_bytes

    # ------------------------------------------------------------------------------------------------ answering

    def answer(self, block: Block, room: Lookups) -> Generator[Found, None, Block]:
        """Answer what is known; returns the block with the tuples that must wait."""
        if not self.keys and not self.complete:
            return block
        cursor = np.zeros(4, np.int64)
        picks, left, answers = block.picks, [], room.answers
        for start in range(0, picks.size, answers.missed.size):
            part = picks[start : start + answers.missed.size]
            cursor[0] = cursor[3] = 0
            while cursor[0] < part.size:
                cursor[1:3] = 0
                tile_cache.answer(self.cache, block.words, part, self.shape.width, cursor, answers)
                pairs, done = int(cursor[1]), int(cursor[2])
                if done:
                    found = answers.picks[:pairs], answers.row_at[:pairs], answers.heap_at[:pairs]
                    yield Found(block, *found, answers.done[:done])
            missed = answers.missed[: int(cursor[3])]
            if self.complete:
                yield Found(block, NO_SLOTS, NO_SLOTS, NO_SLOTS, missed)
            elif missed.size:
                left.append(missed.copy())
        return block._replace(picks=np.concatenate(left) if left else NO_SLOTS)

    # ------------------------------------------------------------------------------------------------ taking in

    def take_in(self, load: Load, asked: I32, least: int, hits_for_bytes: float, now: int) -> int:
        """Keep the keys of a load that at least so many tuples asked for; returns how many such keys were come across."""
        cursor, seen = np.zeros(2, np.int64), 0
        while cursor[0] < load.page_at.size:
            with self._lock:
                count = tile_items.choose(
                    self._memory, load.page_at, self.shape.width, asked, least, cursor, self._chosen
                )
                seen += count
                if not count or not self._keep(count, hits_for_bytes, now):
                    break
        return seen

    def take_in_absent(self, words: I64, hits_for_bytes: float, now: int) -> None:
        """Keep in mind that the master lacks these keys."""
        most = self._chosen.words.size
        for start in range(0, words.size, most):
            part = words[start : start + most]
            with self._lock:
                self._chosen.words[: part.size] = part
                self._chosen.rows[: part.size] = 0
                self._chosen.row_at[: part.size] = 0
                if not self._keep(part.size, hits_for_bytes, now):
                    return

    def _keep(self, count: int, hits_for_bytes: float, now: int) -> bool:
        """Take the chosen keys in, emptying the oldest tiles as need be; False: there is no room for all of them."""
        chosen = tile_items.Chosen(*(array[:count] for array in self._chosen))
        done, emptied, before = 0, 0, self.keys
        while True:
            reached = tile_items.keep(
                self.cache, self._tiles, self._memory, self.shape, chosen, done, now, self.keys_most
            )
            emptied = emptied if reached == done else 0
            done = reached
            if done == count or emptied == _TILES_FOR_ONE or not self.cache.state[tile_cache.HELD]:
                self.taken_in += max(0, self.keys - before)
                return done == count
            self._empty_oldest(hits_for_bytes, now)
            emptied += 1

    def review(self, share: float, hits_for_bytes: float, now: int) -> None:
        """Look through a share of the cache, oldest first, and put out what is not worth its room any more."""
        with self._lock:
            for _ in range(int(self.cache.state[tile_cache.HELD] * share)):
                self._empty_oldest(hits_for_bytes, now)

    def clear(self) -> None:
        """Forget all keys and give all tiles back."""
        with self._lock:
            tile_cache.clear(self.cache, self._tiles)

    def _empty_oldest(self, hits_for_bytes: float, now: int) -> None:
        """`hits_for_bytes` is what a byte must earn while one stream tuple passes."""
        age = max(1, now - int(self.cache.tile[self.cache.state[tile_cache.OLDEST], tile_cache.BORN]))
        before = self.keys
        tile_items.empty_oldest(self.cache, self._tiles, self._memory, self._scratch, hits_for_bytes * age, now)
        self.put_out += before - self.keys

    def ask_all(self, load: Load, first: int, order: Order | None, asked: I32) -> None:
        """Ask for every key of a load, to have it all kept."""
        none = np.zeros(0, np.uint8)
        words, continues = (NO_SLOTS, none) if order is None else (order.first_words, order.continues)
        tile_items.ask_all(self._memory, load.page_at, words, continues, first, asked)


def table_entries(keys: int) -> int:
    """Entries of a table for so many keys."""
    return int(keys * tile_cache.ENTRIES_PER_KEY) + 8


def table_bytes(keys: int, tile_count: int, tile_bytes: int, chosen: int) -> int:
    """What the cache takes besides tiles."""
    return table_entries(keys) * tile_cache.ENTRY_BYTES + 16 * tile_count + tile_bytes + 32 * chosen + 10 * 64


def item_bytes_of(codec: RowCodec, row_bytes: float) -> float:
    """What a row of average length takes in a tile."""
    return tile_cache.HEADER_BYTES + -(-max(codec.width, row_bytes) // 8) * 8


def all_of(pages: int, buffer: Buffer) -> Iterator[tuple[int, int]]:
    """Page ranges that together are the whole master, each as long as the disk buffer allows."""
    first = 0
    while first < pages:
        stop = buffer.stop_of(first)
        yield first, stop
        first = stop
