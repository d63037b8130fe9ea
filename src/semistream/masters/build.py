"""Building a master: source -> packed rows -> wanted order -> pages, indexes and manifest in a new version.

    layout      rows stand                                        to find a key
    key         by key word                                       sparse index: the first word of every page, in memory
    heap        as the source gives them                          dense index on disk: word and page of every row, by word
    frequency   the most asked for first, so that few pages       dense index
                answer most of a skewed stream

Reading and packing run ahead of sorting, sorting ahead of writing, each in its own thread. The sort takes `memory`; what does not fit is
sorted by DuckDB in the version's temporary folder. Nothing of an unfinished build is ever visible (folder.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from semistream import __version__
from semistream.errors import BudgetError, ColumnError, UsageError
from semistream.keys import KeyCodec
from semistream.masters.ahead import ahead
from semistream.masters.duck_sort import LEAST_BYTES
from semistream.masters.file_master import FileMaster
from semistream.masters.folder import new_version, seal
from semistream.masters.frequency import Ranker, ranker
from semistream.masters.manifest import Manifest
from semistream.masters.pages import PageWriter, encode_rows, stored_codec, write_dense
from semistream.masters.row_sort import F64, RowSorter, numbered
from semistream.masters.sources import Source, open_source
from semistream.masters.sums import SummedFile
from semistream.masters.word_counts import WordCounts
from semistream.parts import page
from semistream.parts.memory import I64
from semistream.parts.page import Rows
from semistream.records import RowCodec
from semistream.units import format_bytes, parse_bytes

Progress: TypeAlias = Callable[[int, int | None, str], None]

LAYOUTS: Final = ("key", "heap", "frequency")
PAGE_BYTES: Final = 8192
LEAST_MEMORY: Final = LEAST_BYTES * 3 // 2
_PAGE_ROWS: Final = 16  # a page of wide rows is made larger until it holds as many


def build_master(
    path: str | PathLike[str],
    source: Any,
    key: str | Sequence[str],
    layout: str = "key",
    frequency: Any = None,
    page_bytes: int | None = None,
    memory: int | str = "1GB",
    progress: Progress | None = None,
    watermark: str | None = None,
) -> FileMaster:
    """Write `source` as a new version of the master at `path`, make it the current one, and open it.

    `progress` is called with rows done, rows in total if known, and what is being done. `watermark` is noted in the manifest: how far
    the source had come, in the source's own words.
    """
    plan = _plan(path, open_source(source), key, layout, frequency, page_bytes, memory, progress or _no_progress)
    with new_version(plan.folder) as draft:
        _write_version(plan, draft, watermark)
    return FileMaster(plan.folder)


@dataclass(frozen=True)
class _Plan:
    """Everything that is known, and checked, before the first byte is written."""

    folder: Path
    source: Source
    keys: KeyCodec
    codec: RowCodec
    layout: str
    rank: Ranker | None
    page_bytes: int | None
    memory_bytes: int
    progress: Progress


def _plan(
    path: str | PathLike[str],
    source: Source,
    key: str | Sequence[str],
    layout: str,
    frequency: Any,
    page_bytes: int | None,
    memory: int | str,
    progress: Progress,
) -> _Plan:
    if "://" in str(path):
        raise UsageError(f"{path}: masters are built in a folder; give a path")
    names = [key] if isinstance(key, str) else list(key)
    _check_columns(source, names)
    if layout not in LAYOUTS:
        raise UsageError(f"layout={layout!r}: need one of {', '.join(LAYOUTS)}")
    if (frequency is not None) != (layout == "frequency"):
        raise UsageError(f"layout={layout!r} with frequency={frequency!r:.40}: give frequency= with layout='frequency' and only then")
    if page_bytes is not None and (page_bytes < page.ALIGNMENT or page_bytes % page.ALIGNMENT or page_bytes > 1 << 24):
        raise UsageError(f"page_bytes={page_bytes}: need a multiple of {page.ALIGNMENT}, at most 16 MB")
    memory_bytes = parse_bytes(memory)
    if memory_bytes < LEAST_MEMORY:
        raise BudgetError(
            f"memory={memory!r}: sorting a master needs at least {LEAST_MEMORY} bytes ({format_bytes(LEAST_MEMORY)})",
            part="sort",
            needed_bytes=LEAST_MEMORY,
            smallest_bytes=LEAST_MEMORY,
        )
    keys = KeyCodec([source.schema.field(name) for name in names])
    rank = None if frequency is None else ranker(frequency, source.schema, keys, memory_bytes // 4)
    codec = stored_codec(source.schema, keys)
    return _Plan(Path(path), source, keys, codec, layout, rank, page_bytes, memory_bytes, progress)


def _check_columns(source: Source, key: list[str]) -> None:
    names = source.schema.names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ColumnError(f"{source.name}: has more than one column {twice[0]!r}; rename one")
    missing = [name for name in key if name not in names]
    if missing or not key:
        raise ColumnError(f"{source.name}: key={key}: there is no column {(missing or [''])[0]!r}; it has {', '.join(names)}")
    if len(set(key)) < len(key):
        raise ColumnError(f"key={key}: names a column twice")


def _write_version(plan: _Plan, draft: Path, watermark: str | None) -> None:
    """Write all files of the version; the manifest comes last."""
    tally, counts = _Tally(plan), WordCounts()
    with ExitStack() as stack, (draft / "pages.bin").open("wb") as file:
        share = plan.memory_bytes // (2 if plan.layout == "frequency" else 1)
        dense = None
        if plan.layout != "key":
            dense = stack.enter_context(closing(RowSorter(draft / "sort-index", share, 8, has_heap=False)))
        if plan.layout == "heap":
            rows: Iterator[Rows] = (packed for packed, _ in tally.packed())
        else:
            sorter = stack.enter_context(closing(RowSorter(draft / "sort", share, plan.codec.width, has_heap=bool(plan.codec.cells))))
            rows = _sort(tally, sorter)
        out = SummedFile(file)
        page_bytes, writer = _write_pages(plan, tally, rows, out, dense, counts)
        index = writer.finish()
        index.save(draft / "index.bin")
        if dense is not None:
            write_dense(draft / "dense.bin", _word_pages(dense, writer.page_rows, counts))
    manifest = Manifest(
        schema=plan.source.schema,
        key=tuple(field.name for field in plan.keys.fields),
        layout=plan.layout,
        page_bytes=page_bytes,
        rows=tally.rows,
        pages=index.pages,
        key_mode="exact" if plan.keys.exact else "hash",
        distinct_words=counts.distinct,
        max_multiplicity=counts.longest,
        null_key_rows=tally.null_keys,
        row_bytes=plan.codec.width,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        source=plan.source.name,
        watermark=watermark,
        semistream_version=__version__,
        details={"heap_bytes": tally.heap_bytes, "largest_page_bytes": int(np.diff(index.page_at).max(initial=0))},
    )
    seal(draft, manifest, {"pages.bin": out.sum()})


class _Tally:
    """Packs the source's batches and counts what the manifest will say about them."""

    def __init__(self, plan: _Plan) -> None:
        self._plan = plan
        self.rows = self.null_keys = self.heap_bytes = 0

    def packed(self) -> Iterator[tuple[Rows, F64 | None]]:
        """Rows as the source gives them, with their ranks."""
        for rows, ranks, null_keys in ahead(map(self._pack, self._plan.source.batches())):
            self.rows += rows.words.size
            self.null_keys += null_keys
            self.heap_bytes += int(rows.ends[-1])
            self._plan.progress(self.rows, self._plan.source.rows, "reading")
            yield rows, ranks

    def _pack(self, batch: pa.RecordBatch) -> tuple[Rows, F64 | None, int]:
        plan = self._plan
        rows = encode_rows(batch, plan.keys, plan.codec)
        ranks = None if plan.rank is None else plan.rank(batch, rows.words)
        keys = [batch.column(field.name) for field in plan.keys.fields]
        missing = np.zeros(batch.num_rows, np.bool_)
        for key in keys:
            missing |= np.asarray(key.is_null())
        return rows, ranks, int(missing.sum())


