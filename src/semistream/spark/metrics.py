"""`JoinMetrics`: what the join did in every micro-batch, as Python objects and as text for Prometheus, without a job of its own.

    classic session     every task adds its report to a Spark accumulator, which costs nothing per row
    Spark Connect       has no accumulators: every task gives its report as one more row, which Spark observes (observing.py)

Either way a failed attempt of a task adds nothing, and tasks without output, or without rows, are counted as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from pyspark import AccumulatorParam, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from semistream.spark.history import Reports, add, essence, told
from semistream.spark.observing import Observed
from semistream.spark.prometheus import text
from semistream.spark.task import JoinTask


class JoinMetrics:
    """Collects what the tasks of one or several `enrich` calls did, micro-batch by micro-batch.

        metrics = JoinMetrics(spark)
        enriched = enrich(orders, "products.master", on="product_id", metrics=metrics)

    `latest` is the newest micro-batch, `batches` are the last hundred of every join, `totals` is everything since the start, and
    `prometheus()` says the same as text.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._way: _Way
        try:
            self._way = Accumulated(spark.sparkContext)
        except PySparkException:
            self._way = Observed(spark)

    def apply(self, stream: DataFrame, task: JoinTask, schema: st.StructType) -> DataFrame:
        """The joined frame, whose tasks report to this object; `enrich` calls it."""
        return self._way.apply(stream, task, schema)

    @property
    def batches(self) -> list[dict[str, Any]]:
        """The last hundred micro-batches of every join, the newest of each join last."""
        return list(self._batches())

    @property
    def latest(self) -> dict[str, Any]:
        """The newest micro-batch; empty before the first one has a task that ended."""
        return max(self._batches(), key=lambda one: one["batch"], default={})

    @property
    def totals(self) -> list[dict[str, Any]]:
        """Everything since the start, one entry for each join of each query; a batch DataFrame is the query ""."""
        return [told(*who, None, track.total) for who, track in self._way.reports.items()]

    def prometheus(self) -> str:
        """The text to serve to Prometheus, or to put into a file that its node exporter reads."""
        newest = {(one["query"], one["join"]): one for one in self._batches()}
        return text([(total, newest.get((total["query"], total["join"]), {})) for total in self.totals])

    def _batches(self) -> Iterator[dict[str, Any]]:
        for who, track in self._way.reports.items():
            for number in sorted(track.batches):
                yield told(*who, number, track.batches[number])


class _Way(Protocol):
    """How reports get from tasks to the driver."""

    @property
    def reports(self) -> Reports:
        """All that has come so far."""

    def apply(self, stream: DataFrame, task: JoinTask, schema: st.StructType) -> DataFrame:
        """The joined frame, whose tasks report."""


class Accumulated:
    """Reports travel with the end of their task."""

    def __init__(self, context: SparkContext) -> None:
        self._sum = context.accumulator({}, _Add())

    def apply(self, stream: DataFrame, task: JoinTask, schema: st.StructType) -> DataFrame:
        """The joined frame, as it is without metrics."""
        return stream.mapInArrow(task.telling(Teller(self._sum)), schema)

    @property
    def reports(self) -> Reports:
        """All that has come so far."""
        reports: Reports = self._sum.value
        return reports


class Teller:
    """The end of an accumulator that a task holds."""

    def __init__(self, accumulator: Any) -> None:
        self._sum = accumulator

    def add(self, report: Mapping[str, Any]) -> None:
        """Send a report when the task ends."""
        self._sum.add([essence(report)])


class _Add(AccumulatorParam[Any]):
    """How Spark adds reports: a worker lists those of its task, the driver takes the list in."""

    def zero(self, value: Any) -> list[Mapping[str, Any]]:
        return []

    def addInPlace(self, value1: Any, value2: Any) -> Any:  # noqa: N802 - the name is Spark's
        if isinstance(value1, list):
            return [*value1, *value2]
        for report in value2:
            value1 = add(value1, report)
        return value1
