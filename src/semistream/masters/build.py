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

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from semistream import __version__
from semistream.masters.ahead import ahead
from semistream.masters.build_plan import Plan, plan_build
from semistream.masters.file_master import FileMaster
from semistream.masters.folder import new_version, seal
from semistream.masters.manifest import Manifest
from semistream.masters.pages import PageWriter, encode_rows, write_dense
from semistream.masters.progress import Progress, no_progress
from semistream.masters.row_sort import F64, RowSorter, numbered
from semistream.masters.sources import open_source
from semistream.masters.sums import SummedFile
from semistream.masters.word_counts import WordCounts
from semistream.parts import page
from semistream.parts.memory import I64
from semistream.parts.page import Rows

PAGE_BYTES: Final = 8192
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
    plan = plan_build(path, open_source(source), key, layout, frequency, page_bytes, memory, progress or no_progress)
    with new_version(plan.folder) as draft:
        _write_version(plan, draft, watermark)
    return FileMaster(plan.folder)


def _write_version(plan: Plan, draft: Path, watermark: str | None) -> None:
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
            sorter = stack.enter_context(
                closing(RowSorter(draft / "sort", share, plan.codec.width, has_heap=bool(plan.codec.cells)))
            )
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

    def __init__(self, plan: Plan) -> None:
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
    plan: Plan, tally: _Tally, rows: Iterator[Rows], out: SummedFile, dense: RowSorter | None, counts: WordCounts
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
