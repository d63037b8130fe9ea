"""Reading all pages of a version from front to back: as Arrow batches, or only to check every byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import xxhash

from semistream.errors import MasterCorrupt
from semistream.keys import KeyCodec
from semistream.masters.manifest import Manifest
from semistream.masters.pages import PageIndex
from semistream.masters.progress import Progress, no_progress
from semistream.masters.sums import file_sum
from semistream.parts import page, rows
from semistream.parts.memory import I64, U8, Memory, view
from semistream.records import RowCodec

BLOCK_BYTES: Final = 4 << 20
_CURE: Final = "restore the file, or build the master again"


def _blocks(path: Path, page_at: I64) -> Iterator[tuple[int, I64, U8]]:
    """(first page, where its pages begin in the block, block) for every few megabytes of pages."""
    first, pages = 0, page_at.size - 1
    with path.open("rb") as file:
        while first < pages:
            reach = int(np.searchsorted(page_at, page_at[first] + BLOCK_BYTES, "right")) - 1
            stop = min(pages, max(first + 1, reach))
            block = np.empty(int(page_at[stop] - page_at[first]), np.uint8)
            if file.readinto(block.data) < block.size:
                raise MasterCorrupt(f"{path}: ends before its last page; {_CURE}")
            yield first, page_at[first : stop + 1] - page_at[first], block
            first = stop


def _check_pages(path: Path, first: int, at: int, starts: I64, block: U8) -> None:
    """Check pages from number `first` on; the first lies at byte `at` of the file."""
    damaged = page.first_damaged_page(view(block), starts[:-1], np.diff(starts))
    if damaged >= 0:
        raise MasterCorrupt(
            f"{path}: page {first + damaged} (byte {at + int(starts[damaged])}) does not have the checksum it was written with; {_CURE}"
        )


def batches(version: Path, keys: KeyCodec, codec: RowCodec, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """All rows of a version, in the order they lie on disk; every page is checked before it is used."""
    path = version / "pages.bin"
    index = PageIndex.load(version / "index.bin")
    for first, starts, block in _blocks(path, index.page_at):
        _check_pages(path, first, int(index.page_at[first]), starts, block)
        yield to_batch(view(block), starts[:-1], keys, codec, schema)


def to_batch(memory: Memory, page_at: I64, keys: KeyCodec, codec: RowCodec, schema: pa.Schema) -> pa.RecordBatch:
    """The rows of pages that lie at these bytes of memory."""
    count = page.count_rows(memory.b4, page_at)
    row_at, heap_at, words = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    page.row_places(memory, page_at, codec.width, row_at, heap_at, words)
    stored = [name for name in schema.names if name != keys.in_words]
    arrays = dict(zip(stored, codec.unpack(memory, row_at, heap_at, stored), strict=True))
    if keys.in_words is not None:
        column, valid = codec.by_name[keys.in_words], np.ones(count, np.uint8)
        rows.gather_valid(memory.b1, row_at, column.null_at, column.null_bit, valid, 0)
        arrays[keys.in_words] = keys.from_words(words, 1 - valid)
    return pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)


def verify(version: Path, manifest: Manifest, progress: Progress | None = None) -> None:
    """Read every byte of the version; MasterCorrupt names the first file, page and byte that is not what was written."""
    total, done = sum(int(known["bytes"]) for known in manifest.files.values()), 0
    said = progress or no_progress
    for name, known in sorted(manifest.files.items()):
        path = version / name
        if not path.is_file():
            raise MasterCorrupt(f"{path}: is missing; {_CURE}")
        if path.stat().st_size != known["bytes"]:
            raise MasterCorrupt(f"{path}: has {path.stat().st_size} bytes, {known['bytes']} were written; {_CURE}")
        if name == "pages.bin":
            found = _sum_pages(path, manifest, lambda size, done=done: said(done + size, total, "checking"))  # type: ignore[misc]
        else:
            found = file_sum(path)["xxh3"]
        if found != known["xxh3"]:
            raise MasterCorrupt(f"{path}: does not have the checksum it was written with; {_CURE}")
        done += int(known["bytes"])
        said(done, total, "checking")


def _sum_pages(path: Path, manifest: Manifest, seen: Callable[[int], None]) -> str:
    """Check page by page; the sum of the whole file also covers the order of pages."""
    index = PageIndex.load(path.with_name("index.bin"))
    if index.pages != manifest.pages:
        raise MasterCorrupt(
            f"{path.with_name('index.bin')}: has {index.pages} pages, the manifest {manifest.pages}; {_CURE}"
        )
    digest, count = xxhash.xxh3_64(), 0
    for first, starts, block in _blocks(path, index.page_at):
        _check_pages(path, first, int(index.page_at[first]), starts, block)
        digest.update(block.data)
        count += page.count_rows(view(block).b4, starts[:-1])
        seen(int(index.page_at[first] + starts[-1]))
    if count != manifest.rows:
        raise MasterCorrupt(f"{path}: has {count} rows, the manifest {manifest.rows}; {_CURE}")
    return digest.hexdigest()
