"""ADAPTIVE: keep what is asked for often, let the rest wait in bins, and read where most has waited longest.

Ours. A tuple whose key lies in the hot cache is answered at once. The others are put into bins by the part of the master that holds their
key, which the sparse index tells without a read; when there is no more room, the bins whose tuples have waited longest, all waits
added up, are served: their pages are read in long neighbouring runs, and every tuple finds its rows by a search in its page.

    stream -> hot cache -> answered
                 |  miss
                 v
               bins  --- longest wait first ---> loads of neighbouring pages -> answered
                 ^                                   |
                 +------- one pool of tiles -------- hot cache: keys that would cost more waiting than kept

Next page: those of the bins with the longest waits. Leaves: everybody in these bins. Stays in memory: keys for which the cache inequality
holds in real bytes, with all their rows, or the fact that the master lacks them.

Cache and bins share one pool of tiles, so the split of memory follows the stream: all of it goes to bins when keys are asked for evenly,
and when the master fits into the cache it is read once and every tuple is answered at once. A key leaves the cache when it has not
earned its room since it was last looked at, so the cache follows drift. Nothing starves: the bin with the oldest tuple is served in
every iteration. A master that is not in word order has no ranges to make bins of: HYBRIDJOIN's disk stage, or without an index
MESHJOIN's, then does what the bins do.

>>> import pyarrow as pa, semistream as ss, tempfile
>>> folder = tempfile.mkdtemp() + "/colours.master"
>>> master = ss.build_master(folder, pa.table({"id": [1, 2, 2], "colour": ["red", "green", "blue"]}), key="id")
>>> join = ss.Join(master, on="id", algorithm="adaptive", memory="1MB", how="left")
>>> pa.Table.from_batches(join([pa.record_batch({"id": [2, 9]})])).sort_by("colour").to_pylist()
[{'id': 2, 'colour': 'blue'}, {'id': 2, 'colour': 'green'}, {'id': 9, 'colour': None}]
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Generator, Iterator
from threading import Lock

import numpy as np

from semistream.algorithms import adaptive_sizes as sizes
from semistream.algorithms.adaptive_sizes import Sizes
from semistream.algorithms.alone import Alone
from semistream.algorithms.record import Algorithm, Parts
from semistream.binned import Binned
from semistream.desk import Desk
from semistream.parts import tiles
from semistream.parts.memory import I32, I64
from semistream.protocols import Found, Front, Load, Recipe
from semistream.stream_side import Block
from semistream.tile_front import KEY_BYTES, Lookups, TileFront, all_of

_SERVED_SHARE = 0.25  # of the waiting tuples, in one iteration
_REVIEWED = 1 / 4  # of the cache, in one iteration: an item is looked at about once while its bin fills


class Adaptive:
    """The adaptive join at work, over a master in word order."""

    patience = 1

    def __init__(self, parts: Parts) -> None:
        slab, reader, codec = parts.slab, parts.reader, parts.master_codec
        self._sizes = size = Sizes.of(parts)
        self._lock = Lock()
        pool = tiles.Tiles(slab.take("stream table", size.tiles, np.int32), slab.take("stream table", 5, np.int64))
        place = slab.place("stream table", size.tiles * size.tile_bytes)
        tiles.reset(pool, place, size.tile_bytes, int(size.tiles * sizes.KEPT_BACK))
        self._tiles, self._reader = pool, reader
        self.area = self._binned = Binned(slab, pool, parts.rows, reader, codec.width, size.bins, self._lock)
        tuples, chosen = sizes.desk_tuples(slab.total_bytes), sizes.chosen_keys(slab.total_bytes)
        tiles_most = int(size.tiles * sizes.CACHE_MOST)
        self._cache = TileFront(slab, pool, codec, size.keys, tiles_most, chosen, tuples, self._lock)
        buffer_bytes = parts.given["disk buffer"] // parts.threads
        for _ in range(parts.threads):
            buffer = reader.buffer(slab, "disk buffer", buffer_bytes)
            self._binned.desks.append(Desk.of(slab, buffer, tuples, sizes.asked_rows(buffer_bytes)))
        self._lookups = [Lookups.of(slab, tuples, tuples) for _ in range(parts.threads)]
        self._plenty = False  # of room: memory that nobody else wants may as well hold keys
        self._waiting_most = max(size.tiles, int(2 * parts.master_rows))
        self._groups: deque[I64] = deque()  # of bins that are served while tuples are answered
        self._fits = size.hold(parts.master_rows)  # the whole master has room in the cache, and has not been read yet

    front: Front | None = None  # see `answer`

    def answer(self, block: Block, thread: int) -> Generator[Found, None, Block]:
        """Answer what the cache knows, and tuples too wide to wait; and all who wait, once a master that fits has been read."""
        self._binned.now = block.position + block.words.size
        if self._fits and self._binned.waiting >= max(1, self._reader.pages):  # a few tuples read a few pages
            self._read_all()
            if self._cache.complete:  # perhaps nobody ever causes an iteration again
                self._groups = deque(self._binned.choose(1.0, self._binned.desks[0].picks.size))
        return self._answer(block, thread)

    def _answer(self, block: Block, thread: int) -> Generator[Found, None, Block]:
        yield from self._serve(self._binned.desks[thread], self._groups)
        block = yield from self._cache.answer(block, self._lookups[thread])
        if (sizes := block.encoded.sizes) is None or not block.picks.size:
            return block
        wide = sizes[block.picks] + 7 > self._binned.widest_bytes
        if wide.any():
            desk = self._binned.desks[thread]
            yield from self._binned.serve_at_once(desk, block, block.picks[wide], self._served_at_once)
            block = block._replace(picks=block.picks[~wide])
        return block

    def admit(self, block: Block) -> int:
        """Take what has room."""
        return 0 if self._binned.waiting >= self._waiting_most else self._binned.admit(block)

    def step(self) -> Iterator[Found]:
        """See `strands`."""
        raise AssertionError("an iteration has strands")

    def strands(self) -> list[Iterator[Found]]:
        """Serve the bins that have waited longest, each thread some of them."""
        self._plenty = int(self._tiles.state[tiles.FREE]) * 2 > self._tiles.link.size
        self._cache.review(_REVIEWED, self._hits_for_bytes(), self._binned.now)
        groups = deque(self._binned.choose(_SERVED_SHARE, self._binned.desks[0].picks.size))
        count = min(len(groups), len(self._binned.desks))
        return [self._serve(desk, groups) for desk in self._binned.desks[:count]]

    def _serve(self, desk: Desk, groups: deque[I64]) -> Iterator[Found]:
        while True:
            try:
                group = groups.popleft()
            except IndexError:  # another thread may have taken the last one
                return
            yield from self._binned.serve(desk, group, self._served)

    # ------------------------------------------------------------------------------------------------ what is kept

    def _served(self, load: Load, asked: I32, absent: I64) -> None:
        """Keep the keys of a load for which the cache inequality holds; a cache that holds all must not put anything out."""
        if self._cache.complete:
            return
        now, hits = self._binned.now, self._hits_for_bytes()
        self._cache.take_in(load, asked, self._least_kept(), hits, now)
        if absent.size:
            words, counts = np.unique(absent, return_counts=True)
            least = 1 if self._plenty else self._least_asked(16 + KEY_BYTES)
            if (often := words[counts >= least]).size:
                self._cache.take_in_absent(often, hits, now)

    def _served_at_once(self, load: Load, asked: I32, absent: I64) -> None:
        """The same, unless another thread may be reading the cache."""
        if len(self._binned.desks) == 1:
            self._served(load, asked, absent)

    def decisions(self) -> list[str]:
        """See `Deciding`."""
        return sizes.decisions(self._sizes, self._cache, self._binned, self._reader, self._least_kept())

    def _least_asked(self, kept_bytes: float) -> int:
        """Tuples of one key that wait when its page is read have waited half the time on average."""
        return max(1, math.ceil(2 * kept_bytes / self._sizes.record_bytes))

    def _least_kept(self) -> int:
        return 1 if self._plenty else self._least_asked(self._sizes.item_bytes + KEY_BYTES)

    def _hits_for_bytes(self) -> float:
        """Hits by which a byte of the cache earns its room, while one stream tuple passes."""
        if not self._binned.period:
            return 0.0  # nothing has been read yet
        return 2 / (self._sizes.record_bytes * max(1.0, self._binned.period))

    def _read_all(self) -> None:
        """The whole master fits: read it once."""
        desk, reader, keys, self._fits = self._binned.desks[0], self._reader, 0, False
        self._cache.clear()  # then what it holds afterwards is what was read
        for first, stop in all_of(reader.pages, desk.buffer):
            load = desk.buffer.read(first, stop)
            self._cache.ask_all(load, first, reader.order, desk.asked)
            keys += self._cache.take_in(load, desk.asked, 1, 0.0, self._binned.now)
        assert reader.order is not None
        # keys whose rows fill several pages, or more than a tile, are not kept
        self._cache.complete = keys == self._cache.keys and not reader.order.continues.any()


def build(parts: Parts) -> Recipe:
    """The recipe that suits the master."""
    if parts.reader.word_order:
        return Adaptive(parts)
    other = sizes.other(parts.reader)
    return Alone(other.build(parts), f"the master's rows are not in word order, so {other.title} does the work")


ALGORITHM = Algorithm(
    name="adaptive",
    title="ADAPTIVE",
    paper="this project",
    next_page="neighbouring pages of the bins with the longest waits",
    leaves="all tuples of these bins",
    keeps="keys for which the cache inequality holds, or the whole master",
    bound="at most as many loads as tuples wait",
    needs_index=False,
    build=build,
    shares=sizes.shares,
    waiting_shares=sizes.waiting_shares,
    threads=2,
)
