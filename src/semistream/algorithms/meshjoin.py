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
A chunk takes what has arrived; a small one costs nothing but its place in the ring.

>>> import pyarrow as pa, semistream as ss, tempfile
>>> folder = tempfile.mkdtemp() + "/colours.master"
>>> master = ss.build_master(folder, pa.table({"id": [1, 2, 3], "colour": ["red", "green", "blue"]}), key="id")
>>> join = ss.Join(master, on="id", algorithm="meshjoin", memory="1MB")
>>> pa.Table.from_batches(join([pa.record_batch({"id": [3, 1, 9]})])).sort_by("id").to_pylist()
[{'id': 1, 'colour': 'red'}, {'id': 3, 'colour': 'blue'}]
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from semistream.algorithms.record import Algorithm, Parts
from semistream.budget import Share
from semistream.protocols import Buffer, Found, Reader
from semistream.stream_side import Block

_BUFFER_SHARE = 1 / 32
_BUFFER_MOST = 512 << 10  # larger reads gain nothing: see the page-size curve in benchmarks/README.md


def shares(reader: Reader, memory_bytes: int) -> list[Share]:
    """One partition at a time lies in memory; the rest is for waiting tuples."""
    most = max(int(memory_bytes * _BUFFER_SHARE), reader.largest_page_bytes)
    most = min(most + 8192, _BUFFER_MOST + reader.largest_page_bytes)
    return [Share("disk buffer", reader.largest_page_bytes + 8192, weight=1.0, most=most)]


class MeshJoin:
    """MESHJOIN at work."""

    front = None

    def __init__(self, parts: Parts) -> None:
        self._pages, self._buffer = parts.reader.pages, parts.buffer()
        self.area = self._pending = parts.pending()
        self._partitions = max(1, _count_partitions(self._pages, self._buffer))
        self._next_page = 0
        self._chunks = np.zeros(
            self._partitions, np.int64
        )  # sizes, a ring: the chunk of this step lies where one leaves after it
        self._step = 0
        self._open = 0  # tuples in the chunk that still takes some
        self._chunk_rows = -(-self._pending.slots // self._partitions)
        self.patience = self._partitions + 1

    def admit(self, block: Block) -> int:
        """A chunk takes its even share of the stream table."""
        taken = self._pending.admit(block, self._chunk_rows - self._open)
        self._open += taken
        return taken

    def step(self) -> Iterator[Found]:
        """Read one partition, probe it, and let the chunk go that has now seen all."""
        self._chunks[self._step % self._partitions], self._open = self._open, 0
        self._step += 1
        if self._pages:
            stop = self._buffer.stop_of(self._next_page)
            load = self._buffer.read(self._next_page, stop)
            self._next_page = stop % self._pages
            yield from self._pending.probe(load)
        if self._step >= self._partitions:  # nothing leaves before k chunks exist
            yield from self._pending.leave_oldest(int(self._chunks[self._step % self._partitions]))


def _count_partitions(pages: int, buffer: Buffer) -> int:
    """Partitions are consecutive page ranges, each as long as the disk buffer allows."""
    count, first = 0, 0
    while first < pages:
        count, first = count + 1, buffer.stop_of(first)
    return count


ALGORITHM = Algorithm(
    name="meshjoin",
    title="MESHJOIN",
    paper="Polyzotis et al. 2008",
    next_page="the next partition of a cyclic scan",
    leaves="the chunk that has seen all partitions",
    keeps="nothing of the master",
    bound="exactly k iterations, k = partitions of the master",
    needs_index=False,
    build=MeshJoin,
    shares=shares,
)
