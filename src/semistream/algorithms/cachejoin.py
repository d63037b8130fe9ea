"""CACHEJOIN: HYBRIDJOIN behind a cache of the master rows that waiting tuples ask for most.

Naeem, Dobbie, Weber, DaWaK 2012; described in the P-CACHEJOIN paper, section 2.

A stream tuple first probes the cache and leaves at once if its key is there; only the others wait for HYBRIDJOIN's disk phase. The disk
phase fills the cache: whenever a load is probed, keys on which many tuples wait are copied. When the cache is full, words picked at random
make room. The master need not be sorted by anything, and the cache follows the stream when what is hot changes.

    stream -> hot cache -- hit -> leaves at once
                  | miss      ^ rows that many tuples wait for
                  v           |
              stream table + arrival queue -> leaves at its match        (HYBRIDJOIN)

Next page: that of the oldest waiting tuple. Leaves: tuples whose key is cached, at once; others when their key is complete. Stays in
memory: the rows of hot keys, and keys that are hot and absent from the master.

Departures from the print. A key is cached with all its rows or not at all, so keys with many rows are exact. The threshold is not a
number to be set: a row is cached when the tuples that waited for it took more memory than it will (`admission.py`). Keys that the
master lacks are cached too, without rows: otherwise each costs a load again and again. Preset "published": a disk buffer of 850 rows and a
cache in the bytes of 2500, for which one waiting tuple is enough.

>>> import pyarrow as pa, semistream as ss, tempfile
>>> folder = tempfile.mkdtemp() + "/colours.master"
>>> master = ss.build_master(folder, pa.table({"id": [1, 2, 2], "colour": ["red", "green", "blue"]}), key="id")
>>> join = ss.Join(master, on="id", algorithm="cachejoin", memory="1MB", how="left")
>>> stream = [pa.record_batch({"id": [2, 9]}), None, pa.record_batch({"id": [2]})]
>>> pa.Table.from_batches(join(stream)).group_by("colour").aggregate([("id", "count")]).sort_by("colour").to_pylist()
[{'colour': 'blue', 'id_count': 2}, {'colour': 'green', 'id_count': 2}, {'colour': None, 'id_count': 1}]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from semistream.algorithms import hybridjoin, published
from semistream.algorithms.admission import Admission, worth_keeping
from semistream.algorithms.choice import Choice, OldestFirst
from semistream.algorithms.record import Algorithm, Parts, Shares
from semistream.budget import Share
from semistream.hot_cache import LEAST_BYTES, AnyVictim, Eviction, row_cost
from semistream.protocols import Found, Reader, Recipe
from semistream.stream_side import Block

WORDS_PER_ROW = 1.125  # one record in nine is left for keys that the master lacks
PUBLISHED_ROWS, _PUBLISHED_CACHED = 850, 2500


def cache_share(reader: Reader, memory_bytes: int) -> Share:
    """The cache's share: C / (M - C) = 1 / ln(R / C) gives the fewest loads when keys follow Zipf's law; never more than the master."""
    master_bytes = max(1, reader.pages * reader.largest_page_bytes)
    cache_bytes = memory_bytes / 4
    for _ in range(8):
        cache_bytes = memory_bytes / (1 + max(1.0, math.log(master_bytes / cache_bytes)))
    weight = cache_bytes / (memory_bytes - cache_bytes)
    return Share("hot cache", LEAST_BYTES, weight=weight, most=LEAST_BYTES + 2 * master_bytes)


def published_cache_share(_reader: Reader, memory_bytes: int) -> Share:
    """The cache of the published runs, or an eighth of the memory if that is less."""
    most = min(_PUBLISHED_CACHED * published.ROW_BYTES, memory_bytes // 8)
    return Share("hot cache", LEAST_BYTES, weight=1.0, most=max(LEAST_BYTES, most))


def least_waiting(parts: Parts, slots_per_tuple: float = 0.5) -> float:
    """Tuples that must wait for a row to have it cached."""
    if parts.preset == "published":
        return 1.0
    cached_bytes = row_cost(parts.master_codec, parts.master_row_bytes, WORDS_PER_ROW)
    return worth_keeping(cached_bytes, parts.rows.slot_bytes(), slots_per_tuple)


class CacheJoin:
    """A cache in front of another recipe, which shows it what is worth keeping."""

    def __init__(
        self,
        parts: Parts,
        inner: Callable[[Parts], Recipe] = hybridjoin.HybridJoin,
        eviction: Eviction | None = None,
        slots_per_tuple: float = 0.5,
    ) -> None:
        self.front = parts.hot_cache(eviction or AnyVictim(), WORDS_PER_ROW)
        admission = Admission(self.front, least_waiting(parts, slots_per_tuple), parts.reader.brings_all)
        self._inner = inner(replace(parts, keeper=admission))
        self.area, self.patience = self._inner.area, self._inner.patience

    def admit(self, block: Block) -> int:
        """Take what has room, of those the cache could not answer."""
        return self._inner.admit(block)

    def step(self) -> Iterator[Found]:
        """The disk phase, which also fills the cache."""
        return self._inner.step()


def in_front_of(held: Algorithm, choice: Callable[[str], Choice], published_rows: int = PUBLISHED_ROWS) -> Algorithm:
    """A cache in front of HYBRIDJOIN with the choice of pages for a preset; `held` is the same without cache."""

    def with_cache(shares: Shares, cache: Callable[[Reader, int], Share]) -> Shares:
        return lambda reader, memory_bytes: [*shares(reader, memory_bytes), cache(reader, memory_bytes)]

    def inner(parts: Parts) -> Recipe:
        return hybridjoin.HybridJoin(parts, choice(parts.preset), published_rows)

    return replace(
        held,
        leaves="tuples whose key is cached, at once; others when their key is complete",
        keeps="rows that many tuples wait for; random ones make room",
        build=lambda parts: CacheJoin(parts, inner),
        shares=with_cache(held.shares, cache_share),
        published_shares=with_cache(held.shares_for("published"), published_cache_share),
    )


ALGORITHM = replace(
    in_front_of(hybridjoin.ALGORITHM, lambda _preset: OldestFirst()),
    name="cachejoin",
    title="CACHEJOIN",
    paper="Naeem, Dobbie, Weber 2012",
)
