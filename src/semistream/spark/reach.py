"""Whether executors can open the master: asked of one of them while the join is defined, and not of a task an hour later."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from semistream.errors import MasterNotFound, SemistreamError
from semistream.spark.task import JoinTask


@dataclass(frozen=True)
class Probe:
    """Opens the master of a join, and says what went wrong."""

    task: JoinTask

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row: an empty text, or the error."""
        for _ in batches:
            try:
                self.task.rehearse()
            except SemistreamError as exc:
                yield pa.record_batch({"error": [f"{type(exc).__name__}: {exc}"]})
            else:
                yield pa.record_batch({"error": [""]})


def check_reach(spark: SparkSession, task: JoinTask) -> None:
    """Have an executor on another machine open the master; where all run on this one, there is nothing to ask."""
    where = spark.conf.get("spark.master", "") or ""
    if where.startswith("local") and not where.startswith("local-cluster"):
        return
    rows = spark.range(0, 1, 1, 1).mapInArrow(Probe(task), "error string").collect()
    if rows[0]["error"]:
        raise MasterNotFound(
            f"enrich: the driver sees the master, an executor does not ({rows[0]['error']}); put it where every executor finds it under "
            "the same path, such as a shared mount"
        )
