"""`JoinTotals`: what the joins of all tasks did, added up on the driver.

Every task ends with a `join.report()`. What counts rows, pages or time adds up over tasks. Bytes do not, because tasks come
and go in the same share of the budget: of those, and of the longest wait, the largest is kept.

The sums travel in a Spark accumulator: a failed attempt of a task adds nothing, but Spark may count a task again if it has
to compute a stage again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark import AccumulatorParam
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from semistream.errors import UsageError

Counts = dict[str, Any]

_ADDED = (
    "tasks_empty",
    "tuples_in",
    "rows_out",
    "matched",
    "unmatched",
    "steps",
    "loads",
    "pages_read",
    "bytes_read",
    "busy_s",
)
_LARGEST = ("memory_bytes", "bytes_used", "wait_tuples_p50", "wait_tuples_p99", "wait_tuples_max", "staleness_s")


def merge(left: Mapping[str, Any], right: Mapping[str, Any]) -> Counts:
    """Two reports as one; an empty one changes nothing.

    >>> merge({"tasks": 1, "tuples_in": 2, "bytes_used": 8}, {"tasks": 1, "tuples_in": 3, "bytes_used": 6})
    {'tasks': 2, 'tuples_in': 5, 'bytes_used': 8, 'bytes_by_part': {}}
    """
    names = [name for name in ("tasks", *_ADDED, *_LARGEST) if name in left or name in right]
    merged: Counts = {}
    for name in names:
        values = left.get(name, 0), right.get(name, 0)
        merged[name] = max(values) if name in _LARGEST else sum(values)
    parts = [report.get("bytes_by_part", {}) for report in (left, right)]
    merged["bytes_by_part"] = {part: max(p.get(part, 0) for p in parts) for part in {**parts[0], **parts[1]}}
    return merged


class _Merge(AccumulatorParam[Counts]):
    """How Spark adds reports; sent to the workers by name."""

    def zero(self, value: Counts) -> Counts:
        return {}

    def addInPlace(self, value1: Counts, value2: Counts) -> Counts:  # noqa: N802 - the name is Spark's
        return merge(value1, value2)


class JoinTotals:
    """Collects the reports of every task of one or more `enrich` calls.

        totals = JoinTotals(spark)
        enriched = enrich(orders, "products.master", on="product_id", totals=totals)

    While the query runs, `totals.value["tuples_in"]` and the other counters of `join.report()` grow.
    """

    def __init__(self, spark: SparkSession) -> None:
        try:
            context = spark.sparkContext
        except PySparkException as exc:
            raise UsageError(
                "JoinTotals: need Spark's accumulators, which Spark Connect does not have; use it with a classic session"
            ) from exc
        self._sum = context.accumulator({}, _Merge())

    def add(self, report: Mapping[str, Any]) -> None:
        """Take in the report of one task, at its end."""
        self._sum.add({"tasks": 1, **report})

    @property
    def value(self) -> Counts:
        """The sums so far, to be read on the driver; with the share of tuples that needed no load of their own."""
        counts = dict(self._sum.value)
        if counts.get("tuples_in"):
            counts["hit_share"] = max(0.0, 1 - counts["loads"] / counts["tuples_in"])
        return counts