def _sort(tally: _Tally, sorter: RowSorter) -> Iterator[Rows]:
    """Read everything now, in this thread (so that it can be interrupted); the order is worked out as it is asked for."""
    for rows, ranks in tally.packed():
        sorter.add(rows, ranks)
    return sorter.ordered()


def _write_pages(
    plan: _Plan, tally: _Tally, rows: Iterator[Rows], out: SummedFile, dense: RowSorter | None, counts: WordCounts
) -> tuple[int, PageWriter]:
    writer, page_bytes, written = None, plan.page_bytes or PAGE_BYTES, 0
    for chunk in ahead(rows):
        if writer is None:
            page_bytes = plan.page_bytes or _fitting_page_bytes(chunk)
            writer = PageWriter(out, plan.codec, page_bytes)
        writer.append(chunk)
        if dense is None:
            counts.add(chunk.words)
        else:
            dense.add(numbered(chunk.words, written))
        written += chunk.words.size
        plan.progress(written, plan.source.rows if plan.layout == "heap" else tally.rows, "writing")
    return page_bytes, writer or PageWriter(out, plan.codec, page_bytes)


def _fitting_page_bytes(rows: Rows) -> int:
    """Pages large enough for several rows of the size that the first rows have."""
    row_bytes = rows.width + 8 + int(rows.ends[-1]) // max(1, rows.words.size)
    return max(PAGE_BYTES, -(-_PAGE_ROWS * row_bytes // page.ALIGNMENT) * page.ALIGNMENT)


def _word_pages(dense: RowSorter, page_rows: list[I64], counts: WordCounts) -> Iterator[tuple[I64, I64]]:
    """Words in order, each with the page of its row."""
    first_rows = np.cumsum(np.concatenate([np.zeros(1, np.int64), *page_rows]))
    for chunk in dense.ordered():
        counts.add(chunk.words)
        numbers = chunk.fixed.view(np.int64)
        yield chunk.words, first_rows.searchsorted(numbers, "right") - 1


def _no_progress(done: int, total: int | None, doing: str) -> None:
    """When nobody watches."""
