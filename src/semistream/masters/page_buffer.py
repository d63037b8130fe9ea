"""A disk buffer of a file master: pages of one version, neighbours in one call, every page verified."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from semistream.budget import Slab
from semistream.errors import MasterCorrupt
from semistream.parts import page
from semistream.parts.memory import I64
from semistream.protocols import Load, Order

_NO_OPEN_WORDS = np.zeros(4, np.int64)


@dataclass(frozen=True)
class PageFile:
    """An open page file, where its pages begin, and what rows in it look like."""

    path: Path
    file: int
    drop: bool  # pages are to be dropped from the page cache by hand
    page_at: I64
    width: int
    cells: I64
    usual_page_bytes: int
    runs: bool
    order: Order | None  # None: rows are not in word order, or no word has two of them

    @property
    def pages(self) -> int:
        """Number of pages."""
        return self.page_at.size - 1


class PageBuffer:
    """Bytes of the slab, and the pages that lie there."""

    saved = ("_at", "_last", "loads", "pages_read", "bytes_read")

    def __init__(self, pages: PageFile, slab: Slab, part: str, given_bytes: int) -> None:
        self._pages, self._memory = pages, slab.memory
        self.room_bytes = given_bytes // page.ALIGNMENT * page.ALIGNMENT
        self._at = slab.place(part, self.room_bytes, page.ALIGNMENT)
        self._last = (-1, -1)
        self.pages_read = self.bytes_read = self.loads = 0

    def stop_of(self, first: int) -> int:
        """One behind the last page that fits into the buffer together with page `first`."""
        page_at = self._pages.page_at
        reach = np.searchsorted(page_at, page_at[first] + self.room_bytes, "right") - 1
        return min(int(reach), self._pages.pages)

    def partition(self, first: int, stop: int) -> tuple[int, int]:
        """The aligned run of pages round page `first` that fills the buffer.

        Where rows of a key are strewn over the file, only the page itself: its neighbours could not be used.
        """
        pages = self._pages
        if not pages.runs:
            return first, first + 1
        group = max(1, self.room_bytes // pages.usual_page_bytes)
        begin = first // group * group
        end = min(begin + group, pages.pages)
        if int(pages.page_at[end] - pages.page_at[begin]) > self.room_bytes:  # a wide row's page among them
            return first, self.stop_of(first)
        return begin, end

    def read(self, first: int, stop: int) -> Load:
        """Bring pages first to stop - 1 into the buffer, in one call, unless they are the ones that lie there."""
        starts = self._pages.page_at[first : stop + 1]
        if self._last != (first, stop):
            self._last = (-1, -1)
            self._fetch(first, stop, starts)
            self._last = (first, stop)
        return Load(self._at + starts[:-1] - starts[0], self._open_words(first, stop))

    def _fetch(self, first: int, stop: int, starts: I64) -> None:
        begin, size, pages = int(starts[0]), int(starts[-1] - starts[0]), self._pages
        block = self._memory.b1[self._at : self._at + size]
        got = os.preadv(pages.file, [block.data], begin)
        while got < size:  # a signal or the end of a truncated file
            more = os.preadv(pages.file, [block[got:].data], begin + got)
            if not more:
                raise MasterCorrupt(
                    f"{pages.path}: ends at byte {begin + got}, inside page {first}; rebuild the master"
                )
            got += more
        if pages.drop:
            os.posix_fadvise(pages.file, begin, size, os.POSIX_FADV_DONTNEED)
        page_at, sizes = self._at + starts[:-1] - begin, np.diff(starts)
        damaged = page.first_damaged_page(self._memory, page_at, sizes)
        if damaged >= 0:
            raise MasterCorrupt(
                f"{pages.path}: page {first + damaged} (byte {int(starts[damaged])}) does not have the checksum it was written with; "
                "restore the file, or rebuild the master"
            )
        bad = page.first_bad_page(self._memory, page_at, sizes, pages.width, pages.cells)
        if bad >= 0:
            raise MasterCorrupt(
                f"{pages.path}: page {first + bad} is not a page of this master's rows; rebuild the master"
            )
        self.loads += 1
        self.pages_read += stop - first
        self.bytes_read += size

    def _open_words(self, first: int, stop: int) -> I64:
        """Words whose run crosses the edges of the load."""
        order = self._pages.order
        if order is None:
            return _NO_OPEN_WORDS
        words = np.zeros(4, np.int64)
        if order.continues[first]:
            words[:2] = 1, order.first_words[first]
        if stop < self._pages.pages and order.continues[stop]:
            words[2:] = 1, order.first_words[stop]
        return words
