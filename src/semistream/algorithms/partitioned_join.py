"""Partitioned Join: tuples wait with others of their partition, and recently loaded partitions answer at once.

Chakraborty, Singh, 2009: "A partition-based approach to support streaming updates over persistent data in an active datawarehouse".

The master is cut into ranges of keys. A tuple whose range lies in the join buffer is answered as it arrives; others wait in the buffer
of their range, until enough of them have come together to be worth a load. A loaded range stays if more tuples ask for it than for
the least asked one that is kept.

    stream -> join buffer (ranges of the master) -> answered
                 | miss
                 v
              wait buffers, one for each range -- a full one --> load the range, join, all of them leave

Next page: the range most tuples wait for. Leaves: everybody who waits for the range. Stays in memory: the ranges most asked for.

Departures from the print. A range that never fills would keep its tuples for ever: whoever waited while eight times as many tuples
arrived as can wait has its range loaded. With room left and no range full, nobody is loaded for the fun of it; if a step is asked for
(nothing arrives, or `max_wait` is over) the oldest is served. Ranges are runs of pages, and many-to-many keys are legal: kept ranges
answer a key only if they hold all its rows. There is one table for all that wait, with a chain for each range, and no switching
between tuple and block mode: tuples come in batches here. `preset="published"` takes the sizes of a known prototype.

>>> import pyarrow as pa, semistream as ss, tempfile
>>> folder = tempfile.mkdtemp() + "/colours.master"
>>> master = ss.build_master(folder, pa.table({"id": [1, 2, 2], "colour": ["red", "green", "blue"]}), key="id")
>>> join = ss.Join(master, on="id", algorithm="partitioned_join", memory="1MB", how="left")
>>> pa.Table.from_batches(join([pa.record_batch({"id": [2, 9]})])).sort_by("colour").to_pylist()
[{'id': 2, 'colour': 'blue'}, {'id': 2, 'colour': 'green'}, {'id': 9, 'colour': None}]
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass

from semistream.algorithms import blocks, kept_blocks, published
from semistream.algorithms.record import Algorithm, Parts, Shares
from semistream.budget import Share
from semistream.parts import block_waits
from semistream.protocols import Found, Reader
from semistream.stream_side import Block

_AGE_FILLS = 8  # the age bound, in tuples that can wait
_FULL_SHARES = 8  # a wait buffer is full with so many times its even share


@dataclass(frozen=True)
class Sizes:
    """The parameters; `slots` and `full` may be left to the memory there is."""

    range_bytes: int
    kept_bytes: int
    kept_weight: float  # of the join buffer, against 1 for waiting tuples
    full: int | None  # tuples that make a wait buffer full; None: several times what an even share would be
    slots: int | None
    freed: float  # of the waiting tuples, when there is no room
    decay: float  # of arrival counts, for every table full of tuples


# larger ranges are fewer steps, smaller ones keep less that nobody asks for: between 64 and 256 KB the rate differs by a tenth
TUNED = Sizes(128 << 10, 1 << 40, 0.25, None, None, 0.05, 0.9)
PUBLISHED = Sizes(
    range_bytes=500 * published.ROW_BYTES,
    kept_bytes=500 * 500 * published.ROW_BYTES,
    kept_weight=1.0,
    full=3000,
    slots=2000 * 16,  # the wait buffer: 2000 blocks of 16 tuples
    freed=0.4,
    decay=0.3,
)


def shares_of(sizes: Sizes) -> Shares:
    """Ranges that are kept, and waiting tuples."""

    def shares(reader: Reader, memory_bytes: int) -> list[Share]:
        each = _range_bytes(reader, memory_bytes, sizes)
        return blocks.shares(reader, memory_bytes, each, sizes.kept_bytes, sizes.kept_weight)

    return shares


def _range_bytes(reader: Reader, memory_bytes: int, sizes: Sizes) -> int:
    return kept_blocks.block_bytes(reader, min(sizes.range_bytes, memory_bytes // 32))


class PartitionedJoin:
    """Partitioned Join at work."""

    patience = 1

    def __init__(self, parts: Parts, sizes: Sizes) -> None:
        assert parts.reader.order is not None
        self._sizes = sizes
        self.area = self._pending = parts.pending(sizes.slots, extra_bytes=block_waits.LINK_BYTES)
        each = _range_bytes(parts.reader, parts.slab.total_bytes, sizes)
        self._blocks = blocks.Blocks(parts, parts.reader.order, self._pending, each)
        self._full = sizes.full or max(2, _FULL_SHARES * self._pending.slots // self._blocks.waiting.size)
        self._drain_to = self._pending.slots  # while more wait than that, nobody comes in and the fullest are served
        self._epoch = 0

    @property
    def front(self) -> PartitionedJoin:
        """It answers what it can at once."""
        return self

    def answer(self, block: Block) -> Generator[Found, None, Block]:
        """Answer what lies in the join buffer, and serve who has waited too long."""
        self._pending.now = now = block.position + block.words.size
        if now // self._pending.slots != self._epoch:
            self._epoch = now // self._pending.slots
            self._blocks.kept.asked *= self._sizes.decay
        left = yield from self._blocks.answer(block)
        while self._pending.waiting and now - self._pending.oldest_position() > _AGE_FILLS * self._pending.slots:
            yield from self._serve_oldest()
        return left

    def admit(self, block: Block) -> int:
        """Take what has room, unless a wait buffer is full or room is being made."""
        if self._pending.waiting > self._drain_to or self._fullest()[1] >= self._full:
            return 0
        self._drain_to = self._pending.slots
        taken = self._pending.admit(block, block.picks.size)
        if taken:
            self._blocks.enter()
        else:
            self._drain_to = int(self._pending.waiting * (1 - self._sizes.freed))
        return taken

    def step(self) -> Iterator[Found]:
        """Serve the fullest wait buffer if it is full or there is no room, else the oldest tuple."""
        if not self._pending.waiting:
            return
        fullest, count = self._fullest()
        if count >= self._full or self._pending.waiting > self._drain_to:
            yield from self._blocks.serve(fullest)
        else:
            yield from self._serve_oldest()

    def _serve_oldest(self) -> Iterator[Found]:
        yield from self._blocks.serve(self._blocks.block_of_oldest())

    def _fullest(self) -> tuple[int, int]:
        fullest = int(self._blocks.waiting.argmax())
        return fullest, int(self._blocks.waiting[fullest])


def build(parts: Parts) -> PartitionedJoin:
    """Partitioned Join at work."""
    return PartitionedJoin(parts, PUBLISHED if parts.preset == "published" else TUNED)


ALGORITHM = Algorithm(
    name="partitioned_join",
    title="Partitioned Join",
    paper="Chakraborty, Singh 2009",
    next_page="the range that most tuples wait for",
    leaves="everybody who waits for the range",
    keeps="the ranges most asked for",
    bound="eight tables full of arrivals",
    needs_index=True,
    build=build,
    shares=shares_of(TUNED),
    presets=("tuned", "published"),
    published_shares=shares_of(PUBLISHED),
    needs_word_order=True,
)
