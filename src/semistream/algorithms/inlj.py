"""INLJ: the index nested loop join, which looks every key up.

The baseline that the papers of this family name; databases call its batched form multi-get.

The key of a tuple is looked up in an index, the pages that hold it are read, and the tuple leaves. Plainly done, one random read serves one
tuple. Here tuples wait until memory is full, then all are looked up at once: every key once, every page once, neighbours in one read.

    stream -> stream table -> all keys, in order -> pages, in order -> disk buffer
                 ^ every row of a load probes the tuples that are looked up; then they all leave

Next page: the next one that holds a looked-up key. Leaves: everybody who is looked up. Stays in memory: nothing of the master.

Departures from the print. `preset="published"` is the plain form, one look-up for each tuple. With rows in word order a step serves
all that wait; elsewhere the index is on disk, and a step serves the oldest, as many as the list of matches is long. A table in a
database is asked for the keys themselves, many with one query.

>>> import pyarrow as pa, semistream as ss, tempfile
>>> folder = tempfile.mkdtemp() + "/colours.master"
>>> master = ss.build_master(folder, pa.table({"id": [1, 2, 2], "colour": ["red", "green", "blue"]}), key="id")
>>> join = ss.Join(master, on="id", algorithm="inlj", memory="1MB", how="left")
>>> pa.Table.from_batches(join([pa.record_batch({"id": [2, 9]})])).sort_by("colour").to_pylist()
[{'id': 2, 'colour': 'blue'}, {'id': 2, 'colour': 'green'}, {'id': 9, 'colour': None}]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np

from semistream.algorithms.record import Algorithm, Parts
from semistream.algorithms.serving import WordServer
from semistream.budget import Share
from semistream.parts import word_pages
from semistream.parts.memory import I64
from semistream.protocols import Found, KeyedBuffer, Load, Order, Reader
from semistream.stream_side import Block

_BUFFER_MOST = 512 << 10  # larger reads gain nothing: see the page-size curve in benchmarks/README.md
_GAP_PAGES = 2  # reading two pages that nobody needs costs less than one more read
_LOOK_UPS = 2048  # at once, where each is a read of an index on disk


def shares(reader: Reader, memory_bytes: int) -> list[Share]:
    """Neighbouring pages lie in memory, and a mark for every page; the rest is for waiting tuples."""
    least = reader.largest_page_bytes + 8192
    most = max(least, min(memory_bytes // 32, _BUFFER_MOST) + 8192)
    return [Share("marks", reader.pages + 64), Share("disk buffer", least, weight=1.0, most=most)]


def published_shares(reader: Reader, _memory_bytes: int) -> list[Share]:
    """One page at a time lies in memory."""
    return [Share("disk buffer", reader.largest_page_bytes + 8192)]


class PlainInlj:
    """INLJ, one tuple after the other."""

    patience = 1
    front = None

    def __init__(self, parts: Parts) -> None:
        self.area = self._pending = parts.pending()
        self._server = WordServer(parts.reader, parts.buffer(), self._pending, parts.key_names)

    def admit(self, block: Block) -> int:
        """Take one tuple."""
        return 0 if self._pending.waiting else self._pending.admit(block, 1)

    def step(self) -> Iterator[Found]:
        """Look it up."""
        if self._pending.waiting:
            yield from self._server.serve(self._pending.oldest_word())


class Inlj:
    """INLJ in batches."""

    patience = 1
    front = None

    def __init__(self, parts: Parts) -> None:
        self._reader, self._buffer = parts.reader, parts.buffer()
        self.area = self._pending = parts.pending()
        self._server = WordServer(self._reader, self._buffer, self._pending, parts.key_names)
        self._marks = parts.slab.take("marks", self._reader.pages, np.uint8)
        self._key_names, self._keeps = parts.key_names, parts.keeper is not None

    def admit(self, block: Block) -> int:
        """Take what has room."""
        return self._pending.admit(block, block.picks.size)

    def step(self) -> Iterator[Found]:
        """Look up all that wait, or the oldest of them."""
        if not self._pending.waiting:
            return
        if self._reader.order is not None:
            yield from self._everybody(self._reader.order)
            return
        words = self._pending.oldest_words(_LOOK_UPS)
        for load in self._fetch(words) if self._reader.wants_keys else self._look_up(words):
            yield from self._pending.probe_words(load, words)
        yield from self._pending.leave_words(words)

    def _everybody(self, order: Order) -> Iterator[Found]:
        """One pass over all pages that hold a waiting key; who waits after it has no match."""
        self._marks[:] = 0
        word_pages.mark_pages(self._pending.table, order.first_words, order.continues, self._marks)
        for load in self._marked():
            yield from self._pending.claim(load)
            yield from self._server.serve_open(load)
        absent = self._pending.waiting if self._keeps else 0  # the keeper wants to know whom the master lacks
        while absent > 0:
            words = self._pending.oldest_words(_LOOK_UPS)
            yield from self._pending.leave_words(words)
            absent -= max(1, words.size)
        yield from self._pending.leave_oldest(self._pending.waiting)

    def _look_up(self, words: I64) -> Iterator[Load]:
        """The pages that an index on disk names for these words."""
        self._marks[:] = 0
        for word in words.tolist():
            for first, stop in self._reader.look_up(word, []):
                self._marks[first:stop] = 1
        yield from self._marked()

    def _fetch(self, words: I64) -> Iterator[Load]:
        """The rows of all keys that wait on these words."""
        keys = self._pending.keys_of(words.tolist(), self._key_names)
        yield from cast(KeyedBuffer, self._buffer).fetch(keys)

    def _marked(self) -> Iterator[Load]:
        """Every marked page once, in order; neighbours come in one read."""
        first, marks = 0, self._marks.view(bool)
        while first < marks.size:
            first += int(marks[first:].argmax())
            if not marks[first]:
                return
            reach = np.flatnonzero(marks[first : self._buffer.stop_of(first)])
            jumps = np.flatnonzero(np.diff(reach) > _GAP_PAGES + 1)
            stop = first + 1 + int(reach[jumps[0]] if jumps.size else reach[-1])
            yield self._buffer.read(first, stop)
            first = stop


def build(parts: Parts) -> Inlj | PlainInlj:
    """INLJ at work."""
    return PlainInlj(parts) if parts.preset == "published" else Inlj(parts)


ALGORITHM = Algorithm(
    name="inlj",
    title="INLJ",
    paper="baseline of the papers",
    next_page="the pages of the keys that are looked up",
    leaves="everybody who is looked up",
    keeps="nothing of the master",
    bound="one look-up",
    needs_index=True,
    build=build,
    shares=shares,
    presets=("tuned", "published"),
    published_shares=published_shares,
)
