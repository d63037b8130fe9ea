"""The running stream of the demo: start the query, watch it until the last order is stored, collect its figures."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from semistream.demo.arriving import Inbox
from semistream.demo.pipeline import clean, with_products, writer
from semistream.demo.screen import Screen, StreamBars
from semistream.spark import JoinTotals
from semistream.spark.types import spark_schema

_TICK_S = 0.25
_MOST_FILES = 8  # in a micro-batch: two seconds of orders


@dataclass(frozen=True)
class StreamRun:
    """Figures of a finished stream."""

    orders: int
    batches: int
    seconds: float  # from the first order to the last row in the warehouse
    busy_seconds: float  # of these, how long Spark was at work
    join: dict[str, Any]  # the counters of the join, over all tasks


def run_stream(spark: SparkSession, home: Path, inbox: Inbox, memory: str, screen: Screen) -> StreamRun:
    """Let the orders arrive and stay until the last of them is in the warehouse."""
    totals = JoinTotals(spark)
    inbox.folder.mkdir()
    source = spark.readStream.schema(spark_schema(inbox.shop.stream_schema)).option("maxFilesPerTrigger", _MOST_FILES)
    orders = source.parquet(str(inbox.folder))
    enriched = with_products(clean(orders), home / "products.master", memory, totals)
    sink = enriched.writeStream.foreachBatch(writer(home / "warehouse"))
    query = sink.option("checkpointLocation", str(home / "checkpoint")).start()
    watch = Watch(query)
    start = time.monotonic()
    try:
        with inbox, screen.stream(inbox.orders) as bars, ThreadPoolExecutor(1) as waiter:
            while not inbox.done.is_set() and query.isActive:
                watch.show(inbox.sent, bars)
            stored = waiter.submit(query.processAllAvailable)
            while not stored.done():
                watch.show(inbox.sent, bars)
            stored.result()
        seconds = time.monotonic() - start
    finally:
        query.stop()
    watch.look()
    return StreamRun(inbox.sent, len(watch.rows), seconds, sum(watch.busy_ms.values()) / 1000, totals.value)


class Watch:
    """Adds up what the query reports about its micro-batches."""

    def __init__(self, query: StreamingQuery) -> None:
        self._query = query
        self.rows: dict[int, int] = {}
        self.busy_ms: dict[int, int] = {}

    def look(self) -> None:
        """Read the reports that are new; those without rows are Spark's heartbeat."""
        for report in self._query.recentProgress:
            if report["numInputRows"]:
                self.rows[report["batchId"]] = report["numInputRows"]
                self.busy_ms[report["batchId"]] = report["durationMs"]["triggerExecution"]

    def show(self, sent: int, bars: StreamBars) -> None:
        """One tick of the display."""
        self.look()
        bars.show(sent, sum(self.rows.values()), len(self.rows))
        time.sleep(_TICK_S)
