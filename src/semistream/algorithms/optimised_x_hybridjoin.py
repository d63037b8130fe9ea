"""Optimised X-HYBRIDJOIN: HYBRIDJOIN behind the first rows of the master, which stand in memory for good.

Naeem, Dobbie, Weber, ADC 2012.

The master is sorted by how often its rows are asked for, so its first rows are the hottest. They are copied to a hash table when the join
starts and answer most tuples at once; only the others wait for the disk phase. X-HYBRIDJOIN instead probes its pinned rows in every
iteration, and tuples that wait for them take up room.

    stream -> first rows of the master -- hit -> leaves at once
                  | miss
                  v
              stream table + arrival queue -> leaves at its match        (HYBRIDJOIN)

Next page: that of the oldest waiting tuple. Leaves: tuples whose key is among the first rows, at once; others when their key is complete.
Stays in memory: the first rows of the master.

Departures from the print. Keys are kept with all their rows, and where rows of a key lie strewn over the master nothing is kept. On a
master that is not sorted by frequency the join is exact and the memory is wasted: that is what CACHEJOIN mends. Preset "published": a disk
buffer of 850 rows, and the bytes of 2500 for the first rows.

>>> import pyarrow as pa, semistream as ss, tempfile
>>> folder = tempfile.mkdtemp() + "/colours.master"
>>> colours = pa.table({"id": [1, 2, 3], "colour": ["red", "green", "blue"], "asked": [5, 90, 7]})
>>> master = ss.build_master(folder, colours, key="id", layout="frequency", frequency="asked")
>>> join = ss.Join(master, on="id", algorithm="optimised_x_hybridjoin", memory="1MB", columns=["colour"])
>>> pa.Table.from_batches(join([pa.record_batch({"id": [2, 1, 2]})])).sort_by("id").to_pylist()
[{'id': 1, 'colour': 'red'}, {'id': 2, 'colour': 'green'}, {'id': 2, 'colour': 'green'}]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from semistream.algorithms import cachejoin, published
from semistream.algorithms.first_rows import keep_first_rows
from semistream.algorithms.hybridjoin import HybridJoin
from semistream.algorithms.record import Parts
from semistream.hot_cache import Permanent
from semistream.protocols import Found
from semistream.stream_side import Block


class OptimisedXHybridJoin:
    """A cache that is filled once, in front of HYBRIDJOIN."""

    def __init__(self, parts: Parts) -> None:
        self.front = parts.hot_cache(Permanent())
        rows = cachejoin.PUBLISHED_ROWS
        disk = parts.buffer(most_bytes=published.buffer_bytes(parts, rows))
        if parts.reader.runs:
            keep_first_rows(self.front, parts.reader, disk)
        self._inner = HybridJoin(replace(parts, disk=disk), published_rows=rows)
        self.area, self.patience = self._inner.area, self._inner.patience

    def admit(self, block: Block) -> int:
        """Take what has room, of those the cache could not answer."""
        return self._inner.admit(block)

    def step(self) -> Iterator[Found]:
        """The disk phase."""
        return self._inner.step()


ALGORITHM = replace(
    cachejoin.ALGORITHM,
    name="optimised_x_hybridjoin",
    title="Optimised X-HYBRIDJOIN",
    paper="Naeem, Dobbie, Weber 2012",
    keeps="the first rows of the master, which should be the hottest",
    build=OptimisedXHybridJoin,
)
