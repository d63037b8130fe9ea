"""Keeping the first rows of a master in a hot cache, once and for all."""

from __future__ import annotations

from semistream.hot_cache import HotCache
from semistream.parts.probing import Picked, without
from semistream.protocols import Buffer, Reader


def keep_first_rows(cache: HotCache, reader: Reader, buffer: Buffer) -> None:
    """Read the master from its beginning and keep its words, whole, until the cache is full. Rows of a word must stand side by side."""
    first, going_on = 0, _GoingOn(cache)
    while first < reader.pages and cache.free:
        stop = buffer.stop_of(first)
        for rows in cache.rows_of(buffer.read(first, stop)):
            going_on.keep(rows)
        first = stop
    if first == reader.pages:
        going_on.end()
    else:
        going_on.give_up()


class _GoingOn:
    """Words of one piece of rows after another; the last word of a piece may go on in the next, and is collected meanwhile."""

    def __init__(self, cache: HotCache) -> None:
        self._cache = cache
        self._word: int | None = None

    def keep(self, rows: Picked) -> None:
        """Keep the next piece of rows."""
        if self._word is not None:
            if int(rows.words[-1]) == self._word:  # the piece is all of one word
                self._cache.collect(rows)
                return
            self._cache.collect(rows)
            rows = without(rows, self._word)
            self.end()
        self._word = int(rows.words[-1])
        whole = without(rows, self._word)
        self._cache.keep(whole, 0 * whole.words)
        if self._cache.begin(self._word, 0):
            self._cache.collect(rows)

    def end(self) -> None:
        """The word that was collected has no more rows."""
        if self._word is not None:
            self._cache.finish(self._word, self._cache.slots)
        self._word = None

    def give_up(self) -> None:
        """Nobody will see the rest of the word that was collected."""
        if self._word is not None:
            self._cache.finish(self._word, -1)
        self._word = None
