"""One join's view of a file master: its index in memory, key look-ups, and disk buffers; buffered or past the page cache.

O_DIRECT needs Linux and a file system that offers it; where it is refused the file is read through the page cache and the pages are
dropped from it afterwards (`posix_fadvise`), so that memory stays honest there too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semistream.budget import Share, Slab
from semistream.errors import MasterCorrupt, MasterNotFound
from semistream.masters.page_buffer import PageBuffer, PageFile
from semistream.masters.pages import DENSE_BLOCK_ROWS, PageIndex
from semistream.parts import page
from semistream.parts.memory import I64
from semistream.protocols import Order
from semistream.records import RowCodec

_GAP_BUFFERED, _GAP_DIRECT = 32 << 10, 256 << 10


class FileReader:
    """Pages of one version of a file master. `unique`: no word has two rows. `sorted_`: rows stand in word order."""

    wants_keys = False
    indexed = True
    threads = True
    saved = ("_buffers", "_dense_bytes")

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
        self._path, self._codec = folder / "pages.bin", codec
        self._index = PageIndex.load(folder / "index.bin")
        self.word_order, self._unique, self._release = sorted_, unique, release
        self._file, self._drop = _open(self._path, direct)
        self._dense = None if sorted_ else _open(folder / "dense.bin", direct=False)[0]
        self._dense_rows = os.fstat(self._dense).st_size // 16 if self._dense is not None else 0
        self.order: Order | None = None
        self._buffers: list[PageBuffer] = []
        self._dense_bytes = 0
        self.pages = self._index.pages
        self.runs = sorted_ or unique
        self.gap_bytes = _GAP_DIRECT if direct else _GAP_BUFFERED
        sizes = np.diff(self._index.page_at)
        self._usual_page_bytes = int(sizes.min()) if self.pages else page.ALIGNMENT
        self.largest_page_bytes = int(sizes.max()) if self.pages else page.ALIGNMENT
        if os.fstat(self._file).st_size != int(self._index.page_at[-1]):
            raise MasterCorrupt(
                f"{self._path}: {os.fstat(self._file).st_size} bytes on disk, {int(self._index.page_at[-1])} in the index; "
                "rebuild the master or go back to an older version"
            )

    def shares(self) -> list[Share]:
        """The sparse index lies in memory; of a dense index, one word a block does."""
        sparse = 17 * self.pages + 8 if self.word_order else 8 * (self.pages + 1)
        blocks = -(-self._dense_rows // DENSE_BLOCK_ROWS)
        return [Share("index", sparse + 8 * blocks + 256)]

    def attach(self, slab: Slab) -> None:
        """Take the index from the slab."""
        index = self._index
        page_at = _copy(slab, index.page_at)
        if self.word_order:
            self.order = Order(_copy(slab, index.first_words), _copy(slab, index.continues), page_at)
        else:
            self._block_words = self._load_block_words(slab)
        self._index = None  # type: ignore[assignment]  # the copy outside the slab is not in the budget
        self._pages = PageFile(
            path=self._path,
            file=self._file,
            drop=self._drop,
            page_at=page_at,
            width=self._codec.width,
            cells=np.array([column.offset for column in self._codec.cells], np.int64),
            usual_page_bytes=self._usual_page_bytes,
            runs=self.runs,
            order=None if self._unique else self.order,
        )

    def buffer(self, slab: Slab, part: str, given_bytes: int) -> PageBuffer:
        """A disk buffer in the slab, charged to `part`."""
        self._buffers.append(PageBuffer(self._pages, slab, part, given_bytes))
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
        """Bytes read, of pages and of the dense index."""
        return self._dense_bytes + sum(buffer.bytes_read for buffer in self._buffers)

    def look_up(self, word: int, keys: Sequence[tuple[Any, ...]]) -> list[tuple[int, int]]:
        """Ranges of pages that hold every row of a word, in reading order; empty if the word is surely absent."""
        if self.order is None:
            return self._look_up_dense(word)
        behind = int(self.order.first_words.searchsorted(word, "right"))
        if behind == 0:
            return []
        if self._unique:
            return [(behind - 1, behind)]
        first = int(self.order.first_words.searchsorted(word, "left"))
        if first == behind or self.order.continues[first]:
            first -= 1  # the run begins inside the page before
        return [(first, behind)]

    def brings_all(self, word: int) -> bool:
        """Rows are looked up by word."""
        return True

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
        self._dense_bytes += len(data)
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
