"""Derakhshan et al.: frequent rows are cached, misses are answered in batches, and output keeps the order of the stream.

Derakhshan, Sattar, Stantic, CIKM 2013; described in the SSBJ paper, section 2.3.

A stream tuple whose key is cached is done at once; the others join a waiting queue, and one request answers a whole batch of them. Tuples
are thus finished out of order, and a buffer puts them in order again: a hit behind a miss that still waits is held back. So one
request serves many tuples, and who reads the output never sees a younger tuple before an older one.

    stream -> hot cache -- hit ---------------------------> reorder buffer -> output, in the order of arrival
                  | miss   ^ rows that a batch asked for            ^
                  v        |                                        |
              waiting queue -- full, or its head is old --> one batch of look-ups

Next page: those of all keys that wait. Leaves: the whole batch. Stays in memory: the rows that are asked for most, and keys that the master
lacks.

Departures from the print, of which only a summary was to be had. The reorder buffer is bounded: when the oldest unfinished tuple holds back
as many as it has room for, a batch is due, however small. A head that waited while eight times as many tuples arrived as can
wait makes a batch due, too. Keys are cached with all their rows or not at all, as soon as they are asked
for, and those with the fewest hits make room. In a database the request is one query for many keys, in a
file all their pages in order, neighbours in one read (`inlj.py`).

>>> import pyarrow as pa, semistream as ss, tempfile
>>> folder = tempfile.mkdtemp() + "/colours.master"
>>> master = ss.build_master(folder, pa.table({"id": [1, 2, 3], "colour": ["red", "green", "blue"]}), key="id")
>>> join = ss.Join(master, on="id", algorithm="derakhshan", memory="1MB", how="left")
>>> stream = [pa.record_batch({"id": [3, 9]}), None, pa.record_batch({"id": [1, 3]})]
>>> [row for batch in join(stream) for row in batch.to_pylist()]
[{'id': 3, 'colour': 'blue'}, {'id': 9, 'colour': None}, {'id': 1, 'colour': 'red'}, {'id': 3, 'colour': 'blue'}]
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace

from semistream.algorithms import cachejoin, inlj
from semistream.algorithms.admission import Admission
from semistream.algorithms.record import Algorithm, Parts
from semistream.budget import Share
from semistream.hot_cache import ColdestVictim
from semistream.protocols import Found, Reader
from semistream.stream_rows import StreamRows, match_count
from semistream.stream_side import Block

_AGE_FILLS = 8  # the age limit of the head, in tuples that can wait
_QUEUE_WEIGHT = 0.25  # the queue holds misses only, the reorder buffer every tuple behind its head
_WORDS_PER_ROW = 1.125  # one record in nine is left for keys that the master lacks


def shares(reader: Reader, memory_bytes: int) -> list[Share]:
    """What batches of look-ups ask for, and the cache."""
    return [*inlj.shares(reader, memory_bytes), cachejoin.cache_share(reader, memory_bytes)]


def waiting_shares(_reader: Reader, rows: StreamRows, memory_bytes: int, _threads: int) -> list[Share]:
    """The waiting queue is small beside the reorder buffer."""
    queue, matches = rows.shares(match_count(memory_bytes))
    return [replace(queue, weight=_QUEUE_WEIGHT), matches]


class Derakhshan:
    """A cache and a waiting queue at work; order is restored behind them (see `Algorithm.ordered`)."""

    patience = 1

    def __init__(self, parts: Parts) -> None:
        self._cache = parts.hot_cache(ColdestVictim(), _WORDS_PER_ROW)
        # batches may be small, however much is asked for: whatever comes is kept, and hits say what stays
        keeper = Admission(self._cache, 1.0, parts.reader.brings_all, absent=1)
        self._batches = inlj.Inlj(replace(parts, keeper=keeper))
        self.area = self._pending = self._batches.area

    @property
    def front(self) -> Derakhshan:
        """It answers what it can at once."""
        return self

    def answer(self, block: Block) -> Generator[Found, None, Block]:
        """Answer what is cached; and a batch, if the head of the queue has waited too long."""
        left = yield from self._cache.answer(block)
        self._pending.now = now = block.position + block.words.size
        if self._pending.waiting and now - self._pending.oldest_position() > _AGE_FILLS * self._pending.slots:
            while self._pending.waiting:
                yield from self._batches.step()
        return left

    def admit(self, block: Block) -> int:
        """Let what has room join the queue."""
        return self._batches.admit(block)

    def step(self) -> Iterator[Found]:
        """One batch."""
        return self._batches.step()


ALGORITHM = Algorithm(
    name="derakhshan",
    title="Derakhshan et al.",
    paper="Derakhshan, Sattar, Stantic 2013",
    next_page="those of all keys that wait, as one batch",
    leaves="tuples whose key is cached, at once; others with their batch; output stays in order",
    keeps="rows that were asked for; those with the fewest hits make room",
    bound="eight tables full of arrivals",
    needs_index=True,
    build=Derakhshan,
    shares=shares,
    waiting_shares=waiting_shares,
    ordered=True,
)
