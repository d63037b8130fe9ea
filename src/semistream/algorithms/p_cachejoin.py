"""P-CACHEJOIN: CACHEJOIN whose two phases run at the same time, each in a thread of its own.

Naeem, Mehmood, Malik, Jamil, Journal of Database Management 2020.

CACHEJOIN's stream phase stands still while the disk phase reads, and the other way round. Here the stream phase answers tuples from the
cache and puts the others into an intermediate buffer; it stands still only if that is full. The disk phase takes them from there to the
stream table as room allows, and goes on reading pages; it stands still only if nobody waits, neither in the buffer nor in the table.

    stream phase    stream -> hot cache -- hit -> leaves at once
                                  | miss      ^ trays of rows
                                  v           |
                        [intermediate buffer] |
                                  |           |
    disk phase      stream table + arrival queue -> leaves at its match        (HYBRIDJOIN)

Next page: that of the oldest tuple in the stream table. Leaves: tuples whose key is cached, at once; others when their key is complete.
Stays in memory: the rows of hot keys, and keys that are hot and absent from the master.

Departures from the print. There the disk phase stops as soon as the intermediate buffer is empty, which would strand the tuples of the
stream table when the stream pauses. The cache is shared without a lock: the stream phase owns it, and the disk phase hands it rows on trays
(`shared_cache.py`). The published cost model adds up the times of both phases; what passes is the longer one, and as the disk phase has
most of the work there is little to gain. With one thread, as where memory is scarce or output is in order, the phases take turns as in
CACHEJOIN, and the answer is the same. With two, how phases meet depends on the clock: rows are the same in every run, their order and the
counters of loads and waits are not. The disk phase does not wait for a full table, so that a slow stream is answered sooner, by more loads.
The intermediate buffer has a fiftieth of the memory, 2 MB of 100 as published. Preset "published": as CACHEJOIN.

>>> import pyarrow as pa, semistream as ss, tempfile
>>> folder = tempfile.mkdtemp() + "/colours.master"
>>> master = ss.build_master(folder, pa.table({"id": [1, 2, 2], "colour": ["red", "green", "blue"]}), key="id")
>>> join = ss.Join(master, on="id", algorithm="p_cachejoin", memory="1MB", how="left", threads=2)
>>> stream = [pa.record_batch({"id": [2, 9]}), None, pa.record_batch({"id": [2]})]
>>> pa.Table.from_batches(join(stream)).group_by("colour").aggregate([("id", "count")]).sort_by("colour").to_pylist()
[{'colour': 'blue', 'id_count': 2}, {'colour': 'green', 'id_count': 2}, {'colour': None, 'id_count': 1}]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol

from semistream.algorithms import cachejoin, hybridjoin
from semistream.algorithms.record import Algorithm, Parts
from semistream.algorithms.shared_cache import SharedCache, tray_shares
from semistream.budget import Share
from semistream.intermediate import PART, BothRooms, IntermediateBuffer, share
from semistream.pending import Pending
from semistream.protocols import Found, Reader
from semistream.stream_rows import StreamRows, match_count
from semistream.stream_side import Arriving, Block

_LINE_SHARE = 1 / 50


class Stage(Protocol):
    """What the disk phase does with tuples it has taken."""

    area: Pending
    patience: int

    def admit(self, block: Arriving) -> int:
        """Take as many as have room."""

    def step(self) -> Iterator[Found]:
        """One iteration."""


def waiting_shares(reader: Reader, rows: StreamRows, memory_bytes: int, threads: int) -> list[Share]:
    """What waiting tuples ask for, those in line, and what two threads need between them."""
    between = tray_shares(reader, memory_bytes) if threads > 1 else []
    return [*rows.shares(match_count(memory_bytes)), share(rows, int(memory_bytes * _LINE_SHARE)), *between]


class PCacheJoin:
    """Both phases, and what lies between them: `answer` and `admit` are the stream phase, `step` is the disk phase."""

    def __init__(self, parts: Parts, stage: Callable[[Parts], Stage] = hybridjoin.HybridJoin) -> None:
        self.front = SharedCache(parts, cachejoin.least_waiting(parts), cachejoin.WORDS_PER_ROW)
        self._line = IntermediateBuffer(parts.slab, parts.rows, parts.given[PART])
        self._stage = stage(replace(parts, keeper=self.front.keeper))
        self.area, self.patience = BothRooms(self._line, self._stage.area), self._stage.patience
        self._alone = parts.threads == 1

    def admit(self, block: Block) -> int:
        """The stream phase puts what has room into the intermediate buffer."""
        taken = self._line.append(block)
        while self._alone and taken < block.picks.size:  # there is nobody else to empty it
            self._move()
            if not (more := self._line.append(block._replace(picks=block.picks[taken:]))):
                break
            taken += more
        return taken

    def step(self) -> Iterator[Found]:
        """An iteration of the disk phase; several, if it is not alone, until more tuples of those in line can be taken.

        At the end of a step the other thread is woken, and taking turns costs more than a page.
        """
        self._move()
        more, table = True, self._stage.area
        while more:
            before, table.now = table.waiting, self._line.now
            yield from self._stage.step()
            self.front.hand_over()
            self.area.look()
            more = not self._alone and table.waiting < before and self._line.waiting > 0 and not self._is_room()

    def _move(self) -> None:
        """Tuples go from the intermediate buffer to the stream table, as room allows."""
        table = self._stage.area
        while self._is_room():
            arriving = self._line.arrivals(table.slots - table.waiting)
            taken = 0 if arriving is None else self._stage.admit(arriving)
            if not taken:
                break
            self.area.look()
            self._line.drop(taken)

    def _is_room(self) -> bool:
        """Whether the stream table has room for so many tuples that to move them is worth it."""
        table = self._stage.area
        return table.slots - table.waiting >= min(table.refill, max(1, self._line.waiting))


def in_threads(held: Algorithm, stage: Callable[[Parts], Stage]) -> Algorithm:
    """An algorithm with a cache, its phases in threads."""
    return replace(
        held,
        build=lambda parts: PCacheJoin(parts, stage),
        waiting_shares=waiting_shares,
        threads=2,
        steps_apart=True,
    )


def _stage(parts: Parts) -> hybridjoin.HybridJoin:
    return hybridjoin.HybridJoin(parts, published_rows=cachejoin.PUBLISHED_ROWS)


ALGORITHM = replace(
    in_threads(cachejoin.ALGORITHM, _stage),
    name="p_cachejoin",
    title="P-CACHEJOIN",
    paper="Naeem, Mehmood, Malik, Jamil 2020",
)
