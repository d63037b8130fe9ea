"""X-HYBRIDJOIN: HYBRIDJOIN with a second disk buffer, whose pages stay.

Naeem, Dobbie, Weber, BNCOD 2011; Knowledge and Information Systems 2013, sections 4 and 6.

The master is sorted by how often its rows are asked for, so its first pages are the hottest. They are pinned in a buffer of their own,
and in every iteration all their rows probe the waiting tuples, at no cost of disk. The other buffer serves the oldest waiting
tuple, as in HYBRIDJOIN.

    stream -> stream table + arrival queue -> leaves at its match
                 ^                    ^ every row of the partition of the oldest tuple
                 | every row, in every iteration
              pinned pages        index -> partition -> disk buffer

Next page: that of the oldest waiting tuple. Leaves: tuples whose key is complete. Stays in memory: the pinned pages.

Departures from the print. Those of HYBRIDJOIN. The pinned part need not be the first: the join counts what every part of the master
answers, and when another part has answered much more than the pinned one, that part is pinned instead. So the master need not be
sorted, although only a sorted one has parts that are much hotter than others. Where rows of a key lie strewn over the master
nothing is pinned. Preset "published": the tuned sizes of the paper, 950 rows to load and 1500 pinned.

>>> import pyarrow as pa, semistream as ss, tempfile
>>> folder = tempfile.mkdtemp() + "/colours.master"
>>> colours = pa.table({"id": [1, 2, 3], "colour": ["red", "green", "blue"], "asked": [5, 90, 7]})
>>> master = ss.build_master(folder, colours, key="id", layout="frequency", frequency="asked")
>>> join = ss.Join(master, on="id", algorithm="x_hybridjoin", memory="1MB", columns=["colour"])
>>> pa.Table.from_batches(join([pa.record_batch({"id": [2, 1, 2]})])).sort_by("id").to_pylist()
[{'id': 1, 'colour': 'red'}, {'id': 2, 'colour': 'green'}, {'id': 2, 'colour': 'green'}]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from semistream.algorithms import hybridjoin, published
from semistream.algorithms.record import Algorithm, Parts
from semistream.budget import Share
from semistream.protocols import Buffer, Found, Load, Reader
from semistream.stream_side import Block

_PINNED_MOST = 128 << 10  # probed in every iteration: more costs more than it answers
_MUCH_MORE = 1.25  # demand that another part must have, relative to the pinned one's, to be pinned instead
_PUBLISHED_ROWS, _PUBLISHED_PINNED = 950, 1500
_ROUND = 4  # demand is looked at after so many full stream tables


def shares(reader: Reader, memory_bytes: int) -> list[Share]:
    """What HYBRIDJOIN asks for, a second buffer, and a count for every part of the master."""
    least = reader.largest_page_bytes + 8192
    most = max(least, min(_PINNED_MOST + 8192, memory_bytes // 8))
    return [
        *hybridjoin.shares(reader, memory_bytes),
        Share("pinned pages", least, weight=1.0, most=most),
        _demand_share(reader),
    ]


def published_shares(reader: Reader, memory_bytes: int) -> list[Share]:
    """The same with the buffers of the tuned runs in the paper."""
    (pinned,) = published.buffer_of(_PUBLISHED_PINNED)(reader, memory_bytes)
    disk = published.buffer_of(_PUBLISHED_ROWS)(reader, memory_bytes)
    return [*disk, replace(pinned, part="pinned pages"), _demand_share(reader)]


def _demand_share(reader: Reader) -> Share:
    return Share("demand", 8 * reader.pages + 128)


class XHybridJoin:
    """HYBRIDJOIN and pinned pages."""

    def __init__(self, parts: Parts) -> None:
        self._reader = parts.reader
        self._pinned = parts.buffer("pinned pages", published.buffer_bytes(parts, _PUBLISHED_PINNED))
        self._disk = _Noting(parts.buffer(most_bytes=published.buffer_bytes(parts, _PUBLISHED_ROWS)))
        self._inner = hybridjoin.HybridJoin(
            replace(parts, disk=self._disk), published_rows=_PUBLISHED_ROWS, published_beside=_PUBLISHED_PINNED
        )
        self.front, self.patience = None, self._inner.patience
        self.area = self._pending = self._inner.area
        self._demand = parts.slab.take("demand", parts.reader.pages, np.float64)  # tuples answered, by first page
        self._place = 0  # first pinned page
        self._claimed = -1  # stream position up to which tuples have met the pinned pages
        self._ranked = 0  # stream position at which the ranking was looked at

    def admit(self, block: Block) -> int:
        """Take what has room."""
        return self._inner.admit(block)

    def step(self) -> Iterator[Found]:
        """Probe the pinned pages if anybody has come, then serve the oldest waiting tuple."""
        if self._reader.runs and self._reader.pages:
            yield from self._probe_pinned()
        self._disk.first = -1
        for found in self._inner.step():
            if self._disk.first >= 0:
                self._demand[self._part_of(self._disk.first)] += found.gone.size
            yield found
        if self._pending.now - self._ranked > _ROUND * self._pending.slots:
            self._rank()

    def _probe_pinned(self) -> Iterator[Found]:
        if self._claimed == self._pending.now:
            return
        load = self._pinned.read(*self._pinned.partition(self._place, self._place + 1))
        for found in self._pending.claim(load):
            self._demand[self._place] += found.gone.size
            yield found
        self._claimed = self._pending.now

    def _part_of(self, page: int) -> int:
        """The first page of the part that would be pinned to have this page."""
        return self._pinned.partition(page, page + 1)[0]

    def _rank(self) -> None:
        """Pin the part of the master that was asked for most, if that is much more than the pinned part was."""
        self._ranked = self._pending.now
        hottest = int(self._demand.argmax())
        if self._demand[hottest] > _MUCH_MORE * self._demand[self._place]:
            self._place, self._claimed = hottest, -1
        self._demand *= 0.5


class _Noting:
    """A disk buffer that tells what was read last."""

    def __init__(self, buffer: Buffer) -> None:
        self._buffer, self.first, self.loads, self.room_bytes = buffer, -1, 0, buffer.room_bytes

    def stop_of(self, first: int) -> int:
        """See `Buffer`."""
        return self._buffer.stop_of(first)

    def partition(self, first: int, stop: int) -> tuple[int, int]:
        """See `Buffer`."""
        return self._buffer.partition(first, stop)

    def read(self, first: int, stop: int) -> Load:
        """See `Buffer`."""
        self.first = first
        self.loads += 1
        return self._buffer.read(first, stop)


ALGORITHM = Algorithm(
    name="x_hybridjoin",
    title="X-HYBRIDJOIN",
    paper="Naeem, Dobbie, Weber 2011",
    next_page="the partition of the oldest waiting tuple",
    leaves="tuples whose key is complete, at their match",
    keeps="the pages that are asked for most, probed in every iteration",
    bound="at most as many loads as tuples wait",
    needs_index=True,
    build=XHybridJoin,
    shares=shares,
    presets=("tuned", "published"),
    published_shares=published_shares,
)
