"""One join's view of a SQLite table: look-ups by key, and disk buffers."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from semistream.budget import Share, Slab
from semistream.keys import NULL_WORD
from semistream.masters.sqlite_buffer import SqliteBuffer, stored
from semistream.parts import page
from semistream.parts.memory import I64
from semistream.protocols import Order

if TYPE_CHECKING:
    from semistream.masters.sqlite import SqliteMaster


class SqliteReader:
    """One join's view of an opened SQLite table."""

    wants_keys = True
    word_order = False
    order: Order | None = None
    threads = False
    saved = ("_buffers",)
    gap_bytes = 0  # rows nobody asked for cost more than another request

    def __init__(self, master: SqliteMaster) -> None:
        self._master = master  # keeps the transaction open
        self._sections = master.sections
        counts = np.array([n for section in self._sections for n in section.counts], np.int64)
        cells = np.array([n for section in self._sections for n in section.sizes], np.int64)
        bounds = (page.HEADER_BYTES + counts * (8 + master.codec.width) + cells + 63) // 64 * 64
        self._page_at: I64 = np.concatenate([np.zeros(1, np.int64), np.cumsum(bounds)])
        self._buffers: list[SqliteBuffer] = []
        self.pages = counts.size
        self.indexed = master.indexed
        self.runs = master.indexed and master.keys.exact  # else a word may stand for keys on several pages
        self.largest_page_bytes = int(bounds.max(initial=page.ALIGNMENT))

    def shares(self) -> list[Share]:
        """First keys, sizes and counts of the pages lie in memory."""
        return [Share("index", self._master.index_bytes + 16 * self.pages + 64)]

    def attach(self, slab: Slab) -> None:
        """The index are Python values and lie outside the slab."""
        slab.charge("index", self._master.index_bytes + 16 * self.pages)

    def buffer(self, slab: Slab, part: str, given_bytes: int) -> SqliteBuffer:
        """A disk buffer in the slab, charged to `part`."""
        self._buffers.append(SqliteBuffer(self._master, self._page_at, slab, part, given_bytes))
        return self._buffers[-1]

    @property
    def loads(self) -> int:
        """Reads, by all buffers."""
        return sum(buffer.loads for buffer in self._buffers)

    @property
    def pages_read(self) -> int:
        """Pages read, by all buffers."""
        return sum(buffer.pages_read for buffer in self._buffers)

    @property
    def bytes_read(self) -> int:
        """Bytes of packed rows, by all buffers."""
        return sum(buffer.bytes_read for buffer in self._buffers)

    def look_up(self, word: int, keys: Sequence[tuple[Any, ...]]) -> list[tuple[int, int]]:
        """Pages that hold the rows of these keys: one for each, and all pages of rows without a key if one of them is null."""
        present, places = self._sections[0], self._master.key_places
        found: set[tuple[int, int]] = set()
        for key in keys:
            values = tuple(stored(key[place]) for place in places)
            if None in values:
                found.update((number, number + 1) for number in range(len(present.bounds), self.pages))
            elif not any(isinstance(value, float) and isnan(value) for value in values):  # SQLite has no NaN
                number = present.find(values)
                found.update([(number, number + 1)] if number >= 0 else [])
        return sorted(found)

    def brings_all(self, word: int) -> bool:
        """Other keys may have the same word, if it is a hash, or if it is that of a missing key."""
        return self._master.keys.exact and not (self._master.has_null_keys and word == NULL_WORD)

    def close(self) -> None:
        """Nothing to let go of: the transaction belongs to the master."""
