"""One system, one case, one process with a Spark session of its own: times first, then the answers' checksum, untimed.

Timed rows go into Spark's `noop` sink, which takes every column of every row and keeps none. A streaming query is timed by its own clock,
per micro-batch; a frame from the call to the last row. What a system does once beforehand is not timed: building the master, filling the
cache of `spark_cached`. `pass_through` is no join: it puts one master row beside every stream row, so its rows are counted, not summed.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as st

from semistream.bench.checksum import EMPTY, Checksum, checksum
from semistream.bench.data import Answers
from semistream.bench.rates import rate
from semistream.masters.file_master import open_master
from semistream.spark import JoinMetrics, enrich, local_session
from semistream.spark.types import arrow_schema, spark_schema

Task = dict[str, Any]
Join = Callable[[DataFrame], DataFrame]
Summed = Callable[[DataFrame], Checksum]
HEAP = "8g"  # with 3g the second broadcast of the table found no room


def measure(task: Task) -> dict[str, Any]:
    """Run the task in a session of its own; what it found, or an `error` and no rate when the answer is wrong."""
    spark = local_session(task["threads"], app="semistream bench", spark__driver__memory=HEAP)
    try:
        return measured(spark, task)
    finally:
        spark.stop()


def measured(spark: SparkSession, task: Task) -> dict[str, Any]:
    """The same in a session that is there."""
    metrics = JoinMetrics(spark)
    join = _join(spark, task, metrics)
    files = sorted(Path(task["stream"]).iterdir())
    schema = spark.read.parquet(str(files[0])).schema
    with tempfile.TemporaryDirectory() as folder:
        times = _frames(spark, task, join) if task["runs"] else _batches(spark, task, join, schema, Path(folder))
    return _result(task, times, metrics) | _verified(spark, task, join, files)


def _join(spark: SparkSession, task: Task, metrics: JoinMetrics) -> Join:
    """The system as a function of the stream."""
    ours, theirs = next(iter(task["on"].items()))
    if task["system"] == "enrich":
        return lambda stream: enrich(
            stream, task["master"], on=task["on"], memory=task["memory_bytes"], metrics=metrics
        )
    if task["system"] == "pass_through":
        return lambda stream: _widened(stream, task)
    static = spark.read.parquet(task["rows"]).withColumnRenamed(theirs, ours)
    if task["system"] == "spark_cached":
        static = static.cache()
        static.count()
    if task["system"] == "spark_merge":
        static = static.hint("merge")
    if task["system"] == "spark_broadcast":
        static = F.broadcast(static)
    return lambda stream: stream.join(static, ours)


class _Widen:
    """Puts the same values beside every row."""

    def __init__(self, row: pa.RecordBatch, schema: pa.Schema) -> None:
        self._row, self._schema = row, schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            places = pa.repeat(0, batch.num_rows)
            yield pa.RecordBatch.from_arrays([*batch.columns, *self._row.take(places).columns], schema=self._schema)


def _widened(stream: DataFrame, task: Task) -> DataFrame:
    """Rows as wide as the join's, through the same crossing with the same settings."""
    stream.sparkSession.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", str((1 << 31) - 1))
    with open_master(task["master"]) as master:
        first = next(iter(master.batches())).slice(0, 1).drop_columns(list(task["on"].values()))
    schema = pa.schema([*arrow_schema(stream.schema), *first.schema])
    added = spark_schema(first.schema)
    return stream.mapInArrow(_Widen(first, schema), st.StructType([*stream.schema.fields, *added.fields]))


def _batches(spark: SparkSession, task: Task, join: Join, schema: st.StructType, folder: Path) -> list[float]:
    """Seconds of every micro-batch, by the query's own clock."""
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(task["stream"])
    sink = join(stream).writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
    query = sink.trigger(availableNow=True).start()
    query.awaitTermination()
    done = [report for report in query.recentProgress if report["numInputRows"]]
    return [report["durationMs"]["triggerExecution"] / 1000 for report in done]


def _frames(spark: SparkSession, task: Task, join: Join) -> list[float]:
    """Seconds of every run of the frame, planned anew, what Spark builds for a join included."""
    seconds = []
    for _ in range(task["runs"] + task["warm"]):
        started = time.perf_counter()
        join(spark.read.parquet(task["stream"])).write.format("noop").mode("overwrite").save()
        seconds.append(time.perf_counter() - started)
    return seconds


def _result(task: Task, times: list[float], metrics: JoinMetrics) -> dict[str, Any]:
    """Rates without the first ones, and the first one by itself."""
    timed = times[task["warm"] :]
    median_s = statistics.median(timed)
    read = metrics.totals[0] if metrics.totals else {}
    return {
        "rows": len(timed) * task["counted_rows"],
        "rows_per_s": task["counted_rows"] / median_s,
        "ci95": rate(timed, task["counted_rows"]).ci95,
        "batch_ms_median": 1000 * median_s,
        "batch_ms_first": 1000 * times[0],
        "batch_ms": [round(1000 * one, 1) for one in times],
        "memory_budget_bytes": task["memory_bytes"] if task["system"] == "enrich" else None,
        "pages_read": read.get("pages_read"),
        "bytes_read": read.get("bytes_read"),
        "rows_joined": read.get("tuples_in"),
        "cpu_s": sum(os.times()[:4]),
    }


def _verified(spark: SparkSession, task: Task, join: Join, files: list[Path]) -> dict[str, Any]:
    """The answers to the first files, or to all of them in a frame, against those of the dataset."""
    answers = Answers.load(task["answers"])
    expected = sum(answers.batches[: task["verified"]], EMPTY)
    summed = _counted if task["system"] == "pass_through" else partial(_summed, schema=answers.schema)
    expected = Checksum(expected.rows, 0) if task["system"] == "pass_through" else expected
    if task["runs"]:
        found = summed(join(spark.read.parquet(task["stream"])))
    else:
        found = _streamed(spark, task, join, [file.name for file in files[: task["verified"]]], summed)
    told = {"checksum": str(found), "error": None}
    if found == expected:
        return told
    return told | {"rows_per_s": None, "ci95": None, "error": f"wrong answer: checksum {found}, expected {expected}"}


class _Sum:
    """Sums the rows of a task where they are, so that ten million of them need not come to the driver."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = checksum(batches, self._schema)
        yield pa.record_batch({"rows": [found.rows], "total": [str(found.total)]})


def _streamed(spark: SparkSession, task: Task, join: Join, names: list[str], summed: Summed) -> Checksum:
    """The answers of the streaming query itself, micro-batch by micro-batch."""
    found: list[Checksum] = []
    files = spark.readStream.schema(spark.read.parquet(task["stream"]).schema).option("maxFilesPerTrigger", 1)
    stream = files.option("pathGlobFilter", "{" + ",".join(names) + "}").parquet(task["stream"])
    sink = join(stream).writeStream.foreachBatch(lambda frame, _: found.append(summed(frame)))
    with tempfile.TemporaryDirectory() as folder:
        sink.option("checkpointLocation", folder).trigger(availableNow=True).start().awaitTermination()
    return sum(found, EMPTY)


def _counted(frame: DataFrame) -> Checksum:
    return Checksum(frame.count(), 0)


def _summed(frame: DataFrame, schema: pa.Schema) -> Checksum:
    parts = frame.mapInArrow(_Sum(schema), "rows long, total string").collect()
    return sum((Checksum(part["rows"], int(part["total"])) for part in parts), EMPTY)
