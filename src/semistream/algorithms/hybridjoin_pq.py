"""HYBRIDJOIN-PQ: frequent pages are loaded when enough tuples can be expected to wait for them, the others as in HYBRIDJOIN.

Naeem et al., the paper that gives HYBRIDJOIN and CACHEJOIN a priority queue of frequent pages, section 4.

How many tuples a page answers when it is loaded for the oldest one says how frequent it is. A frequent page is noted with the
moment when a certain number of tuples will wait for it, told by a clock that counts tuples; when the moment comes it is loaded,
whoever is the oldest. Time in the stream table is what tuples of frequent pages waste, and what this saves.

    stream -> stream table + arrival queue -> leaves at its match
                 |  due page, else the oldest key's               frequent: page -> when it is due
    index  -> partition -> disk buffer -> number of answers ----------^

Next page: the frequent page that is due, else that of the oldest waiting tuple. Leaves: tuples whose key is complete. Stays in memory:
which pages are frequent, nothing of the pages.

Departures from the print. A page's chance is (c-1)/T, T the tuples that entered while the oldest waited, and not c over the stream table's
size: that takes the oldest for chance, too, and pages wait for longer than one table of tuples. The interval is the threshold over the
chance; the printed one has the table's size in it once too often. The gliding average takes answers over the tuples that entered since
the last load: the printed number of answers is the threshold itself, whatever the page. No values are given for the thresholds; ours are
in average answers of a load, 2 slots/partitions: 6 to be due, 1.5 to be noted. The list has an end, and rarer pages make room. A
due page that answers nobody is struck off. Preset "published": chance c over the table's size and no average, pages of 68 rows, the
published sizes.

>>> import pyarrow as pa, semistream as ss, tempfile
>>> folder = tempfile.mkdtemp() + "/colours.master"
>>> master = ss.build_master(folder, pa.table({"id": [1, 2, 3], "colour": ["red", "green", "blue"]}), key="id")
>>> join = ss.Join(master, on="id", algorithm="hybridjoin_pq", memory="1MB")
>>> pa.Table.from_batches(join([pa.record_batch({"id": [3, 1, 9]})])).sort_by("id").to_pylist()
[{'id': 1, 'colour': 'red'}, {'id': 3, 'colour': 'blue'}]
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from semistream.algorithms import hybridjoin
from semistream.algorithms.choice import OldestFirst, Turn
from semistream.algorithms.hybridjoin import HybridJoin
from semistream.algorithms.record import Algorithm, Parts
from semistream.budget import Share
from semistream.parts import due_pages
from semistream.parts.due_pages import PAGE_BYTES, DuePages
from semistream.parts.memory import I64
from semistream.pending import Pending
from semistream.protocols import Buffer, Found, Load, Reader

THRESHOLD, ENTRY = 6.0, 1.5  # in average answers of a load
DECAY = 0.5  # weight of what was known before
PUBLISHED_ROWS = 68  # a page of 8 KiB
_LEAST_PAGES, _MOST_PAGES = 16, 2048
_PADDING = 8 * 64


def shares(reader: Reader, memory_bytes: int) -> list[Share]:
    """As HYBRIDJOIN, and the list of frequent pages."""
    least, most = (PAGE_BYTES * min(count, max(1, reader.pages)) + _PADDING for count in (_LEAST_PAGES, _MOST_PAGES))
    ours = Share("page choice", least, weight=1.0, most=max(least, min(most, memory_bytes // 64)))
    return [*hybridjoin.shares(reader, memory_bytes), ours]


class DueFirst:
    """Frequent pages when they are due, else the oldest. `decay` None: the first estimate of a page stays; `plain`: as printed, c/slots."""

    patience = 1

    def __init__(self, threshold: float, entry: float, decay: float | None, *, plain: bool = False) -> None:
        self._threshold, self._entry, self._decay, self._plain = threshold, entry, decay, plain
        self._oldest = OldestFirst()
        self._age = 0.0  # of the oldest tuple, when it is what chose the page

    def start(self, parts: Parts, buffer: Buffer, pending: Pending) -> None:
        """Take the list; learn what an average load answers."""
        self._oldest.start(parts, buffer, pending)
        self._pending, pages, take = pending, parts.reader.pages, parts.slab.take
        begin, end = buffer.partition(0, 1) if pages else (0, 1)
        self._partitions = max(1.0, pages / (end - begin))
        self._usual = 2.0 * pending.slots / self._partitions  # answers of an average load
        room = (parts.given["page choice"] - _PADDING) // PAGE_BYTES
        first, stop = (take("page choice", room, np.int64) for _ in range(2))
        due, loaded, chance = (take("page choice", room, np.float64) for _ in range(3))
        self._pages = DuePages(first, stop, due, loaded, chance, take("page choice", 1, np.int64))
        self.patience = room + 1  # pages that are due at once and answer nobody

    def entered(self, slots: I64) -> None:
        """The clock goes on."""
        self._oldest.entered(slots)

    def next(self) -> Turn:
        """The pages that are due, else the oldest tuple's word."""
        pages = self._pages
        at = due_pages.soonest(pages)
        if at >= 0 and pages.due[at] <= self._oldest.arrivals and not self._oldest.is_due():
            pages.due[at] = np.inf  # until they are loaded
            return Turn(None, (int(pages.first[at]), int(pages.stop[at])))
        self._age = self._oldest.age()
        return self._oldest.next()

    def loaded(self, begin: int, end: int, load: Load, left: int) -> Iterator[Found]:
        """Note how frequent these pages are, and when they are due again."""
        pages, now = self._pages, self._oldest.arrivals
        at = due_pages.find(pages, begin)
        if at < 0:
            chance = left / self._pending.slots if self._plain else (left - 1) / max(1.0, self._age)
            if left > 1 and chance * self._partitions >= self._entry:
                at = due_pages.room(pages, chance)
        else:
            chance = self._glide(float(pages.chance[at]), left / max(1.0, now - float(pages.loaded[at])))
            if not left or chance * self._partitions < 1.0:  # no longer frequent
                due_pages.remove(pages, at)
                at = -1
        if at >= 0:
            pages.first[at], pages.stop[at], pages.chance[at], pages.loaded[at] = begin, end, chance, now
            pages.due[at] = now + max(2.0, self._threshold * self._usual) / chance
        return iter(())

    def left(self, word: int) -> None:
        """Nothing is remembered of words."""

    def _glide(self, before: float, seen: float) -> float:
        return before if self._decay is None else self._decay * before + (1 - self._decay) * seen


def choice(preset: str) -> DueFirst:
    """The choice with the values of a preset."""
    return DueFirst(THRESHOLD, ENTRY, None, plain=True) if preset == "published" else DueFirst(THRESHOLD, ENTRY, DECAY)


ALGORITHM = Algorithm(
    name="hybridjoin_pq",
    title="HYBRIDJOIN-PQ",
    paper="Naeem et al., queue of frequent pages",
    next_page="the frequent page that is due, else the partition of the oldest waiting tuple",
    leaves="tuples whose key is complete, at their match",
    keeps="which pages are frequent",
    bound="at most as many loads as tuples wait, and one more for every two that leave",
    needs_index=True,
    build=lambda parts: HybridJoin(parts, choice(parts.preset), PUBLISHED_ROWS),
    shares=shares,
    presets=("tuned", "published"),
)
