"""An out-of-core sort of Arrow rows, done by DuckDB: rows go in as tables and come out in order, in memory that has a limit.

DuckDB keeps to its limit by writing sorted runs into a folder. Its own bookkeeping comes on top (some tens of MB), and below
`LEAST_BYTES` its sort gives up, hence that minimum.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow as pa

from semistream.errors import BuildFailed
from semistream.units import format_bytes

LEAST_BYTES: Final = 64 << 20
_THREAD_BYTES: Final = 128 << 20  # with less memory a thread its sort runs out of it


class DuckSort:
    """Collects tables of one schema; `ordered` gives all rows back, sorted."""

    def __init__(self, folder: Path, memory_bytes: int) -> None:
        import duckdb

        self._folder = folder
        self._memory_bytes = max(memory_bytes, LEAST_BYTES)
        settings: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": f"{self._memory_bytes >> 10}KiB",
            "threads": max(1, min(os.cpu_count() or 1, self._memory_bytes // _THREAD_BYTES)),
            "temp_directory": str(folder),
            "preserve_insertion_order": False,
            "arrow_large_buffer_size": True,
        }
        self._link = duckdb.connect(config=settings)
        self._link.execute("SET enable_progress_bar = false")  # it would be printed to standard output
        self._started = False

    def add(self, table: pa.Table) -> None:
        """Take in rows; the first table tells the columns."""
        with self._explained():
            self._link.register("arrived", table)
            into = "INSERT INTO sorted_rows SELECT" if self._started else "CREATE TABLE sorted_rows AS SELECT"
            self._link.execute(f"{into} * FROM arrived")
            self._link.unregister("arrived")
            self._started = True

    def ordered(self, by: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """All rows, ordered by these columns."""
        with self._explained():
            relation = self._link.sql(f"SELECT * FROM sorted_rows ORDER BY {', '.join(by)}")
            read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader  # its older name
            yield from read(batch_rows)

    def close(self) -> None:
        """Remove everything that was spilled."""
        self._link.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        import duckdb

        try:
            yield
        except (duckdb.Error, pa.ArrowException) as exc:
            raise BuildFailed(
                f"sorting in {format_bytes(self._memory_bytes)} of memory and in {self._folder} failed: {str(exc).splitlines()[0]}; "
                "free disk space there or give more memory="
            ) from exc
