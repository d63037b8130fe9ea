"""SSIJ: collect what the kept blocks cannot answer, then load blocks until nobody waits.

Bornea, Deligiannakis, Kotidis, Vassalos: "Semi-streamed index join for near-real time execution of ETL transformations", ICDE 2011.

Tuples come in batches (pending phase). Those whose block of the master is kept in memory are answered at once (online phase), the others
go to the stream buffer. When that is full, blocks are loaded through the index, the best one first, until it is empty (join phase). A
loaded block stays if it is used more than the least used one that is kept.

    stream -> kept blocks -> answered
                 | miss
                 v
              stream buffer -- full --> load block, join, load block, join, ... until it is empty

Next page: the block with most waiting tuples for the cost of its read. Leaves: everybody who waits for the block. Stays in memory: the
most used blocks.

Departures from the print. The pending phase is the batch that comes in. A stream buffer that never fills would keep its tuples for
ever: a join phase also begins when somebody has waited while eight times as many tuples arrived as can wait. The papers name no costs:
a block that is kept costs nothing, one that does not follow the last one costs one block more than one that does. Uses count half after
every join phase. Where rows do not stand in word order blocks are single pages, the index on disk is asked for the oldest tuples'
pages, and kept pages save reads but answer nobody as he arrives. `preset="published"` has blocks of one page and the stream buffer of a
known prototype.

>>> import pyarrow as pa, semistream as ss, tempfile
>>> folder = tempfile.mkdtemp() + "/colours.master"
>>> master = ss.build_master(folder, pa.table({"id": [1, 2, 2], "colour": ["red", "green", "blue"]}), key="id")
>>> join = ss.Join(master, on="id", algorithm="ssij", memory="1MB", how="left")
>>> pa.Table.from_batches(join([pa.record_batch({"id": [2, 9]})])).sort_by("colour").to_pylist()
[{'id': 2, 'colour': 'blue'}, {'id': 2, 'colour': 'green'}, {'id': 9, 'colour': None}]
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import numpy as np

from semistream.algorithms import blocks, kept_blocks
from semistream.algorithms.record import Algorithm, Parts, Shares
from semistream.budget import Share
from semistream.parts import block_waits
from semistream.parts.memory import I64
from semistream.pending import Pending
from semistream.protocols import Found, Order, Reader
from semistream.stream_side import Block

_AGE_FILLS = 8  # the timeout, in tuples that can wait
_DECAY = 0.5
_JUMP_COST = 1.0  # in reads of a block
_BLOCK_BYTES = 256 << 10  # a join phase reads nearly all of the master: larger blocks are fewer steps
_KEPT_WEIGHT = 0.25  # of kept blocks, against 1 for waiting tuples
_MOST_PAGES = 256  # kept one by one
_LOOK_UPS = 2048  # at once, where each is a read of an index on disk
_PUBLISHED_SLOTS = 22_000


def shares_of(wanted_bytes: int) -> Shares:
    """Kept blocks, if possible of that size, and waiting tuples."""

    def shares(reader: Reader, memory_bytes: int) -> list[Share]:
        each = _block_bytes(reader, memory_bytes, wanted_bytes)
        if reader.word_order:
            return blocks.shares(reader, memory_bytes, each, memory_bytes, _KEPT_WEIGHT)
        most = _MOST_PAGES * each
        return [*kept_blocks.shares(reader, each, most, _KEPT_WEIGHT), Share("looked up", 8 * reader.pages + 64)]

    return shares


def _block_bytes(reader: Reader, memory_bytes: int, wanted_bytes: int) -> int:
    return kept_blocks.block_bytes(reader, min(wanted_bytes, memory_bytes // 32) if reader.word_order else 0)


class _ByBlock:
    """Everybody hangs on the block that answers him."""

    def __init__(self, parts: Parts, order: Order, pending: Pending, each_bytes: int) -> None:
        self._blocks = blocks.Blocks(parts, order, pending, each_bytes)
        self.kept, self.answer, self.enter = self._blocks.kept, self._blocks.answer, self._blocks.enter
        self._last = -1

    def serve(self) -> Iterator[Found]:
        """Serve the block that answers most for its cost."""
        self._last = self._best()
        yield from self._blocks.serve(self._last)

    def _best(self) -> int:
        waiting, held = self._blocks.waiting, self.kept.held()
        if held.size and waiting[held].any():
            return int(held[waiting[held].argmax()])
        best, following = int(waiting.argmax()), self._last + 1
        if following < waiting.size and waiting[following] * (1 + _JUMP_COST) >= waiting[best] > 0 < waiting[following]:
            return following
        return best


class _ByLookUp:
    """The index on disk says, for the oldest tuples, which pages they need."""

    def __init__(self, parts: Parts, pending: Pending, each_bytes: int) -> None:
        self.kept = kept_blocks.KeptBlocks(parts, each_bytes)
        self._reader, self._pending, self._key_names = parts.reader, pending, parts.key_names
        self._needed: I64 = parts.slab.take("looked up", self.kept.blocks, np.int64)

    def answer(self, block: Block) -> Generator[Found, None, Block]:
        """Nobody: to know his page takes a read."""
        yield from ()
        return block

    def enter(self) -> None:
        """Nothing to remember."""

    def serve(self) -> Iterator[Found]:
        """Serve the oldest tuples: pages that are kept first, then those that most of the keys need."""
        words = self._pending.oldest_words(_LOOK_UPS)
        self._needed[:] = 0
        for word in words.tolist():
            keys = self._pending.keys_of([word], self._key_names) if self._reader.wants_keys else []
            for first, stop in self._reader.look_up(word, keys):
                self._needed[first:stop] += 1
        self.kept.asked += self._needed
        held = self.kept.held()
        kept = held[self._needed[held] > 0].tolist()
        self._needed[kept] = 0
        others = np.flatnonzero(self._needed)
        for page in [*kept, *others[np.argsort(-self._needed[others], kind="stable")].tolist()]:
            yield from self._pending.probe_words(self.kept.load(page), words)
        yield from self._pending.leave_words(words)


class Ssij:
    """SSIJ at work."""

    patience = 1

    def __init__(self, parts: Parts, wanted_bytes: int = _BLOCK_BYTES, most: int | None = None) -> None:
        order = parts.reader.order
        self.area = self._pending = parts.pending(most, extra_bytes=block_waits.LINK_BYTES if order is not None else 0)
        each = _block_bytes(parts.reader, parts.slab.total_bytes, wanted_bytes)
        self._plan: _ByBlock | _ByLookUp
        if order is not None:
            self._plan = _ByBlock(parts, order, self._pending, each)
        else:
            self._plan = _ByLookUp(parts, self._pending, each)
        self._joining = False

    @property
    def front(self) -> Ssij:
        """It answers what it can at once."""
        return self

    def answer(self, block: Block) -> Generator[Found, None, Block]:
        """The online phase; and a join phase, if somebody has waited too long."""
        self._pending.now = now = block.position + block.words.size
        left = yield from self._plan.answer(block)
        if self._pending.waiting and now - self._pending.oldest_position() > _AGE_FILLS * self._pending.slots:
            while self._pending.waiting:
                yield from self.step()
        return left

    def admit(self, block: Block) -> int:
        """Collect what has room; nothing in the join phase."""
        taken = 0 if self._joining else self._pending.admit(block, block.picks.size)
        if taken:
            self._plan.enter()
        return taken

    def step(self) -> Iterator[Found]:
        """Serve one block of the join phase, which ends when nobody waits."""
        if not self._pending.waiting:
            return
        self._joining = True
        yield from self._plan.serve()
        if not self._pending.waiting:
            self._joining = False
            self._plan.kept.asked *= _DECAY


def build(parts: Parts) -> Ssij:
    """SSIJ at work."""
    return Ssij(parts, 0, _PUBLISHED_SLOTS) if parts.preset == "published" else Ssij(parts)


ALGORITHM = Algorithm(
    name="ssij",
    title="SSIJ",
    paper="Bornea et al. 2011",
    next_page="the block with most waiting tuples for its cost",
    leaves="everybody who waits for the block",
    keeps="the most used blocks",
    bound="eight tables full of arrivals",
    needs_index=True,
    build=build,
    shares=shares_of(_BLOCK_BYTES),
    presets=("tuned", "published"),
    published_shares=shares_of(0),
)
