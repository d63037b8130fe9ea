"""Page files: writing packed rows as pages, and the two indexes over them.

What a page looks like is told in parts/page.py. A version of a master holds

    pages.bin    pages, one after the other, each at a multiple of 4 KiB; all `page_bytes` long but the few that hold one wide row
    index.bin    sparse index: per page the first word, the byte offset, and whether the page before ends with the same word
    dense.bin    only if rows are not in word order: (word, page) of every row in word order, 16 bytes each

    writer = PageWriter(file, codec, page_bytes)      # rows come as `Rows` chunks, in the order they shall have
    writer.append(rows); ...; index = writer.finish(); index.save(path)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import xxhash

from semistream.errors import MasterCorrupt, MasterNotFound
from semistream.keys import KeyCodec
from semistream.masters.sums import Writable
from semistream.parts import page
from semistream.parts.memory import I64, U8, view
from semistream.parts.page import Rows
from semistream.records import RowCodec

DENSE_BLOCK_ROWS = 256  # entries of the dense index that are read together: 4 KiB
_WRITE_BYTES = 4 << 20


def stored_codec(schema: pa.Schema, keys: KeyCodec) -> RowCodec:
    """How rows of this schema lie in pages: key columns that words hold are left out, hidden key bytes are added."""
    return RowCodec(schema if keys.hidden is None else schema.append(keys.hidden), in_words=keys.in_words)


def encode_rows(batch: pa.RecordBatch, keys: KeyCodec, codec: RowCodec) -> Rows:
    """Words and packed rows of a batch of the master's own schema."""
    key_words = keys.words([batch.column(field.name) for field in keys.fields])
    if key_words.hidden is not None:
        batch = batch.append_column(keys.hidden, key_words.hidden)
    encoded = codec.encode(batch)
    count = batch.num_rows
    ends = np.zeros(count + 1, np.int64)
    if encoded.sizes is not None:
        np.cumsum(
            (encoded.sizes + 7) // 8 * 8, out=ends[1:]
        )  # heap of every row padded: a page's rows stay aligned when they move
    fixed_bytes = -(-count * codec.width // 8) * 8
    block = np.zeros(fixed_bytes + int(ends[-1]) + 8, np.uint8)[: fixed_bytes + int(ends[-1])]
    places = np.arange(count, dtype=np.int64)
    codec.pack(encoded, places, view(block), places * codec.width, fixed_bytes + ends[:-1])
    return Rows(key_words.words, block[: count * codec.width], codec.width, block[fixed_bytes:], ends)


def take_rows(rows: Rows, order: I64) -> Rows:
    """Rows in another order."""
    fixed = rows.fixed.reshape(rows.words.size, rows.width)[order].reshape(-1)
    sizes = np.diff(rows.ends)[order]
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    heap = rows.heap
    if heap.size:
        heap = page.take_heap(rows.heap, rows.ends, order, ends)
    return Rows(rows.words[order], fixed, rows.width, heap, ends)


def concat_rows(chunks: list[Rows]) -> Rows:
    """Chunks one after the other."""
    if len(chunks) == 1:
        return chunks[0]
    shifts = np.cumsum([0] + [int(c.ends[-1]) for c in chunks])
    ends = [c.ends[:-1] + shift for c, shift in zip(chunks, shifts, strict=False)] + [shifts[-1:]]
    return Rows(
        np.concatenate([c.words for c in chunks]),
        np.concatenate([c.fixed for c in chunks]),
        chunks[0].width,
        np.concatenate([c.heap for c in chunks]),
        np.concatenate(ends).astype(np.int64),
    )


def slice_rows(rows: Rows, first: int, stop: int) -> Rows:
    """Rows from `first` up to `stop`, without copying their bytes."""
    ends = rows.ends[first : stop + 1]
    heap = rows.heap[int(ends[0]) : int(ends[-1])]
    return Rows(
        rows.words[first:stop], rows.fixed[first * rows.width : stop * rows.width], rows.width, heap, ends - ends[0]
    )


@dataclass(frozen=True)
class PageIndex:
    """The sparse index: for every page its first word, where it begins (one more entry than pages), and `continues`."""

    first_words: I64
    page_at: I64
    continues: U8

    @property
    def pages(self) -> int:
        """Number of pages."""
        return self.first_words.size

    def save(self, path: Path) -> None:
        """Write the index, checksum first."""
        body = b"".join(array.tobytes() for array in (self.first_words, self.page_at, self.continues))
        path.write_bytes(xxhash.xxh3_64(body).digest() + np.int64(self.pages).tobytes() + body)

    @classmethod
    def load(cls, path: Path) -> PageIndex:
        """Read an index and check it."""
        try:
            data = path.read_bytes()
        except FileNotFoundError as error:
            raise MasterNotFound(f"{path}: missing; this version is not complete, build the master again") from error
        pages = int(np.frombuffer(data, np.int64, 1, 8)[0]) if len(data) >= 16 else -1
        if pages < 0 or len(data) != 24 + 17 * pages or data[:8] != xxhash.xxh3_64(memoryview(data)[16:]).digest():
            raise MasterCorrupt(
                f"{path}: the index is damaged ({len(data)} bytes); rebuild the master or go back to an older version"
            )
        words = np.frombuffer(data, np.int64, pages, 16)
        return cls(
            words,
            np.frombuffer(data, np.int64, pages + 1, 16 + 8 * pages),
            np.frombuffer(data, np.uint8, pages, 24 + 16 * pages),
        )


class PageWriter:
    """Writes rows, in the order they come, as pages."""

    def __init__(self, file: Writable, codec: RowCodec, page_bytes: int) -> None:
        self._file, self._codec, self._page_bytes = file, codec, page_bytes
        self._cell_offsets = np.array([column.offset for column in codec.cells], np.int64)
        self._rest: Rows | None = None
        self._rows = 0
        self._end = 0
        self._first_words: list[I64] = []
        self._last_words: list[I64] = []
        self._sizes: list[I64] = []
        self.page_rows: list[I64] = []

    def append(self, rows: Rows) -> None:
        """Write all full pages of these rows; the last, open page waits for more."""
        if self._rest is not None:
            rows = concat_rows([self._rest, rows])
        starts = self._cut(rows)
        self._write(rows, starts[:-1])
        self._rest = slice_rows(rows, int(starts[-2]), int(starts[-1])) if starts.size > 1 else None

    def finish(self) -> PageIndex:
        """Write the open page and return the index over all pages."""
        if self._rest is not None:
            self._write(self._rest, self._cut(self._rest))
            self._rest = None
        first = _join(self._first_words)
        continues = np.zeros(first.size, np.uint8)
        continues[1:] = first[1:] == _join(self._last_words)[:-1]
        return PageIndex(first, np.concatenate([np.zeros(1, np.int64), np.cumsum(_join(self._sizes))]), continues)

    def _cut(self, rows: Rows) -> I64:
        starts = np.zeros(rows.words.size + 1, np.int64)
        pages = page.cut_pages(rows.ends, rows.width, self._page_bytes, starts)
        return starts[: pages + 1]

    def _write(self, rows: Rows, starts: I64) -> None:
        """Write the pages that begin at `starts` (the last entry is where the last page ends)."""
        if starts.size < 2:
            return
        need = page.HEADER_BYTES + np.diff(starts) * (8 + rows.width) + np.diff(rows.ends[starts])
        sizes = np.maximum(self._page_bytes, -(-need // page.ALIGNMENT) * page.ALIGNMENT)
        first = 0
        while first < sizes.size:
            stop = first + max(1, int(np.searchsorted(np.cumsum(sizes[first:]), _WRITE_BYTES, "right")))
            self._write_block(
                rows, starts[first : stop + 1], sizes[first:stop], self._rows + int(starts[first] - starts[0])
            )
            first = stop
        self._first_words.append(rows.words[starts[:-1]])
        self._last_words.append(rows.words[starts[1:] - 1])
        self._sizes.append(sizes)
        self.page_rows.append(np.diff(starts))
        self._rows += int(starts[-1] - starts[0])

    def _write_block(self, rows: Rows, starts: I64, sizes: I64, first_row: int) -> None:
        page_at = np.cumsum(sizes) - sizes
        block = np.zeros(int(sizes.sum()), np.uint8)
        page.fill_pages(view(block), page_at, rows, starts, first_row, self._cell_offsets)
        page.seal_pages(view(block), page_at, sizes)
        self._file.write(block.data)


def write_dense(path: Path, sorted_pairs: Iterable[tuple[I64, I64]]) -> None:
    """Write the dense index from chunks of (words, pages) in word order."""
    with path.open("wb") as file:
        for words, pages in sorted_pairs:
            file.write(np.stack([words, pages], axis=1).tobytes())


def _join(chunks: list[I64]) -> I64:
    return np.concatenate(chunks) if chunks else np.zeros(0, np.int64)
