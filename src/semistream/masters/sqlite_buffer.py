"""Pages of a SQLite table in the disk buffer: rows of a key range, packed on the way in exactly as pages of a built master are.

`read` fetches neighbouring pages by one range query. `fetch` brings exactly the rows of a list of keys, by one query with all of them:
that is what a database answers best, and pages are what lets one answer serve many tuples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from math import isnan
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from semistream.budget import Slab
from semistream.keys import NULL_WORD
from semistream.masters.pages import encode_rows
from semistream.masters.sqlite_pages import Section
from semistream.masters.sqlite_rows import explained, fetched
from semistream.masters.sqlite_values import to_batch
from semistream.parts import page
from semistream.parts.memory import I64
from semistream.parts.page import Rows
from semistream.protocols import Load

if TYPE_CHECKING:
    from semistream.masters.sqlite import SqliteMaster

NO_OPEN_WORDS: Final[I64] = np.zeros(4, np.int64)
_PIECE_ROWS: Final = 2048  # rows that are Python objects at one time
_KEYS_AT_ONCE: Final = 500  # of one query: SQLite limits its parameters


class SqliteBuffer:
    """Bytes of the slab, and the rows that were packed into them."""

    saved = ("_buffer_at", "_last", "loads", "pages_read", "bytes_read")

    def __init__(self, master: SqliteMaster, page_at: I64, slab: Slab, part: str, given_bytes: int) -> None:
        self._master, self._page_at = master, page_at
        self._codec, self._sections = master.codec, master.sections
        self._relation, self._columns = master.relation, master.relation.columns("t")
        self._cell_offsets = np.array([column.offset for column in self._codec.cells], np.int64)
        # rows without a key lie on pages of their own, apart from a real key that happens to have their word
        self._open = np.array([1, NULL_WORD, 0, 0], np.int64) if master.has_null_keys else NO_OPEN_WORDS
        self._last = (-1, -1)
        self.room_bytes = given_bytes // 64 * 64 - 64
        self._buffer_at = slab.place(part, self.room_bytes, 64)
        self._memory = slab.memory
        self.pages_read = self.bytes_read = self.loads = 0

    def stop_of(self, first: int) -> int:
        """One behind the last page that fits into the disk buffer together with page `first`."""
        return int(np.searchsorted(self._page_at, self._page_at[first] + self.room_bytes, "right")) - 1

    def partition(self, first: int, stop: int) -> tuple[int, int]:
        """One page: every row of it costs far more than a row of a built master, so neighbours do not come along."""
        return first, first + 1

    def read(self, first: int, stop: int) -> Load:
        """Bring pages first to stop - 1 into the disk buffer, unless they are the ones that lie there."""
        page_at = self._buffer_at + self._page_at[first:stop] - self._page_at[first]
        if self._last != (first, stop):
            self._last = (-1, -1)
            for section, low, high, begin in self._pieces(first, stop):
                condition, values = section.condition(low, high)
                rows = self._rows(
                    f"FROM {self._relation.sql} AS t WHERE {condition} ORDER BY {section.order()}", values
                )
                starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(section.counts[low:high])])
                self._put(rows, starts, page_at[begin - first : begin - first + high - low])
            self._last = (first, stop)
            self.loads += 1
            self.pages_read += stop - first
        return Load(page_at, self._open)

    def _pieces(self, first: int, stop: int) -> Iterator[tuple[Section, int, int, int]]:
        """Parts of a page range that lie in one section and are few rows: (section, its pages low to high, number of page low)."""
        begin = 0
        for section in self._sections:
            low, end = max(first - begin, 0), min(stop - begin, len(section.bounds))
            while low < end:
                ends = np.cumsum(section.counts[low:end])
                high = low + max(1, int(np.searchsorted(ends, _PIECE_ROWS, "right")))
                yield section, low, high, begin + low
                low = high
            begin += len(section.bounds)

    def fetch(self, keys: Sequence[tuple[Any, ...]]) -> Iterator[Load]:
        """All rows of these keys, once each, a disk buffer full at a time; a key that the table lacks gives none."""
        self._last = (-1, -1)
        places, section = self._master.key_places, self._sections[0]
        # keys that differ may be the same to SQLite (0.0 and -0.0); NaN is a key that no table has, and would be taken for NULL
        wanted = dict.fromkeys(tuple(stored(key[place]) for place in places) for key in keys)
        asked = [key for key in wanted if not any(isinstance(value, float) and isnan(value) for value in key)]
        same = " AND ".join(f"t.{column} IS wanted.column{i}" for i, column in enumerate(section.columns, 1))
        for start in range(0, len(asked), _KEYS_AT_ONCE):
            some = asked[start : start + _KEYS_AT_ONCE]
            marks = ", ".join(["(" + ", ".join("?" * len(places)) + ")"] * len(some))
            query = f"FROM (VALUES {marks}) AS wanted CROSS JOIN {self._relation.sql} AS t ON {same}"
            for rows in self._some_rows(query, list(chain.from_iterable(some))):
                yield from self._loads(rows)

    def _loads(self, rows: Rows) -> Iterator[Load]:
        """Rows as single pages that fit the disk buffer."""
        starts = np.zeros(rows.words.size + 1, np.int64)
        pages = page.cut_pages(rows.ends, rows.width, self.room_bytes, starts)
        page_at = np.array([self._buffer_at], np.int64)
        for number in range(pages):
            self._put(rows, starts[number : number + 2], page_at)
            self.loads += 1
            self.pages_read += 1
            yield Load(page_at, NO_OPEN_WORDS)

    def _put(self, rows: Rows, starts: I64, page_at: I64) -> None:
        """Write rows into the disk buffer, as pages that begin at `starts`."""
        page.fill_pages(self._memory, page_at, rows, starts, int(starts[0]), self._cell_offsets)
        count = int(starts[-1] - starts[0])
        self.bytes_read += count * (8 + rows.width) + int(rows.ends[starts[-1]] - rows.ends[starts[0]])

    def _rows(self, query: str, values: Sequence[Any]) -> Rows:
        """The packed rows of a query."""
        with explained(self._relation.where):
            found = self._master.link.execute(f"SELECT {self._columns} {query}", values).fetchall()
        return encode_rows(to_batch(found, self._relation), self._master.keys, self._codec)

    def _some_rows(self, query: str, values: Sequence[Any]) -> Iterator[Rows]:
        """The packed rows of a query that may have any number of them."""
        cursor = self._master.link.execute(f"SELECT {self._columns} {query}", values)
        while found := fetched(cursor, self._relation.where, _PIECE_ROWS):
            yield encode_rows(to_batch(found, self._relation), self._master.keys, self._codec)


def stored(value: Any) -> Any:
    """A key's value as SQLite stores it."""
    return int(value) if isinstance(value, bool) else value
