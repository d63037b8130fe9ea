"""Where master rows come from: every kind of source behind one shape, a schema and batches of bounded size.

    open_source(anything) -> Source(schema, rows if known, name) ; source.batches() -> RecordBatch, RecordBatch, ...

A source is read once, front to back, and never holds more than a few batches in memory. Frames are recognised without importing their
library: whatever speaks the Arrow C stream protocol (Polars, DuckDB, many others) is read through it. Every failure of a source, also
half way, is a SourceError that names the source, says how far it came, and why it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from os import PathLike
from typing import Any, Final

import pyarrow as pa

from semistream.errors import SemistreamError, SourceError

BATCH_ROWS: Final = 65_536
BATCH_BYTES: Final = 8 << 20


@dataclass(frozen=True)
class Source:
    """Rows waiting to be read: what they look like, how many there are if that is known, and a way to start reading."""

    name: str
    schema: pa.Schema
    rows: int | None
    _start: Callable[[], Iterable[pa.RecordBatch]] = field(repr=False)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, in the source's order, at most `BATCH_ROWS` and about `BATCH_BYTES` at a time.

        >>> [batch.num_rows for batch in open_source(pa.table({"id": range(70_000)})).batches()]
        [65536, 4464]
        """
        seen = 0
        try:
            for batch in self._start():
                for piece in _pieces(batch):
                    yield _checked(piece, self.schema, self.name)
                    seen += piece.num_rows
        except SemistreamError:
            raise
        except Exception as exc:
            raise SourceError(f"{self.name}: stopped reading after {seen} rows: {_text(exc)}") from exc


def open_source(source: Any) -> Source:
    """Recognise `source` and read its schema: an Arrow table, batch, reader or dataset, a path or folder of Parquet, CSV or Arrow files,
    a pandas or Polars frame, anything with an Arrow C stream, an iterable of batches, or `sqlite:///file.db?table=t`.
    """
    name = _name(source)
    try:
        return _recognise(source, name)
    except SemistreamError:
        raise
    except Exception as exc:
        raise SourceError(f"{name}: cannot be read: {_text(exc)}") from exc


def _recognise(source: Any, name: str) -> Source:
    if isinstance(source, str | PathLike):
        return _from_path(str(source))
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.Table):
        return make_source(name, source.schema, source.num_rows, lambda: source.to_batches(max_chunksize=BATCH_ROWS))
    if isinstance(source, pa.RecordBatchReader):
        return make_source(name, source.schema, None, lambda: source)
    module = type(source).__module__.partition(".")[0]
    if module == "pandas":
        return _from_pandas(source, name)
    if module == "pyarrow" and hasattr(source, "to_batches"):  # a dataset, or a scanner of one
        return _from_dataset(source, name)
    if module == "polars" and hasattr(source, "collect_batches"):
        source = source.collect_batches(chunk_size=BATCH_ROWS, maintain_order=True)
    if hasattr(source, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(source)
        return make_source(name, reader.schema, getattr(source, "height", None), lambda: reader)
    if isinstance(source, Iterable) and not isinstance(source, dict | bytes | bytearray):
        return _from_iterable(source, name)
    raise SourceError(
        f"{name}: not a source of rows; give an Arrow table, reader or dataset, a Parquet, CSV or Arrow path, a pandas or Polars "
        "frame, an iterator of record batches, or sqlite:///file.db?table=name"
    )


def make_source(
    name: str, schema: pa.Schema, rows: int | None, start: Callable[[], Iterable[pa.RecordBatch]]
) -> Source:
    """A source of rows with these columns; what a frame library noted beside the columns does not travel."""
    return Source(name, schema.remove_metadata(), rows, start)


def _from_path(text: str) -> Source:
    if text.startswith("sqlite:"):
        from semistream.masters.sqlite_rows import sqlite_source

        return sqlite_source(text)
    from semistream.masters.source_files import file_source

    return file_source(text)


def _from_pandas(frame: Any, name: str) -> Source:
    """Slice by slice, so that the whole frame is never held twice; the index is not a column."""
    frame = frame.to_frame() if not hasattr(frame, "columns") else frame
    schema = pa.Schema.from_pandas(frame, preserve_index=False)

    def slices() -> Iterator[pa.RecordBatch]:
        for start in range(0, len(frame), BATCH_ROWS):
            yield pa.RecordBatch.from_pandas(
                frame.iloc[start : start + BATCH_ROWS], schema=schema, preserve_index=False
            )

    return make_source(name, schema, len(frame), slices)


def _from_dataset(dataset: Any, name: str) -> Source:
    schema = getattr(dataset, "projected_schema", None) or dataset.schema
    if not hasattr(dataset, "scanner"):
        return make_source(name, schema, None, dataset.to_batches)

    def scan() -> Iterator[pa.RecordBatch]:
        scanner = dataset.scanner(batch_size=BATCH_ROWS, batch_readahead=2, fragment_readahead=1)
        return iter(scanner.to_batches())

    return make_source(name, schema, None, scan)


def _from_iterable(source: Iterable[Any], name: str) -> Source:
    """The first batch tells the schema, all others must have it too."""
    batches = (batch for item in source for batch in _item_batches(item, name))
    first = next(batches, None)
    if first is None:
        raise SourceError(
            f"{name}: gave no batch, so its columns are unknown; give an empty pyarrow table with the columns instead"
        )
    return make_source(name, first.schema, None, lambda: chain([first], batches))


def _item_batches(item: Any, name: str) -> Iterable[pa.RecordBatch]:
    if isinstance(item, pa.RecordBatch):
        return [item]
    if hasattr(item, "__arrow_c_stream__"):
        table = pa.table(item)
        return table.to_batches(max_chunksize=BATCH_ROWS) or [pa.RecordBatch.from_pylist([], schema=table.schema)]
    raise SourceError(f"{name}: every item must be a pyarrow RecordBatch or table, got {type(item).__name__}")


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    per_row = max(1, batch.nbytes // max(1, batch.num_rows))
    rows = max(1, min(BATCH_ROWS, BATCH_BYTES // per_row))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _checked(batch: pa.RecordBatch, schema: pa.Schema, name: str) -> pa.RecordBatch:
    """`batch`, if its columns are the announced ones."""
    if batch.schema.names != schema.names:
        raise SourceError(f"{name}: a batch has columns {batch.schema.names}, the first one had {schema.names}")
    for came, wanted in zip(batch.schema, schema, strict=True):
        if came.type != wanted.type:
            raise SourceError(
                f"{name}: column {wanted.name} is {came.type} in one batch and {wanted.type} in the first one"
            )
    for column, wanted in zip(batch.columns, schema, strict=True):
        if not wanted.nullable and column.null_count:
            raise SourceError(
                f"{name}: column {wanted.name} is declared never to be null, and {column.null_count} values are"
            )
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def _name(source: Any) -> str:
    return (
        str(source)
        if isinstance(source, str | PathLike)
        else f"source ({type(source).__module__}.{type(source).__name__})"
    )


def _text(exc: Exception) -> str:
    return f"{exc}" if isinstance(exc, OSError | ValueError) and str(exc) else f"{type(exc).__name__}: {exc}"
