"""Parts in small, made without a join, and words that are hard on a hash table."""

from __future__ import annotations

import functools

import numpy as np

from semistream.parts import page, probing, slots, stream_table, tiles
from semistream.parts.memory import Memory, view
from semistream.parts.words import spread

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
EDGES = (0, -1, 1, INT64_MIN, INT64_MAX, INT64_MIN + 1, 2**32, -(2**32), 2**31, 0x6E756C6C)


def ints(*values):
    """An array of 64-bit integers."""
    return np.array(values, np.int64)


def new_memory(size):
    """A slab of so many bytes, all zero."""
    return view(np.zeros(-(-size // 8) * 8, np.uint8))


def new_slots(count, row_width=0):
    """Records with room for a heap place and a row."""
    size = slots.record_bytes(row_width, has_cells=True)
    block = np.zeros(count * size, np.uint8)
    return slots.Slots(block.view(np.int32).reshape(count, -1), block.view(np.int64).reshape(count, -1))


def new_table(count):
    """An empty stream table."""
    entries = stream_table.entries_for(count)
    table = stream_table.StreamTable(
        tag=np.zeros(entries, np.uint8),
        entry_word=np.zeros(entries, np.int64),
        entry_head=np.zeros(entries, np.int32),
        slots=new_slots(count),
        state=np.zeros(4, np.int64),
    )
    stream_table.reset(table)
    return table


def new_tiles(count, tile_bytes, at=0, kept_back=0):
    """A pool in which all tiles are free."""
    pool = tiles.Tiles(np.zeros(count, np.int32), np.zeros(5, np.int64))
    tiles.reset(pool, at, tile_bytes, kept_back)
    return pool


def new_picked(count):
    """An empty list of rows or pairs."""
    return probing.Picked(*(np.zeros(count, np.int64) for _ in range(3)))


def admitted(table, words, position=0):
    """Admit all these words; returns their slots."""
    taken = np.full(len(words), -1, np.int64)
    count = stream_table.admit(table, ints(*words), position + np.arange(len(words)) << 1, np.arange(len(words)), taken)
    return taken[:count].tolist()


def chain(table, word):
    """Slots that wait on a word."""
    return stream_table.chain_of(table, np.int64(word)).tolist()


@functools.cache
def clustered_words(entries, home, count, tag=None):
    """Words whose search begins at one entry, all with the same tag if one is given."""
    found = []
    word = 0
    while len(found) < count:
        mixed = np.uint64(spread(np.int64(word)))
        if stream_table.home_of(mixed, entries) == home and tag in (None, int(stream_table.tag_of(mixed))):
            found.append(word)
        word += 1
    return tuple(found)


def plain_rows(words, width=8, heaps=None):
    """Master rows whose fixed part repeats their number; `heaps` gives every row's bytes of variable length."""
    heaps = [b""] * len(words) if heaps is None else [bytes(h) + bytes(-len(h) % 8) for h in heaps]
    fixed = b"".join(bytes([i % 256]) * width for i in range(len(words)))
    ends = np.concatenate([[0], np.cumsum([len(h) for h in heaps])]).astype(np.int64)
    joined = np.frombuffer(b"".join(heaps), np.uint8).copy()
    return page.Rows(ints(*words), np.frombuffer(fixed, np.uint8).copy(), width, joined, ends)


def pages_of(rows, page_bytes, cells=()) -> tuple[Memory, np.ndarray, np.ndarray]:
    """The rows as pages side by side: memory, where each begins, and the first row of each (one more entry than pages)."""
    starts = np.zeros(rows.words.size + 1, np.int64)
    pages = page.cut_pages(rows.ends, rows.width, page_bytes, starts)
    starts = starts[: pages + 1]
    need = 32 + np.diff(starts) * (8 + rows.width) + np.diff(rows.ends[starts])
    sizes = np.maximum(page_bytes, -(-need // 8) * 8)
    page_at = np.cumsum(sizes) - sizes + 64
    memory = new_memory(int(sizes.sum()) + 64)
    page.fill_pages(memory, page_at, rows, starts, 0, ints(*cells))
    return memory, page_at, starts
