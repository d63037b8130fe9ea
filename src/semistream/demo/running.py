"""`run_demo`: make the tables, start the stream, wait for the last order, prove the result, say what happened."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from rich.console import Console

from semistream.demo.arriving import Inbox, shop
from semistream.demo.pipeline import JOINED
from semistream.demo.proof import compare
from semistream.demo.result import DemoResult
from semistream.demo.screen import Screen
from semistream.demo.session import CORES, demo_session
from semistream.demo.streaming import run_stream
from semistream.demo.summary import print_summary
from semistream.errors import UsageError
from semistream.join import Join
from semistream.masters.build import build_master
from semistream.masters.file_master import open_master
from semistream.workloads import Retail
from semistream.workloads.retail import PIECES

MEMORY = "64MB"


def run_demo(
    folder: str | Path | None = None,
    rows: int = 1_000_000,
    seed: int = 7,
    progress: bool | None = None,
    *,
    products: int = 1_000_000,
    spark: SparkSession | None = None,
    console: Console | None = None,
) -> DemoResult:
    """Run the demo in `folder` (None: a new temporary one, which stays) and compare its warehouse with the raw files.

    `rows` orders ask for `products` products; both are made from `seed`. `progress` says whether to draw moving bars;
    None means on a terminal only. A Spark session that is given, or runs already, is used and left running; otherwise
    one is started and stopped. Text goes to `console`, standard output if None.
    """
    if rows < 1 or products < 1:
        raise UsageError(f"demo: need at least one order and one product, got rows={rows}, products={products}")
    console = console or Console(highlight=False)
    screen, home, tables = Screen(console, progress), _home(folder), shop(rows, products)
    console.print(f"{rows:,} orders ask for {products:,} products; the join may use {MEMORY}; files in {home}\n")
    with ExitStack() as until_the_end:
        with screen.stage(f"products   {products:,} rows, as a Parquet file"):
            _write_products(tables, seed, home / "products.parquet")
        with screen.stage("master     the same rows as sorted pages with an index"):
            build_master(home / "products.master", home / "products.parquet", key="product_id")
        with screen.stage("kernels    compiled for this machine, once, by a first join"):
            _first_join(home / "products.master", tables, seed)
        with screen.stage(f"Spark      Structured Streaming on {CORES} cores"):
            session = until_the_end.enter_context(demo_session(spark, home / "spark.log"))
        with screen.stage("stream     orders arrive in bursts, are cleaned, enriched and stored"):
            run = run_stream(session, home, Inbox(home / "inbox", tables, rows, seed), MEMORY, screen)
        with screen.stage("proof      both tables once more, from the raw files, by DuckDB"):
            proof = compare(home / "inbox", home / "products.parquet", home / "warehouse", PIECES, home / "scratch")
    result = DemoResult(home, proof, run)
    print_summary(console, result)
    return result


def _home(folder: str | Path | None) -> Path:
    """A folder to work in: new or empty, so that nothing of anybody's is overwritten."""
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="semistream-demo-"))
    home = Path(folder).absolute()
    if home.exists() and (not home.is_dir() or any(home.iterdir())):
        raise UsageError(
            f"demo folder {home}: need a new or an empty folder, this one is not; remove it or give another"
        )
    home.mkdir(parents=True, exist_ok=True)
    return home


def _first_join(path: Path, tables: Retail, seed: int) -> None:
    """Join a few orders here, so that the workers of Spark find the kernels compiled."""
    join = Join(open_master(path), on="product_id", memory=MEMORY, how="left", columns=JOINED, match_column="known")
    for _ in join(tables.stream(1000, seed=seed)):
        pass


def _write_products(tables: Retail, seed: int, path: Path) -> None:
    with tables.master(seed=seed) as reader, pq.ParquetWriter(path, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
