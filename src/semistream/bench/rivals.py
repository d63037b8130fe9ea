"""DuckDB and Polars as a user would make them join a stream of Arrow batches with a table held in memory.

Each offers several ways to do the same: one query per batch, or one query over the whole stream. Which is faster
depends on machine, version and skew, so the harness tries all and takes the best. The table is loaded before the clock
starts. Strings leave as views, which is Arrow too and saves both a copy. Row order is given up where that can be asked
for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

Way = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class DuckDB:
    """An in-memory table and a hash join; `stream` builds the hash table once and pulls the batches through it."""

    def __init__(self, rows_path: str, on: dict[str, str], threads: int) -> None:
        import duckdb

        self.on = on
        self.connection = duckdb.connect(config={"threads": threads, "preserve_insertion_order": False})
        self.connection.execute("SET produce_arrow_string_view = true; SET arrow_output_version = '1.4'")
        self.connection.execute("CREATE TABLE master AS FROM read_parquet(?)", [rows_path])

    def ways(self) -> dict[str, Way]:
        """One query per batch (the planner picks the side to hash), or one query for all with the master hashed."""
        return {"query-per-batch": self._per_batch, "one-query": self._stream}

    def _query(self) -> str:
        matches = " AND ".join(f'stream."{s}" = master."{m}"' for s, m in self.on.items())
        keys = ", ".join(f'"{m}"' for m in self.on.values())
        return f"SELECT stream.*, master.* EXCLUDE ({keys}) FROM stream JOIN master ON {matches}"

    def _per_batch(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self.connection.register("stream", pa.Table.from_batches([batch]))
            yield from self.connection.sql(self._query()).to_arrow_table().to_batches()

    def _stream(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        source = iter(batches)
        first = next(source)

        def all_batches() -> Iterator[pa.RecordBatch]:
            yield first
            yield from source

        self.connection.register("stream", pa.RecordBatchReader.from_batches(first.schema, all_batches()))
        # the size of the stream is unknown to the planner: keep it from hashing the wrong side
        self.connection.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")
        try:
            yield from self.connection.sql(self._query()).to_arrow_reader(first.num_rows)
        finally:
            self.connection.execute("RESET disabled_optimizers")


class Polars:
    """A frame and a hash join; `one-query` runs it in the streaming engine, fed by a Python source."""

    def __init__(self, rows_path: str, on: dict[str, str], threads: int) -> None:
        import polars as pl

        if pl.thread_pool_size() != threads:
            raise RuntimeError(f"polars runs {pl.thread_pool_size()} threads, need {threads}: set POLARS_MAX_THREADS")
        self.on = on
        self.polars = pl
        self.master = pl.read_parquet(rows_path)

    def ways(self) -> dict[str, Way]:
        """One join per batch, or one join for all."""
        return {"query-per-batch": self._per_batch, "one-query": self._stream}

    def _arrow(self, frame: Any) -> list[pa.RecordBatch]:
        table: pa.Table = frame.to_arrow(compat_level=self.polars.CompatLevel.newest())
        return list(table.to_batches())

    def _frame(self, batch: pa.RecordBatch) -> Any:
        return self.polars.from_arrow(batch)

    def _keys(self) -> dict[str, Any]:
        return {"left_on": list(self.on), "right_on": list(self.on.values()), "how": "inner"}

    def _per_batch(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from self._arrow(self._frame(batch).join(self.master, **self._keys()))

    def _stream(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from polars.io.plugins import register_io_source

        source = iter(batches)
        first = self._frame(next(source))

        def frames(columns: list[str] | None, *_: Any) -> Iterator[Any]:
            yield first if columns is None else first.select(columns)
            for batch in source:
                frame = self._frame(batch)
                yield frame if columns is None else frame.select(columns)

        stream = register_io_source(frames, schema=first.schema)
        joined = stream.join(self.master.lazy(), **self._keys())
        for frame in joined.collect_batches(engine="streaming", maintain_order=False, chunk_size=len(first)):
            yield from self._arrow(frame)


RIVALS: dict[str, type[DuckDB | Polars]] = {"duckdb": DuckDB, "polars": Polars}
