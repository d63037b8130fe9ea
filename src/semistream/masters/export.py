"""Rows of a master into one file that others can read: Parquet, Arrow or CSV by the file's ending.

The file appears under its name when it is complete, and a few megabytes of rows are in memory at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from semistream.errors import MasterError, UsageError

_GROUP_BYTES: Final = 32 << 20
ENDINGS: Final = (".parquet", ".pq", ".arrow", ".ipc", ".feather", ".csv")


def write_file(target: Path, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
    """Write all batches to `target`."""
    if target.suffix.lower() not in ENDINGS:
        raise UsageError(f"{target}: need a file that ends in {', '.join(ENDINGS)}")
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with _writer(draft, target.suffix.lower(), schema) as writer:
            for table in _groups(batches):
                writer.write_table(table)
        draft.replace(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as exc:
        raise UsageError(
            f"{target}: this format cannot hold the master's columns ({exc}); export to .arrow instead"
        ) from exc
    except OSError as exc:
        if isinstance(exc, MasterError):
            raise
        raise MasterError(f"{target}: cannot be written: {exc.strerror or exc}") from exc
    finally:
        draft.unlink(missing_ok=True)


def _writer(path: Path, suffix: str, schema: pa.Schema) -> AbstractContextManager[Any]:
    if suffix == ".csv":
        from pyarrow import csv

        return csv.CSVWriter(path, schema)  # type: ignore[no-any-return]
    if suffix in (".parquet", ".pq"):
        from pyarrow import parquet

        return parquet.ParquetWriter(path, schema)  # type: ignore[no-any-return]
    return pa.ipc.new_file(path, schema)  # type: ignore[no-any-return]


def _groups(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches joined until a group is worth a row group of Parquet."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size >= _GROUP_BYTES:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)
