"""Admission: which of the rows that tuples wait for are worth keeping in a hot cache.

A cached row must earn its bytes: it takes the place of waiting tuples. A word on which c tuples wait when its page is loaded occupies
about c / 2 slots on average (they came one by one since its last load), so a word is worth keeping when

    c / 2 * bytes of a waiting tuple > rows of the word * bytes of a cached row

In front of a scan, where tuples stay for a whole round, whatever they wait for, all c of them occupy a slot.

A word that the master lacks costs a record only, and every tuple of it a load: it is kept as soon as `absent` tuples wait on it.
"""

from __future__ import annotations

from collections.abc import Callable

from semistream.hot_cache import HotCache
from semistream.parts.memory import I64
from semistream.parts.probing import Picked


def worth_keeping(cached_bytes: float, waiting_bytes: float, slots_per_tuple: float = 0.5) -> float:
    """Tuples that must wait for a row to make it worth keeping.

    >>> worth_keeping(120, 204), worth_keeping(960, 204)
    (2.0, 10.0)
    """
    return float(int(cached_bytes / (slots_per_tuple * waiting_bytes)) + 1)


class Admission:
    """A `Keeper` that copies words to a cache when enough tuples wait on them.

    Where look-ups are by key they may leave out rows of another key with the same word. What was looked up is kept only if it `is_whole`,
    and what lay side by side in a load in any case.
    """

    def __init__(
        self, cache: HotCache, least: float, is_whole: Callable[[int], bool] = lambda _word: True, absent: float = 2
    ) -> None:
        self.cache, self.least, self._is_whole, self.absent = cache, least, is_whole, absent
        self._collecting: set[int] = set()
        self._seen: set[int] = set()  # words that are looked up and have rows

    def passes(self, rows: Picked) -> None:
        """What is worth keeping is offered."""

    def offer(self, rows: Picked, waiting: I64) -> None:
        """Keep what is offered: enough tuples wait for it."""
        self.cache.keep(rows, waiting)

    def collect(self, word: int, rows: Picked, waiting: int) -> None:
        """Rows of a word that lie on several pages are collected, if at least the first of them is worth it."""
        if not rows.words.size:
            return
        first = word not in self._seen
        self._seen.add(word)
        if first and self._is_whole(word) and waiting >= self.least and self.cache.begin(word, waiting):
            self._collecting.add(word)
        if word in self._collecting:
            self.cache.collect(rows)

    def finish(self, word: int, waiting: int) -> None:
        """Keep the collected word if all its rows together are worth it; a word without rows is kept as absent."""
        if word in self._collecting:
            self.cache.finish(word, waiting / self.least)
        elif word not in self._seen and self._is_whole(word) and waiting >= self.absent:
            self.cache.keep_absent(word, waiting)
        self._collecting.discard(word)
        self._seen.discard(word)
