"""SSBJ: the Semi-Stream Balanced Join. MESHJOIN behind a cache of those keys whose rows take less memory than their tuples would.

Naeem, Weber, Lutteroth: "A memory-optimal many-to-many semi-stream join", Distributed and Parallel Databases 37, 2019.

A key with m rows, for which n tuples arrive while the master is read once, takes m rows in a cache and n tuples without. Where it takes
less it belongs: that is the cache inequality, and it is asked for each key. Keys are cached with all their rows, so many-to-many joins are
exact; neither index nor order is needed. A key that the master lacks has no rows and takes next to nothing: it is cached soonest.

    stream -> cache of whole keys -- hit -> leaves at once, and is counted
                  | miss          ^ after one round: all rows of the key are there, and the inequality holds
                  v               |
              [chunk | chunk | ... k chunks] -> leaves after k reads      (MESHJOIN)

Next page: the next partition of the cycle. Leaves: tuples whose key is cached, at once; others with their chunk, after k reads. Stays in
memory: keys for which the inequality holds, until it has not held for ten cycles.

Departures from the print, which is wrong in six places (tests/stories/ssbj shows them). Nothing expires before k chunks exist. Keys enter
whole: a tuple that waits sees every row once before it leaves, so from its coming to its leaving the rows of its key are counted and
collected at once, and the inequality decides when it leaves. That is one round for each key, where the print has two for all of them, and
needs no phase-out: who waits meanwhile finishes by the scan. Where rows of a key lie side by side one load is enough. Cached keys are
judged once every tenth cycle, by their hits over their age. Keys without rows are cached. Costs are real bytes, a record for a key
without rows included, and one tuple in a round does not say that another will come. The cache has a fixed share of the memory: when
what the inequality favours does not fit, cached bytes get a price, and keys are judged at once (`balance.py`). Preset "published":
20 bytes a tuple, 120 a row and none a record in the inequality; eight times of it in the budget.

>>> import pyarrow as pa, semistream as ss, tempfile
>>> folder = tempfile.mkdtemp() + "/colours.master"
>>> rows = pa.table({"id": [1, 2, 2], "colour": ["red", "green", "blue"]})
>>> master = ss.build_master(folder, rows, key="id", layout="heap")
>>> join = ss.Join(master, on="id", algorithm="ssbj", memory="1MB", how="left")
>>> pa.Table.from_batches(join([pa.record_batch({"id": [2, 9]})])).sort_by("colour").to_pylist()
[{'id': 2, 'colour': 'blue'}, {'id': 2, 'colour': 'green'}, {'id': 9, 'colour': None}]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from semistream.algorithms import cachejoin, hybridjoin, meshjoin, published
from semistream.algorithms.admission import Admission
from semistream.algorithms.balance import Balance, costs_of
from semistream.algorithms.record import Algorithm, Parts
from semistream.algorithms.switching import Switching, ring_share, take_ring
from semistream.budget import Share
from semistream.hot_cache import HotCache, Permanent
from semistream.protocols import Found, Reader
from semistream.stream_side import Block

_WORDS_PER_ROW = 1.5  # a third of the records is left for keys that the master lacks, or that have just begun
_PUBLISHED_ROWS = 6069
_HASHED = 8  # times its bytes is what a hashed row is charged


def shares(reader: Reader, memory_bytes: int) -> list[Share]:
    """What MESHJOIN asks for, the cache, and the words on their way into it."""
    return [*meshjoin.shares(reader, memory_bytes), *_cache_shares(reader, memory_bytes)]


def published_shares(reader: Reader, memory_bytes: int) -> list[Share]:
    """The same beside the disk buffer of the published MESHJOIN."""
    return [*published.buffer_of(_PUBLISHED_ROWS)(reader, memory_bytes), *_cache_shares(reader, memory_bytes)]


def index_shares(reader: Reader, memory_bytes: int) -> list[Share]:
    """The same with HYBRIDJOIN."""
    return [*hybridjoin.shares(reader, memory_bytes), *_cache_shares(reader, memory_bytes)]


def _cache_shares(reader: Reader, memory_bytes: int) -> list[Share]:
    return [cachejoin.cache_share(reader, memory_bytes), ring_share(memory_bytes)]


class Scan:
    """The disk stage of the paper: MESHJOIN, whose scan collects keys as it goes by."""

    def __init__(self, parts: Parts, cache: HotCache) -> None:
        ring = take_ring(parts)
        self.balance = Balance(cache, costs_of(parts), ring)
        self._switching = Switching(cache, self.balance, ring, parts.buffer(), parts.reader)
        self._scan = meshjoin.MeshJoin(replace(parts, keeper=self._switching, disk=self._switching))
        self.area, self.patience = self._scan.area, self._scan.patience
        self._switching.pending = self.area

    def admit(self, block: Block) -> int:
        """A chunk takes its share; keys that are asked for often are begun."""
        taken = self._scan.admit(block)
        if taken:
            self._switching.enter()
        return taken

    def step(self) -> Iterator[Found]:
        """Read one partition; who leaves without a match asked for a key that may be absent."""
        for found in self._scan.step():
            yield found
            self._switching.left(found)


class Indexed:
    """HYBRIDJOIN instead. Its tuples leave at their match: of those that come between two loads half wait, on average over time."""

    def __init__(self, parts: Parts, cache: HotCache) -> None:
        costs = costs_of(parts)
        self.balance = Balance(cache, costs._replace(waiting=costs.waiting / 2), take_ring(parts))
        self._admission = Admission(cache, 1.0, parts.reader.brings_all)
        self._set_least()
        self._disk = hybridjoin.HybridJoin(replace(parts, keeper=self._admission))
        self.area, self.patience, self.admit = self._disk.area, self._disk.patience, self._disk.admit
        self._turn = 0  # when all have left that came before, a cycle is over

    def step(self) -> Iterator[Found]:
        """The disk phase of HYBRIDJOIN, which also fills the cache."""
        if self.area.oldest_position() >= self._turn:
            self._turn = self.area.now
            self.balance.note_room()
            self.balance.cycle_ends()
            self._set_least()
        return self._disk.step()

    def _set_least(self) -> None:
        self._admission.least, self._admission.absent = self.balance.least(1), self.balance.least(0)


class Ssbj:
    """SSBJ at work, with one of the two disk stages."""

    def __init__(self, parts: Parts, stage: Callable[[Parts, HotCache], Scan | Indexed] = Scan) -> None:
        hashed_rows = parts.given["hot cache"] // (_HASHED * published.ROW_BYTES)
        most_rows = hashed_rows if parts.preset == "published" else None
        self.front = parts.hot_cache(Permanent(), _WORDS_PER_ROW, most_rows=most_rows)
        self._stage = stage(parts, self.front)
        self.area, self.patience = self._stage.area, self._stage.patience
        self.balance = self._stage.balance

    def admit(self, block: Block) -> int:
        """Take what has room, of those the cache could not answer."""
        return self._stage.admit(block)

    def step(self) -> Iterator[Found]:
        """The disk phase, which also fills the cache."""
        return self._stage.step()


ALGORITHM = Algorithm(
    name="ssbj",
    title="SSBJ",
    paper="Naeem, Weber, Lutteroth 2019",
    next_page="the next partition of a cyclic scan",
    leaves="tuples whose key is cached, at once; others with the chunk that has seen all partitions",
    keeps="keys whose rows take less memory than their tuples would, and keys the master lacks",
    bound="exactly k iterations, k = partitions of the master",
    needs_index=False,
    scans=True,
    build=Ssbj,
    shares=shares,
    presets=("tuned", "published"),
    published_shares=published_shares,
)
