"""Reports of tasks as one more row of their output, for sessions without accumulators.

    task --> rows, report = null ----------+--> observe(string_agg(report)) --> where report is null --> drop report --> rows
         --> one row, report = its text ---+             |
                                                         +--> progress of the query, or the frame's Observation

Spark counts an observed row once, of the attempt of a task that succeeded. It hands every row to the aggregate, though, which made a
bare crossing of 24-byte rows a third slower; so this is used only where there is no other way.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as st
from pyspark.sql.streaming.listener import QueryProgressEvent, StreamingQueryListener

from semistream.spark.history import Reports, add, essence
from semistream.spark.task import JoinTask

REPORT = "__semistream_report"
_numbers = count(1)


@dataclass(frozen=True)
class ReportingTask:
    """A join whose report is the last row that it gives."""

    task: JoinTask

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the task, then the report."""
        told = _Told()
        fields = [*(field.with_nullable(True) for field in self.task.output), pa.field(REPORT, pa.string())]
        schema = pa.schema(fields)
        for batch in self.task.telling(told)(batches):
            yield pa.RecordBatch.from_arrays([*batch.columns, pa.nulls(batch.num_rows, pa.string())], schema=schema)
        for report in told.reports:
            last: list[pa.Array] = [pa.nulls(1, field.type) for field in self.task.output]
            yield pa.RecordBatch.from_arrays([*last, pa.array([json.dumps(report)])], schema=schema)


class _Told:
    """Keeps what a task tells."""

    def __init__(self) -> None:
        self.reports: list[dict[str, Any]] = []

    def add(self, report: Mapping[str, Any]) -> None:
        self.reports.append(essence(report))


class Observed:
    """Takes the reports out of the progress of streaming queries, and out of the results of batch frames."""

    def __init__(self, spark: SparkSession) -> None:
        self._streamed: Reports = {}
        self._names: set[str] = set()
        self._frames: list[Observation] = []
        self._read: set[int] = set()
        spark.streams.addListener(_Listener(self))

    def apply(self, stream: DataFrame, task: JoinTask, schema: st.StructType) -> DataFrame:
        """The joined frame; every column may be null in it, since the row of a report has no values."""
        fields = [st.StructField(field.name, field.dataType, True, field.metadata) for field in schema.fields]
        frame = stream.mapInArrow(
            ReportingTask(task), st.StructType([*fields, st.StructField(REPORT, st.StringType())])
        )
        name, reports = f"semistream_{next(_numbers)}", F.string_agg(REPORT, F.lit("\n")).alias("reports")
        if stream.isStreaming:
            self._names.add(name)
            frame = frame.observe(name, reports)
        else:
            self._frames.append(Observation(name))
            frame = frame.observe(self._frames[-1], reports)
        return frame.where(F.col(REPORT).isNull()).drop(REPORT)

    def take(self, observed: Mapping[str, Any]) -> None:
        """Add what a query observed in one micro-batch."""
        for name in self._names & set(observed):
            self._streamed = _added(self._streamed, observed[name]["reports"])

    @property
    def reports(self) -> Reports:
        """All that has come so far."""
        for number, frame in enumerate(self._frames):
            if number not in self._read and (found := frame.get):
                self._read.add(number)
                self._streamed = _added(self._streamed, found["reports"])
        return self._streamed


def _added(reports: Reports, text: str | None) -> Reports:
    for line in (text or "").splitlines():
        reports = add(reports, json.loads(line))
    return reports


class _Listener(StreamingQueryListener):
    """Hears of every micro-batch of every query in the session."""

    def __init__(self, observed: Observed) -> None:
        self._observed = observed

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - the names are Spark's
        """Of no interest."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Take the reports of the micro-batch."""
        self._observed.take(event.progress.observedMetrics)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Of no interest."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Of no interest."""
