"""HYBRIDJOIN-LWF: load the pages whose waiting tuples have waited longest in sum. Ours.

Longest wait first and RxW are on-demand broadcast schedulers (Aksoy and Franklin 1999); here a load is the broadcast.

In word order the index in memory tells the page of every waiting tuple, so the join knows how many wait for each page and since when.
Few loads a tuple is the same as short waits, and the least is reached if page i is loaded every 1/sqrt(q_i) tuples, q_i the share of
the stream that needs it. The longest sum of waits comes within some percent of that, with no estimate and nothing to tune.

    stream -> stream table -> group of pages: tuples that wait, their number, the sum of their waits
                                   |  largest
    index  -> partition -> disk buffer -> every tuple between its first and its last word leaves

Next page: that with the longest sum of waits (or, RxW, of waiting tuples times the longest of their waits); that of the oldest tuple
once 32 stream tables of tuples have entered after it. Leaves: tuples whose key is complete, and those whose key is absent, when the
page where it would be is loaded. Stays in memory: nothing of the master.

>>> import pyarrow as pa, semistream as ss, tempfile
>>> folder = tempfile.mkdtemp() + "/colours.master"
>>> master = ss.build_master(folder, pa.table({"id": [1, 2, 3], "colour": ["red", "green", "blue"]}), key="id")
>>> join = ss.Join(master, on="id", algorithm="hybridjoin_lwf", memory="1MB")
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
from semistream.parts import page_waits, stream_table
from semistream.parts.memory import I64
from semistream.pending import Pending
from semistream.protocols import Buffer, Found, Load, Reader

MOST_AGE = 32.0  # stream tables; strongly skewed streams reach 20 by themselves, and a lower limit costs loads
_HEADS = 256
_LEAST_GROUPS = 64
_FIXED_BYTES = 8 * _HEADS + 8 * 64
_NO_OPEN_WORDS = np.zeros(4, np.int64)
_NOTHING_ANSWERED = np.array([2, 0, 0, 0], np.int64)


def shares(reader: Reader, memory_bytes: int) -> list[Share]:
    """As HYBRIDJOIN, and some numbers for every group of pages."""
    ours = hybridjoin.shares(reader, memory_bytes)
    together = max(1, (ours[0].most or 0) // reader.largest_page_bytes)
    least = page_waits.GROUP_BYTES * min(_LEAST_GROUPS, max(1, reader.pages)) + _FIXED_BYTES
    most = page_waits.GROUP_BYTES * -(-reader.pages // together) + _FIXED_BYTES
    return [*ours, Share("page choice", least, weight=1.0, most=max(least, min(most, memory_bytes // 8)))]


class LongestWait:
    """The pages with the longest sum of waits, or with `product` (RxW) waiting tuples times the wait of the first."""

    patience = 1

    def __init__(self, *, product: bool = False, most_age: float = MOST_AGE) -> None:
        self._product, self._most_age, self._oldest = product, most_age, OldestFirst()

    def start(self, parts: Parts, buffer: Buffer, pending: Pending) -> None:
        """Make groups of as many pages as the buffer brings at once, or more if there are too many for their share."""
        self._oldest.start(parts, buffer, pending)
        order, pages = parts.reader.order, parts.reader.pages
        assert order is not None
        self._pending, self._order = pending, order
        room = max(1, (parts.given["page choice"] - _FIXED_BYTES) // page_waits.GROUP_BYTES)
        begin, end = buffer.partition(0, 1) if pages else (0, 1)
        together = max(end - begin, -(-pages // room))
        take, groups = parts.slab.take, max(1, -(-pages // together))
        head, count, total, first = (take("page choice", groups, np.int64) for _ in range(4))
        self._heads: I64 = take("page choice", _HEADS, np.int64)
        link = stream_table.take_back_links(pending.table)  # tuples leave by word
        self._waits = page_waits.PageWaits(order.first_words, together, head, count, total, first, link)
        page_waits.reset(self._waits)

    def entered(self, slots: I64) -> None:
        """Tuples wait for their pages."""
        self._oldest.entered(slots)
        page_waits.enter(self._waits, self._pending.table, slots)

    def next(self) -> Turn:
        """A word of the pages that are next, or that of an oldest tuple that has waited too long."""
        if self._oldest.is_due(self._most_age):
            return self._oldest.next()
        group = page_waits.longest_wait(self._waits, self._pending.now, self._product)
        return Turn(int(self._pending.side.words[self._waits.head[group]]))

    def loaded(self, begin: int, end: int, load: Load, left: int) -> Iterator[Found]:
        """Who waits for a word between the first and the last of these pages leaves, matched or not."""
        words = self._order.first_words
        edges = np.array([begin > 0, words[begin], end < words.size, words[end] if end < words.size else 0], np.int64)
        for group in range(begin // self._waits.pages, (end - 1) // self._waits.pages + 1):
            yield from self._sweep(group, edges, load.open_words)

    def left(self, word: int) -> None:
        """Its tuples wait no more."""
        group = page_waits.group_of(self._waits, word)
        if self._waits.head[group] >= 0:
            page_waits.sweep(self._waits, self._pending.table, group, _NOTHING_ANSWERED, _NO_OPEN_WORDS, self._heads)

    def _sweep(self, group: int, edges: I64, open_words: I64) -> Iterator[Found]:
        count = self._heads.size
        while count == self._heads.size:
            count = page_waits.sweep(self._waits, self._pending.table, group, edges, open_words, self._heads)
            yield from self._pending.leave_absent(self._heads[:count])


ALGORITHM = Algorithm(
    name="hybridjoin_lwf",
    title="HYBRIDJOIN-LWF",
    paper="ours",
    next_page="the partition with the longest sum of waits",
    leaves="tuples whose page has been loaded",
    keeps="nothing of the master",
    bound="once the age limit is reached, at most as many loads as tuples wait",
    needs_index=True,
    needs_word_order=True,
    build=lambda parts: HybridJoin(parts, LongestWait()),
    shares=shares,
)
