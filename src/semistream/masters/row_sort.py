"""Packed rows in order: in memory while they fit, out of core by DuckDB when they do not.

Rows are copied into one arena, taken once, so that a million small arrays never exist side by side. When the arena is full it is
emptied into DuckDB, and from then on it is only the buffer before it. Either way rows of one word come out as they went in.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from semistream import columns
from semistream.budget import Slab
from semistream.masters.duck_sort import DuckSort
from semistream.masters.pages import take_rows
from semistream.parts.memory import I64, U8
from semistream.parts.page import Rows

F64: TypeAlias = NDArray[np.float64]

OUT_BYTES: Final = 4 << 20  # of rows that leave together
_ROW_OVERHEAD: Final = 40  # word, rank, end, and its place in the order


class RowSorter:
    """Rows by word, or, when they are given ranks, by rank first."""

    def __init__(self, folder: Path, memory_bytes: int, width: int, *, has_heap: bool) -> None:
        self._folder, self._width = folder, width
        self._room = int(memory_bytes * 0.45)
        self._duck_bytes = memory_bytes - self._room
        slab = Slab((2 if has_heap else 1) * self._room + 128)  # pages of it that are never used cost nothing
        self._fixed: U8 = slab.take("fixed parts", self._room, np.uint8)
        self._heap: U8 = slab.take("heap", self._room if has_heap else 0, np.uint8)
        self._duck: DuckSort | None = None
        self._ranked = False
        self._seen = 0
        self._empty()

    def _empty(self) -> None:
        self._words: list[I64] = []
        self._ranks: list[F64] = []
        self._ends: list[I64] = [np.zeros(1, np.int64)]
        self._rows = self._heap_bytes = 0

    def add(self, rows: Rows, ranks: F64 | None = None) -> None:
        """Take in a chunk; every chunk has ranks or none has."""
        self._ranked = ranks is not None
        need = (self._rows + rows.words.size) * (self._width + _ROW_OVERHEAD) + self._heap_bytes + int(rows.ends[-1])
        if need > self._room:
            self._flush()
        if rows.words.size * (self._width + _ROW_OVERHEAD) + int(rows.ends[-1]) > self._room:
            self._spill(rows, ranks)
            return
        at = self._rows * self._width
        self._fixed[at : at + rows.fixed.size] = rows.fixed
        self._heap[self._heap_bytes : self._heap_bytes + int(rows.ends[-1])] = rows.heap[: int(rows.ends[-1])]
        self._words.append(rows.words)
        self._ends.append(rows.ends[1:] + self._heap_bytes)
        if ranks is not None:
            self._ranks.append(ranks)
        self._rows += rows.words.size
        self._heap_bytes += int(rows.ends[-1])

    def _held(self) -> tuple[Rows, F64 | None]:
        words = np.concatenate([np.zeros(0, np.int64), *self._words])
        fixed, heap = self._fixed[: self._rows * self._width], self._heap[: self._heap_bytes]
        rows = Rows(words, fixed, self._width, heap, np.concatenate(self._ends))
        return rows, np.concatenate(self._ranks) if self._ranks else None

    def _flush(self) -> None:
        if self._rows:
            self._spill(*self._held())
            self._empty()

    def _spill(self, rows: Rows, ranks: F64 | None) -> None:
        if self._duck is None:
            self._folder.mkdir(exist_ok=True)
            self._duck = DuckSort(self._folder, self._duck_bytes)
        self._duck.add(_to_table(rows, ranks, self._seen))
        self._seen += rows.words.size

    def ordered(self) -> Iterator[Rows]:
        """All rows, in order, some megabytes at a time; ends the sorter."""
        try:
            if self._duck is None:
                yield from _in_order(*self._held())
            else:
                self._flush()
                batch_rows = max(1, min(1 << 16, OUT_BYTES // (self._width + 8)))
                by = (["rank"] if self._ranked else []) + ["word", "seen"]
                for batch in self._duck.ordered(by, batch_rows):
                    yield _from_batch(batch, self._width)
        finally:
            self.close()

    def close(self) -> None:
        """Let go of memory and disk."""
        self._fixed = self._heap = columns.NO_BYTES
        self._empty()
        if self._duck is not None:
            self._duck.close()
            self._duck = None


def _in_order(rows: Rows, ranks: F64 | None) -> Iterator[Rows]:
    order = stable_order(rows.words) if ranks is None else np.lexsort((rows.words, ranks))
    average = (rows.fixed.size + int(rows.ends[-1])) // max(1, rows.words.size) + 8
    step = max(1, OUT_BYTES // average)
    for first in range(0, order.size, step):
        yield take_rows(rows, order[first : first + step])


def stable_order(words: I64) -> I64:
    """As argsort(kind="stable"), several times faster: only words that occur more than once need the slow part."""
    order = np.argsort(words)
    ordered = words[order]
    same = ordered[1:] == ordered[:-1]
    if same.any():
        tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
        places = order[tied]
        order[tied] = places[np.lexsort((places, ordered[tied]))]
    return order


def _to_table(rows: Rows, ranks: F64 | None, seen: int) -> pa.Table:
    """Columns that share the rows' memory."""
    count = rows.words.size
    parts = {
        "word": pa.array(rows.words),
        "seen": pa.array(np.arange(seen, seen + count)),
        "fixed": _blobs(np.arange(count + 1, dtype=np.int64) * rows.width, rows.fixed),
        "heap": _blobs(rows.ends, rows.heap),
    }
    if ranks is not None:
        parts["rank"] = pa.array(ranks)
    return pa.table(parts)


def _blobs(ends: I64, data: U8) -> pa.Array:
    return pa.Array.from_buffers(pa.large_binary(), ends.size - 1, [None, pa.py_buffer(ends), pa.py_buffer(data)])


def _from_batch(batch: pa.RecordBatch, width: int) -> Rows:
    words = np.asarray(batch.column("word")).astype(np.int64)
    fixed, heap = columns.to_plain(batch.column("fixed")), columns.to_plain(batch.column("heap"))
    first, last = int(heap.starts[0]), int(heap.starts[-1])
    start = int(fixed.starts[0])
    return Rows(
        words, fixed.data[start : start + words.size * width], width, heap.data[first:last], heap.starts - first
    )


def numbered(words: I64, first: int) -> Rows:
    """Rows that hold nothing but their own number: sorting them gives the dense index."""
    numbers = np.arange(first, first + words.size, dtype=np.int64)
    return Rows(words, numbers.view(np.uint8), 8, columns.NO_BYTES[:0], np.zeros(words.size + 1, np.int64))
