"""Reading the pages of a file master into the disk buffer: buffered or past the page cache, neighbours in one call, every page verified.

O_DIRECT needs Linux and a file system that offers it; where it is refused the file is read through the page cache and the pages are
dropped from it afterwards (`posix_fadvise`), so that memory stays honest there too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semistream.budget import Share, Slab
from semistream.errors import MasterCorrupt, MasterNotFound
from semistream.masters.pages import DENSE_BLOCK_ROWS, PageIndex, checksum_is_right
from semistream.parts import page
from semistream.parts.memory import I64
from semistream.protocols import Load
from semistream.records import RowCodec

_NO_OPEN_WORDS = np.zeros(4, np.int64)


class FileReader:
    """Pages of one version of a file master. `unique`: no word has two rows. `sorted_`: rows stand in word order."""

    wants_keys = False

    def __init__(
        self,
        folder: Path,
        codec: RowCodec,
        *,
        direct: bool,
        sorted_: bool,
        unique: bool,
        release: Callable[[], None] = lambda: None,
    ) -> None:
        self._path = folder / "pages.bin"
        self._width, self._cells = codec.width, np.array([column.offset for column in codec.cells], np.int64)
        self._index = PageIndex.load(folder / "index.bin")
        self._sorted, self._unique, self._release = sorted_, unique, release
        self._file, self._drop = _open(self._path, direct)
        self._dense = None if sorted_ else _open(folder / "dense.bin", direct=False)[0]
        self._dense_rows = os.fstat(self._dense).st_size // 16 if self._dense is not None else 0
        self._last = (-1, -1)
        self.pages = self._index.pages
        self.runs = sorted_ or unique
        sizes = np.diff(self._index.page_at)
        self._usual_page_bytes = int(sizes.min()) if self.pages else page.ALIGNMENT
        self.largest_page_bytes = int(sizes.max()) if self.pages else page.ALIGNMENT
        self.pages_read = self.bytes_read = self.loads = 0
        if os.fstat(self._file).st_size != int(self._index.page_at[-1]):
            raise MasterCorrupt(
                f"{self._path}: {os.fstat(self._file).st_size} bytes on disk, {int(self._index.page_at[-1])} in the index; "
                "rebuild the master or go back to an older version"
            )

    def shares(self) -> list[Share]:
        """The sparse index lies in memory; of a dense index, one word a block does."""
        sparse = 17 * self.pages + 8 if self._sorted else 8 * (self.pages + 1)
        blocks = -(-self._dense_rows // DENSE_BLOCK_ROWS)
        return [Share("index", sparse + 8 * blocks + 256)]

    def attach(self, slab: Slab, buffer_bytes: int) -> None:
        """Take the disk buffer and the index from the slab."""
        index = self._index
        self._page_at = _copy(slab, index.page_at)
        if self._sorted:
            self._first_words = _copy(slab, index.first_words)
            self._continues = _copy(slab, index.continues)
        else:
            self._block_words = self._load_block_words(slab)
        self._index = None  # type: ignore[assignment]  # the copy outside the slab is not in the budget
        self._buffer_bytes = buffer_bytes // page.ALIGNMENT * page.ALIGNMENT
        self._buffer_at = slab.place("disk buffer", self._buffer_bytes, page.ALIGNMENT)
        self._memory = slab.memory

    def stop_of(self, first: int) -> int:
        """One behind the last page that fits into the disk buffer together with page `first`."""
        reach = np.searchsorted(self._page_at, self._page_at[first] + self._buffer_bytes, "right") - 1
        return min(int(reach), self.pages)

    def partition(self, first: int, stop: int) -> tuple[int, int]:
        """The aligned run of pages round page `first` that fills the disk buffer.

        Where rows of a key are strewn over the file, only the page itself: its neighbours could not be used.
        """
        if not self.runs:
            return first, first + 1
        group = max(1, self._buffer_bytes // self._usual_page_bytes)
        begin = first // group * group
        end = min(begin + group, self.pages)
        if int(self._page_at[end] - self._page_at[begin]) > self._buffer_bytes:  # a wide row's page among them
            return first, self.stop_of(first)
        return begin, end

    def read(self, first: int, stop: int) -> Load:
        """Bring pages first to stop - 1 into the disk buffer, in one call, unless they are the ones that lie there."""
        starts = self._page_at[first : stop + 1]
        if self._last != (first, stop):
            self._last = (-1, -1)
            self._fetch(first, stop, starts)
            self._last = (first, stop)
        return Load(self._buffer_at + starts[:-1] - starts[0], self._open_words(first, stop))

    def _fetch(self, first: int, stop: int, starts: I64) -> None:
        begin, size = int(starts[0]), int(starts[-1] - starts[0])
        block = self._memory.b1[self._buffer_at : self._buffer_at + size]
        got = os.preadv(self._file, [block.data], begin)
        while got < size:  # a signal or the end of a truncated file
            more = os.preadv(self._file, [block[got:].data], begin + got)
            if not more:
                raise MasterCorrupt(
                    f"{self._path}: ends at byte {begin + got}, inside page {first}; rebuild the master"
                )
            got += more
        if self._drop:
            os.posix_fadvise(self._file, begin, size, os.POSIX_FADV_DONTNEED)
        ends = (starts - begin).tolist()
        for number, (at, end) in enumerate(pairwise(ends), first):
            if not checksum_is_right(block[at:end]):
                raise MasterCorrupt(
                    f"{self._path}: page {number} (byte {begin + at}) does not have the checksum it was written with; "
                    "restore the file, or rebuild the master"
                )
        bad = page.first_bad_page(
            self._memory, self._buffer_at + starts[:-1] - begin, np.diff(starts), self._width, self._cells
        )
        if bad >= 0:
            raise MasterCorrupt(
                f"{self._path}: page {first + bad} is not a page of this master's rows; rebuild the master"
            )
        self.loads += 1
        self.pages_read += stop - first
        self.bytes_read += size

    def _open_words(self, first: int, stop: int) -> I64:
        """Words whose run crosses the edges of the load."""
        if not self._sorted or self._unique:
            return _NO_OPEN_WORDS
        words = np.zeros(4, np.int64)
        if self._continues[first]:
            words[:2] = 1, self._first_words[first]
        if stop < self.pages and self._continues[stop]:
            words[2:] = 1, self._first_words[stop]
        return words

    def look_up(self, word: int, keys: Sequence[tuple[Any, ...]]) -> list[tuple[int, int]]:
        """Ranges of pages that hold every row of a word, in reading order; empty if the word is surely absent."""
        if not self._sorted:
            return self._look_up_dense(word)
        behind = int(self._first_words.searchsorted(word, "right"))
        if behind == 0:
            return []
        if self._unique:
            return [(behind - 1, behind)]
        first = int(self._first_words.searchsorted(word, "left"))
        if first == behind or self._continues[first]:
            first -= 1  # the run begins inside the page before
        return [(first, behind)]

    def _look_up_dense(self, word: int) -> list[tuple[int, int]]:
        assert self._dense is not None
        first = max(0, int(self._block_words.searchsorted(word, "left")) - 1)
        stop = int(self._block_words.searchsorted(word, "right"))
        pages: set[int] = set()
        for block in range(first, stop):  # block by block: a word may have many rows
            pairs = self._dense_block(block)
            low, high = pairs[:, 0].searchsorted(word, "left"), pairs[:, 0].searchsorted(word, "right")
            pages.update(pairs[low:high, 1].tolist())
        return [(number, number + 1) for number in sorted(pages)]

    def _dense_block(self, block: int) -> I64:
        assert self._dense is not None
        data = os.pread(self._dense, 16 * DENSE_BLOCK_ROWS, 16 * DENSE_BLOCK_ROWS * block)
        self.bytes_read += len(data)
        return np.frombuffer(data, np.int64).reshape(-1, 2)

    def _load_block_words(self, slab: Slab) -> I64:
        blocks = -(-self._dense_rows // DENSE_BLOCK_ROWS)
        words = slab.take("index", blocks, np.int64)
        for block in range(blocks):
            assert self._dense is not None
            words[block] = np.frombuffer(os.pread(self._dense, 8, 16 * DENSE_BLOCK_ROWS * block), np.int64)[0]
        return words

    def close(self) -> None:
        """Close the files and let go of the version."""
        files, self._file, self._dense = (self._file, self._dense), -1, None
        for file in files:
            if file is not None and file >= 0:
                os.close(file)
        release, self._release = self._release, lambda: None
        release()


def _open(path: Path, direct: bool) -> tuple[int, bool]:
    """A file descriptor, and whether pages must be dropped from the page cache by hand (O_DIRECT wanted but not to be had)."""
    try:
        if direct and hasattr(os, "O_DIRECT"):
            try:
                return os.open(path, os.O_RDONLY | os.O_DIRECT), False
            except OSError:
                pass
        return os.open(path, os.O_RDONLY), direct and hasattr(os, "posix_fadvise")
    except FileNotFoundError as error:
        raise MasterNotFound(
            f"{path}: this version of the master is gone or was never finished; open the master again"
        ) from error


def _copy(slab: Slab, array: NDArray[Any]) -> Any:
    taken = slab.take("index", array.size, array.dtype)
    taken[:] = array
    return taken
