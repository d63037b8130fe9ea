"""MESHJOIN: scan the master for ever, and let every tuple ride along for exactly one round.

Polyzotis et al., TKDE 20(7), 2008; described in the SSBJ paper, section 2.2.

The master is read in a cycle of k partitions. Before each read a chunk of new stream tuples comes in, and the chunk that came in k
reads ago leaves: it has met every partition once, whichever it started with. One read serves all waiting tuples, so the cost of the
scan is shared; no index, no order and no uniqueness is needed, and skew does not help.

    stream -> [chunk | chunk | ... k chunks] -> leaves after k reads
                 ^ every row of the partition probes all waiting tuples
    master -> partition 1, 2, ... k, 1, 2, ... -> disk buffer

Next page: the next partition of the cycle. Leaves: the chunk that has seen k partitions. Stays in memory: nothing of the master.

Departures from the print. Nothing expires before k chunks exist (printed pseudo-code elsewhere expires from the first iteration and loses
almost everything). Tuples expire by identity and not by key: a chunk that removes its keys takes younger tuples of the same keys along.
A chunk takes what has arrived; a small one costs nothing but its place in the ring. `preset="published"` has the disk buffer of the
published runs and charges what they charged for a waiting tuple.

>>> import pyarrow as pa, semistream as ss, tempfile
>>> folder = tempfile.mkdtemp() + "/colours.master"
>>> master = ss.build_master(folder, pa.table({"id": [1, 2, 3], "colour": ["red", "green", "blue"]}), key="id")
>>> join = ss.Join(master, on="id", algorithm="meshjoin", memory="1MB")
>>> pa.Table.from_batches(join([pa.record_batch({"id": [3, 1, 9]})])).sort_by("id").to_pylist()
[{'id': 1, 'colour': 'red'}, {'id': 3, 'colour': 'blue'}]
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from semistream.algorithms import published
from semistream.algorithms.record import Algorithm, Parts
from semistream.budget import Share
from semistream.protocols import Buffer, Found, Load, Reader
from semistream.stream_side import Block

_BUFFER_SHARE = 1 / 32
_BUFFER_MOST = 512 << 10  # larger reads gain nothing: see the page-size curve in benchmarks/README.md
_PUBLISHED_ROWS = 6069  # of the disk buffer, at 250 MB


def shares(reader: Reader, memory_bytes: int) -> list[Share]:
    """One partition at a time lies in memory; the rest is for waiting tuples."""
    most = max(int(memory_bytes * _BUFFER_SHARE), reader.largest_page_bytes)
    most = min(most + 8192, _BUFFER_MOST + reader.largest_page_bytes)
    return [Share("disk buffer", reader.largest_page_bytes + 8192, weight=1.0, most=most)]


class MeshJoin:
    """MESHJOIN at work. With several `segments` a partition is probed piece by piece, and a chunk comes and goes with each (R-MESHJOIN)."""

    front = None

    def __init__(self, parts: Parts, segments: int = 1) -> None:
        self._pages, self._buffer = parts.reader.pages, parts.buffer()
        self.area = self._pending = parts.pending(
            published.slots(parts, _PUBLISHED_ROWS, published.MESHJOIN_TUPLE_BYTES)
        )
        lengths = partition_lengths(self._pages, self._buffer)
        self._partitions = max(1, len(lengths))
        self._segments = max(1, min(segments, *lengths)) if lengths else 1
        self._next_page = self._next_segment = 0
        # sizes, a ring: the chunk of this step lies where one leaves after it
        self._chunks = np.zeros(self._partitions * self._segments, np.int64)
        self._step = 0
        self._open = 0  # tuples in the chunk that still takes some
        self._chunk_rows = -(-self._pending.slots // self._chunks.size)
        self.patience = self._chunks.size + 1

    def admit(self, block: Block) -> int:
        """A chunk takes its even share of the stream table."""
        taken = self._pending.admit(block, self._chunk_rows - self._open)
        self._open += taken
        return taken

    def step(self) -> Iterator[Found]:
        """Read one partition, or take the next segment of it, probe, and let the chunk go that has now seen all."""
        self._chunks[self._step % self._chunks.size], self._open = self._open, 0
        self._step += 1
        if self._pages:
            yield from self._pending.probe(self._next_load())
        if self._step >= self._chunks.size:  # nothing leaves before k chunks exist
            yield from self._pending.leave_oldest(int(self._chunks[self._step % self._chunks.size]))

    def _next_load(self) -> Load:
        """The next segment; its partition is read when the first of them is due, and lies there for the others."""
        stop = self._buffer.stop_of(self._next_page)
        load = self._buffer.read(self._next_page, stop)
        begin, end = (load.page_at.size * at // self._segments for at in (self._next_segment, self._next_segment + 1))
        self._next_segment = (self._next_segment + 1) % self._segments
        if not self._next_segment:
            self._next_page = stop % self._pages
        return load._replace(page_at=load.page_at[begin:end])


def partition_lengths(pages: int, buffer: Buffer) -> list[int]:
    """Pages of the partitions: consecutive page ranges, each as long as the disk buffer allows."""
    bounds = [0]
    while bounds[-1] < pages:
        bounds.append(buffer.stop_of(bounds[-1]))
    return [stop - first for first, stop in pairwise(bounds)]


ALGORITHM = Algorithm(
    name="meshjoin",
    title="MESHJOIN",
    paper="Polyzotis et al. 2008",
    next_page="the next partition of a cyclic scan",
    leaves="the chunk that has seen all partitions",
    keeps="nothing of the master",
    bound="exactly k iterations, k = partitions of the master",
    needs_index=False,
    scans=True,
    build=MeshJoin,
    shares=shares,
    presets=("tuned", "published"),
    published_shares=published.buffer_of(_PUBLISHED_ROWS),
)
