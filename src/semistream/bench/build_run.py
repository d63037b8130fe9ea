"""How fast a master is built, beside DuckDB sorting the same rows by the same key into Parquet.

Both read the same file and have the same cores and memory.
DuckDB's file is not flushed to the device while a finished master is; that is in our time and not in its.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import semistream as ss
from semistream.bench.checksum import checksum
from semistream.bench.rates import rate


def measure_build(task: dict[str, Any]) -> dict[str, Any]:
    """Build `repeats` times, after once for practice; the checksum is of what the last build holds."""
    build = {"build_master": _build_master, "duckdb_sort_parquet": _sort_parquet}[task["system"]]
    schema = pq.read_schema(task["rows"])
    rows = pq.ParquetFile(task["rows"]).metadata.num_rows
    expected = checksum(pq.ParquetFile(task["rows"]).iter_batches(), schema)
    times = []
    with tempfile.TemporaryDirectory(dir=Path(task["rows"]).parent) as folder:
        build(task["few_rows"], Path(folder, "practice"), task)
        for turn in range(task["repeats"]):
            path = Path(folder, str(turn))
            start = time.perf_counter()
            read_back = build(task["rows"], path, task)
            times.append(time.perf_counter() - start)
            if turn < task["repeats"] - 1:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        found = checksum(read_back(), schema)
        written = sum(file.stat().st_size for file in [path, *path.rglob("*")] if file.is_file())
    measured = rate(times, rows)
    result = {"rows": rows, "rows_per_s": measured.rows_per_s, "ci95": measured.ci95, "bytes_written": written}
    result |= {"checksum": str(found), "memory_budget_bytes": task["memory_bytes"]}
    if found != expected:
        result |= {"rows_per_s": None, "ci95": None, "error": f"wrong rows: checksum {found}, expected {expected}"}
    return result


def _build_master(rows: str, path: Path, task: dict[str, Any]) -> Callable[[], Any]:
    ss.build_master(path, rows, key=task["key"], memory=task["memory_bytes"])
    return lambda: ss.open_master(path).batches()


def _sort_parquet(rows: str, path: Path, task: dict[str, Any]) -> Callable[[], Any]:
    import duckdb

    with duckdb.connect(config={"threads": task["threads"], "memory_limit": f"{task['memory_bytes']}B"}) as connection:
        key = ", ".join(f'"{column}"' for column in task["key"])
        connection.execute(f"COPY (FROM read_parquet('{rows}') ORDER BY {key}) TO '{path}' (FORMAT parquet)")
    return lambda: pq.ParquetFile(path).iter_batches()
