"""TPC-H: customer as the master, orders as the stream. Real strings and dates, and by itself no skew at all.

A third of the customers (those whose key divides by three) have no orders; their share goes to the next key, so a key one
above a multiple of three is asked for twice as often as one below. Beyond that all are equal, which makes the plain
workload the control without skew; with a `popularity` the customer keys of the orders are drawn anew. The tables come
from the program `tpchgen-cli` (`pip install "semistream[workloads]"`) and are kept in a folder of the caller's.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from semistream.errors import SourceError
from semistream.workloads.blocks import BLOCK_ROWS, master_rows_asked, need_whole, read_blocks, recut
from semistream.workloads.columns import required
from semistream.workloads.keys import Domain
from semistream.workloads.popularity import Popularity

_CUSTOMERS_AT_SF1, _ORDERS_PER_CUSTOMER = 150_000, 10

CUSTOMER = pa.schema(
    [
        required("c_custkey", pa.int64()),
        required("c_name", pa.string()),
        required("c_address", pa.string()),
        required("c_nationkey", pa.int64()),
        required("c_phone", pa.string()),
        required("c_acctbal", pa.decimal128(15, 2)),
        required("c_mktsegment", pa.string()),
        required("c_comment", pa.string()),
    ]
)
ORDERS = pa.schema(
    [
        required("o_orderkey", pa.int64()),
        required("o_custkey", pa.int64()),
        required("o_orderstatus", pa.string()),
        required("o_totalprice", pa.decimal128(15, 2)),
        required("o_orderdate", pa.date32()),
        required("o_orderpriority", pa.string()),
        required("o_clerk", pa.string()),
        required("o_shippriority", pa.int32()),
        required("o_comment", pa.string()),
    ]
)


@dataclass(frozen=True)
class Tpch:
    """Customers and their orders, ten per customer. Scale factor 1 is 150,000 master rows; [Q] and [B] use 15 million.

    The tables are TPC-H's own, so the seed chooses only the remapped customer keys; without `popularity` it changes
    nothing.
    """

    folder: str | Path
    master_rows: int = 150_000
    popularity: Popularity | None = None

    on: ClassVar[dict[str, str]] = {"o_custkey": "c_custkey"}
    master_schema: ClassVar[pa.Schema] = CUSTOMER
    stream_schema: ClassVar[pa.Schema] = ORDERS

    def __post_init__(self) -> None:
        need_whole("master_rows", self.master_rows, 1, 15_000_000_000)

    def master(
        self,
        rows: int | None = None,
        seed: int = 0,
        batch_rows: int = BLOCK_ROWS,
    ) -> pa.RecordBatchReader:
        """The customers by key, or the first `rows` of them."""
        rows = master_rows_asked(rows, self.master_rows)
        table = _read(tpch_files(self.folder, self.master_rows)[0], CUSTOMER, rows)
        return read_blocks(CUSTOMER, rows, batch_rows, lambda _: next(table))

    def stream(self, rows: int, batch_rows: int = BLOCK_ROWS, seed: int = 0) -> pa.RecordBatchReader:
        """The first `rows` orders; there are ten times as many orders as customers, and no more."""
        need_whole("rows of the stream (10 x master_rows)", rows, 0, _ORDERS_PER_CUSTOMER * self.master_rows)
        table = _read(tpch_files(self.folder, self.master_rows)[1], ORDERS, rows)
        domain, place = Domain(self.master_rows), ORDERS.get_field_index("o_custkey")

        def block(number: int) -> pa.RecordBatch:
            orders = next(table)
            if self.popularity is None:
                return orders
            keys = self.popularity.keys(domain, seed, number)[: orders.num_rows]
            return orders.set_column(place, ORDERS.field(place), pa.array(keys))

        return read_blocks(ORDERS, rows, batch_rows, block)


def tpch_files(folder: str | Path, customers: int) -> tuple[Path, Path]:
    """The Parquet files of customer and orders for that many customers; generated the first time, found again later."""
    kept = Path(folder) / f"tpch-{customers}"
    if not kept.is_dir():
        try:
            kept.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=f".{kept.name}-", dir=kept.parent) as unfinished:
                _generate(customers, Path(unfinished) / "tables")
                (Path(unfinished) / "tables").rename(kept)  # complete or not there at all
        except OSError as cause:
            if not kept.is_dir():  # not because another process was first
                raise SourceError(
                    f"workloads.tpch: cannot keep tables in {folder} ({cause}); name another folder"
                ) from cause
    return kept / "customer.parquet", kept / "orders.parquet"


def _generate(customers: int, folder: Path) -> None:
    program = shutil.which("tpchgen-cli", path=f"{Path(sys.executable).parent}") or shutil.which("tpchgen-cli")
    if program is None:
        raise SourceError(
            "workloads.tpch: needs the program tpchgen-cli, which was not found; "
            'install it with: pip install "semistream[workloads]"'
        )
    scale = f"{customers / _CUSTOMERS_AT_SF1 + 1e-9:.9f}"  # a hair more, because the row count is rounded down
    arguments = [
        "parquet",
        "--scale-factor",
        scale,
        "--tables",
        "customer,orders",
        "--quiet",
        "--output-dir",
        str(folder),
    ]
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SourceError(f"workloads.tpch: {program} failed with code {done.returncode}: {done.stderr.strip()[-500:]}")


def _read(path: Path, schema: pa.Schema, rows: int) -> Iterator[pa.RecordBatch]:
    """The table in blocks; checked to hold the rows asked for before the first is read."""
    try:
        file = pq.ParquetFile(path)
    except (OSError, pa.ArrowInvalid) as cause:
        raise SourceError(
            f"workloads.tpch: {path} cannot be read ({cause}); delete its folder to make it anew"
        ) from cause
    if file.metadata.num_rows < rows:
        found = file.metadata.num_rows
        raise SourceError(f"workloads.tpch: {path} has {found} rows, need {rows}; delete its folder to make it anew")
    return _blocks(file, schema)


def _blocks(file: pq.ParquetFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    with file:
        for batch in recut(file.iter_batches(batch_size=BLOCK_ROWS), BLOCK_ROWS):
            columns = [batch.column(field.name).cast(field.type) for field in schema]
            yield pa.record_batch(columns, schema=schema)
