"""A hot cache that one thread reads and another fills, without a lock: rows are handed over on trays.

    disk phase -- worth keeping --> tray being filled            only the disk phase touches it
                                        | end of an iteration, if the stream phase has emptied the other
                                        v
                                    tray on the counter --> hot cache       only the stream phase touches either

A lock round the cache would be held by the stream phase nearly all the time: what is found in the cache is read until it has been settled.
With an owner for every piece of memory nobody waits. What finds no room on the tray has to come again, which hot keys do.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from semistream.algorithms.admission import Admission
from semistream.algorithms.record import Parts
from semistream.budget import Share
from semistream.hot_cache import LEAST_BYTES, AnyVictim, HotCache, Permanent
from semistream.parts.hot_cache import HITS, ROWS
from semistream.protocols import Found, Reader
from semistream.stream_side import Block

_TRAYS = ("first tray", "second tray")
_TRAY_SHARE = 1 / 256  # of the memory, for each
_TRAY_MOST = 256 << 10


def tray_shares(reader: Reader, memory_bytes: int) -> list[Share]:
    """Room for some rows at least, if no row fills a page: one that finds none is never kept."""
    least = LEAST_BYTES + reader.largest_page_bytes
    most = max(least, min(_TRAY_MOST, int(memory_bytes * _TRAY_SHARE)))
    return [Share(tray, least, weight=1.0, most=most) for tray in _TRAYS]


class SharedCache:
    """The cache, its trays, and what decides who gets onto a tray. A front to the one thread, a keeper's owner to the other."""

    def __init__(self, parts: Parts, least: float, words_per_row: float) -> None:
        self.cache = parts.hot_cache(AnyVictim(), words_per_row)
        self._filled = self._other = self.cache  # one thread alone may as well fill the cache itself
        if parts.threads > 1:
            self._filled, self._other = (parts.hot_cache(Permanent(), words_per_row, tray) for tray in _TRAYS)
        self._counter: HotCache | None = None
        self.keeper = Admission(self._filled, least, parts.reader.brings_all)

    def answer(self, block: Block) -> Generator[Found, None, Block]:
        """For the stream phase: take in what lies on the counter, then answer what the cache knows."""
        if (tray := self._counter) is not None:
            self._take_in(tray)
            tray.clear()
            self._counter = None  # last of all: now the disk phase may have it
        return self.cache.answer(block)

    def hand_over(self) -> None:
        """For the disk phase, when no word is half collected: put the tray on the counter, if the other one is back."""
        if self._filled is not self.cache and self._filled.words and self._counter is None:
            tray, self._filled, self._other = self._filled, self._other, self._filled
            self.keeper.cache = self._filled
            self._counter = tray

    def _take_in(self, tray: HotCache) -> None:
        for rows, hits in tray.contents():
            self.cache.keep(rows, hits)
        kept = tray.kept
        for record in np.flatnonzero(kept.records[:, ROWS] == 0).tolist():
            self.cache.keep_absent(int(kept.record_word[record]), int(kept.records[record, HITS]))
