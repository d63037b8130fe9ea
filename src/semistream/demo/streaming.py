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
_MOST_FILES = 24  # in a micro-batch, six seconds of orders: a slow machine catches up in few large ones


@dataclass(frozen=True)
class StreamRun:
    """Figures of a finished stream. Rates leave the first micro-batch out, in which Spark warms up."""

    orders: int
    batches: int
    rows_per_s: float  # from the first burst to the last row in the warehouse
    rows_per_busy_s: float  # of that, only the time that Spark was at work
    join: dict[str, Any]  # the counters of the join, over all tasks


def run_stream(spark: SparkSession, home: Path, inbox: Inbox, memory: str, screen: Screen) -> StreamRun:
    """Let the orders arrive and stay until the last of them is in the warehouse."""
    totals = JoinTotals(spark)
    query = _start(spark, home, inbox, memory, totals)
    watch = Watch(query)
    try:
        with inbox, screen.stream(inbox.orders) as bars:
            while not watch.batches and query.isActive:
                watch.show(inbox.sent, bars)
            warm = watch.stored, watch.busy_s
            start = time.monotonic()
            inbox.flowing.set()
            _wait(query, inbox, watch, bars)
            seconds = time.monotonic() - start
    finally:
        query.stop()
    watch.look()
    rows, busy_s = watch.stored - warm[0], watch.busy_s - warm[1]
    return StreamRun(inbox.sent, watch.batches, rows / seconds, rows / max(busy_s, 1e-3), totals.value)


def _start(spark: SparkSession, home: Path, inbox: Inbox, memory: str, totals: JoinTotals) -> StreamingQuery:
    inbox.folder.mkdir()
    source = spark.readStream.schema(spark_schema(inbox.shop.stream_schema)).option("maxFilesPerTrigger", _MOST_FILES)
    orders = source.parquet(str(inbox.folder))
    enriched = with_products(clean(orders), home / "products.master", memory, totals)
    sink = enriched.writeStream.foreachBatch(writer(home / "warehouse"))
    return sink.option("checkpointLocation", str(home / "checkpoint")).start()


def _wait(query: StreamingQuery, inbox: Inbox, watch: Watch, bars: StreamBars) -> None:
    """Until no order is on its way and Spark has nothing left to do; raises what made the query fail."""
    with ThreadPoolExecutor(1) as waiter:
        while not inbox.done.is_set() and query.isActive:
            watch.show(inbox.sent, bars)
        stored = waiter.submit(query.processAllAvailable)
        while not stored.done():
            watch.show(inbox.sent, bars)
        stored.result()


class Watch:
    """Adds up what the query reports about its micro-batches."""

    def __init__(self, query: StreamingQuery) -> None:
        self._query = query
        self._rows: dict[int, int] = {}
        self._busy_ms: dict[int, int] = {}

    @property
    def batches(self) -> int:
        """Micro-batches that had rows."""
        return len(self._rows)

    @property
    def stored(self) -> int:
        """Orders that have been worked off."""
        return sum(self._rows.values())

    @property
    def busy_s(self) -> float:
        """Time spent on them."""
        return sum(self._busy_ms.values()) / 1000

    def look(self) -> None:
        """Read the reports; those without rows are a heartbeat, or a micro-batch that only moves the watermark."""
        for report in self._query.recentProgress:
            if report["numInputRows"]:
                self._rows[report["batchId"]] = report["numInputRows"]
                self._busy_ms[report["batchId"]] = report["durationMs"]["triggerExecution"]

    def show(self, sent: int, bars: StreamBars) -> None:
        """One tick of the display."""
        self.look()
        last = max(self._rows, default=None)
        rate = 0.0 if last is None else 1000 * self._rows[last] / max(self._busy_ms[last], 1)
        bars.show(sent, self.stored, rate)
        time.sleep(_TICK_S)
