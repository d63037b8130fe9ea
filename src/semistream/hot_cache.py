"""The hot cache: master rows that answer stream tuples at once, so that only the others wait.

`HotCache` puts the kernels of parts/hot_cache.py together and gives recipes a few verbs. Words are kept whole or not at all; a word
may be kept without rows, which says that the master lacks it.

    answer(block)             pairs for tuples whose word is kept; the rest of the block comes back
    keep(rows, waiting)       whole words of a load, as they are offered to a `Keeper`
    keep_absent(word, hits)   a word the master lacks
    begin, collect, finish    a word whose rows come in several loads; it answers nobody before it is finished
    forget(records)           words chosen by who looked at `records`

When the cache is full its eviction, a small object, makes room or refuses to.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Protocol

import numpy as np

from semistream.budget import Slab
from semistream.parts import hot_cache as kernels
from semistream.parts import hot_collecting, hot_moving, hot_victims, probing, row_heap, stream_table
from semistream.parts.memory import I64
from semistream.parts.probing import Picked
from semistream.protocols import Found, Load
from semistream.records import RowCodec
from semistream.stream_side import Block

LEAST_BYTES = 4096  # of a share: lists, and a few rows if they are short; a cache without room for a row keeps nothing
_PADDING = 16 * 64
_LIST_BYTES = 4 * 8  # a place in the lists of found pairs and of tuples that are gone
_HEAP_SLACK = 1.15  # rows are not all of average length, and a heap that is nearly full compacts too often
_BATCH_SHARE = 32  # this part of the cache at least is evicted at once: looking for victims one by one costs more
_SEED = 20_120_903


class Eviction(Protocol):
    """What makes room in a full cache."""

    def make_room(self, cache: HotCache, rows: int) -> bool:
        """Forget words until so many rows are free, if possible; False if nothing was forgotten."""


class Permanent:
    """Whatever is kept stays."""

    def make_room(self, cache: HotCache, rows: int) -> bool:
        """Refuse."""
        return False


class AnyVictim:
    """Words picked by seeded dice go."""

    def make_room(self, cache: HotCache, rows: int) -> bool:
        """See `Eviction`."""
        return bool(hot_victims.forget_any(cache.kept, cache.memory, rows))


class ColdestVictim:
    """The words with the fewest hits go, exactly, many at a time; the hits of the others are halved."""

    def make_room(self, cache: HotCache, rows: int) -> bool:
        """See `Eviction`."""
        return bool(hot_victims.forget_coldest(cache.kept, cache.memory, rows))


def row_cost(codec: RowCodec, row_bytes: float, words_per_row: float = 1.0) -> float:
    """Bytes that keeping a row of `row_bytes` on average costs, everything counted."""
    fixed = kernels.slot_header_bytes(bool(codec.cells)) + -(-codec.width // 8) * 8
    heap = (max(row_bytes - codec.width, 0.0) + 8 + row_heap.RECORD_BYTES) * _HEAP_SLACK if codec.cells else 0.0
    return fixed + heap + words_per_row * kernels.WORD_BYTES


class HotCache:
    """Rows within `given_bytes` of the slab. `words_per_row` above 1 leaves room for words that the master lacks."""

    def __init__(
        self,
        slab: Slab,
        codec: RowCodec,
        row_bytes: float,
        given_bytes: int,
        matches: int,
        eviction: Eviction,
        words_per_row: float = 1.0,
        part: str = "hot cache",
    ) -> None:
        self.memory, self.eviction, self._part = slab.memory, eviction, part
        before = slab.bytes_by_part.get(part, 0)
        matches = max(1, min(matches, given_bytes // 4 // _LIST_BYTES))
        left = given_bytes - _PADDING - matches * _LIST_BYTES
        self.slots = max(0, int(left / row_cost(codec, row_bytes, words_per_row)))
        self._found = Picked(*(slab.take(part, matches, np.int64) for _ in range(3)))
        self._gone: I64 = slab.take(part, matches, np.int64)
        self.kept = self._arrays(slab, codec, int(self.slots * words_per_row))
        if codec.cells:
            heap_bytes = max(0, before + given_bytes - slab.bytes_by_part[part] - 64) // 8 * 8
            heap_at = slab.place(part, heap_bytes)
            row_heap.reset(self.kept.heap, heap_at, heap_at + heap_bytes)
        self.now = 0  # the time that new words are given, in units of the recipe's choosing

    def _arrays(self, slab: Slab, codec: RowCodec, words: int) -> kernels.HotCache:
        part, entries = self._part, stream_table.entries_for(words)
        slot_bytes = kernels.slot_header_bytes(bool(codec.cells)) + -(-codec.width // 8) * 8
        slots_at = slab.place(part, self.slots * slot_bytes)
        slots = slab.memory.b1[slots_at:][: self.slots * slot_bytes]
        kept = kernels.HotCache(
            tag=slab.take(part, entries, np.uint8),
            entry_word=slab.take(part, entries, np.int64),
            entry_head=slab.take(part, entries, np.int32),
            record_word=slab.take(part, words, np.int64),
            records=slab.take(part, 4 * words, np.int32).reshape(words, 4),
            links=slots.view(np.int32).reshape(self.slots, slot_bytes // 4),
            wide=slots.view(np.int64).reshape(self.slots, slot_bytes // 8),
            heap=row_heap.RowHeap(slab.take(part, 4, np.int64)),
            cells=np.array([column.offset for column in codec.cells], np.int64),
            state=slab.take(part, kernels.STATE, np.int64),
        )
        kernels.reset(kept, slots_at + kernels.slot_header_bytes(bool(codec.cells)), codec.width, _SEED)
        return kept

    @property
    def words(self) -> int:
        """Words that are kept, or being collected."""
        return int(self.kept.state[stream_table.KEYS])

    @property
    def free(self) -> int:
        """Rows that still have a slot."""
        return int(self.kept.state[kernels.FREE_SLOTS])

    def answer(self, block: Block) -> Generator[Found, None, Block]:
        """Pair the block's tuples with the rows that are kept; those whose word is kept are gone, the others come back."""
        if not self.words:
            return block
        picks, cursor = block.picks, np.array([0, -1, 0, 0], np.int64)
        while cursor[0] < picks.size:
            cursor[3] = 0
            pairs = kernels.answer(self.kept, block.words, picks, cursor, self._found, self._gone)
            found = self._found
            if pairs or cursor[3]:
                yield Found(
                    block,
                    found.words[:pairs],
                    found.row_at[:pairs],
                    found.heap_at[:pairs],
                    self._gone[: int(cursor[3])],
                )
        return block._replace(picks=picks[: int(cursor[2])])

    def rows_of(self, load: Load) -> Iterator[Picked]:
        """All rows of a load, in pieces as long as the list of pairs."""
        cursor, width = np.zeros(2, np.int64), int(self.kept.state[kernels.WIDTH])
        while cursor[0] < load.page_at.size:
            count = probing.take_rows(self.memory, load.page_at, width, cursor, self._found)
            if count:
                yield Picked(*(array[:count] for array in self._found))

    def contents(self) -> Iterator[tuple[Picked, I64]]:
        """The rows of all words, whole words at a time, and the hits of each row's word. Borrows the lists that `answer` uses."""
        record = 0
        while record < self.kept.records.shape[0]:
            record, count = hot_moving.rows_from(self.kept, record, self._found, self._gone)
            yield Picked(*(array[:count] for array in self._found)), self._gone[:count]

    def clear(self) -> None:
        """Keep nothing any more."""
        state = self.kept.state
        kernels.reset(self.kept, int(state[kernels.FIRST_ROW]), int(state[kernels.WIDTH]), _SEED)
        row_heap.reset(
            self.kept.heap, int(self.kept.heap.state[row_heap.START]), int(self.kept.heap.state[row_heap.STOP])
        )

    # ------------------------------------------------------------------------------------------------ keeping

    def keep(self, rows: Picked, waiting: I64) -> int:
        """Copy whole words, as a `Keeper` is offered them, that are not here yet; returns how many rows found no room."""
        refused = 0
        while True:
            done = kernels.keep(self.kept, self.memory, rows, waiting, self.now)
            rows, waiting = Picked(*(array[done:] for array in rows)), waiting[done:]
            if not rows.words.size:
                return refused
            mine = int(np.argmax(rows.words != rows.words[0])) or rows.words.size
            if mine <= self.slots // 8 and self._make_room(max(mine, min(rows.words.size, self.slots // 8))):
                continue
            refused += mine
            rows, waiting = Picked(*(array[mine:] for array in rows)), waiting[mine:]

    def keep_absent(self, word: int, hits: int) -> bool:
        """Keep that the master has no rows of a word; False if there is no room, even after eviction, or the word is kept."""
        return self._open(word, 0, hits) >= 0

    def begin(self, word: int, hits: int) -> bool:
        """Start to collect the rows of a word; False if there is no room for it, or the word is kept."""
        return self._open(word, -1, hits) >= 0

    def collect(self, rows: Picked) -> None:
        """Add those of the rows whose words are being collected. A word that finds no room, even after eviction, is forgotten."""
        if not kernels.room(self.kept, self.memory, rows.row_at) >= rows.words.size:
            self._make_room(min(rows.words.size, self.slots // 8))
        hot_collecting.collect(self.kept, self.memory, rows)

    def gather(self, load: Load) -> None:
        """Collect whatever rows of a load belong to words that are being collected."""
        for rows in self.rows_of(load):
            if count := hot_collecting.pick_collected(self.kept, rows):
                self.collect(Picked(*(array[:count] for array in rows)))

    def collected(self, word: int) -> int:
        """Rows collected so far of a word that is being collected; -1 if it is not, or not any more."""
        record = kernels.record_of(self.kept, word)
        return -1 - int(self.kept.records[record, kernels.ROWS]) if record >= 0 else -1

    def finish(self, word: int, most_rows: float) -> bool:
        """All rows of a collected word are here: it answers from now on, unless it has too many rows, or was forgotten."""
        record = kernels.record_of(self.kept, word)
        if record < 0:
            return False
        hot_collecting.complete(self.kept, record)
        if self.kept.records[record, kernels.ROWS] > most_rows:
            kernels.forget(self.kept, self.memory, record)
            return False
        return True

    def forget(self, records: I64) -> None:
        """Let go of the words with these records."""
        for record in records:
            kernels.forget(self.kept, self.memory, record)

    def _open(self, word: int, rows: int, hits: int) -> int:
        if kernels.record_of(self.kept, word) >= 0:
            return -1
        if self.kept.state[kernels.FREE_RECORD] < 0 and not self._make_room(1):
            return -1
        return int(kernels.open_record(self.kept, word, rows, hits, self.now))

    def _make_room(self, rows: int) -> bool:
        return self.eviction.make_room(self, max(rows, self.slots // _BATCH_SHARE))
