"""What one Spark task does: one join over the task's rows, drained before the task ends.

    JVM --Arrow--> batches -> [cast: Spark's zone -> UTC] -> Join -> [cast: master types -> Spark's] --Arrow--> JVM

A `JoinTask` is made once, on the driver, and sent to every task. It is an object of an importable module, so what travels is its
class's name and its fields: a few hundred bytes, and the code that runs is the executor's own semistream.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Protocol

import pyarrow as pa

from semistream.errors import ColumnError
from semistream.join import Join
from semistream.masters.file_master import FileMaster
from semistream.protocols import Master
from semistream.report import empty_report
from semistream.spark.versions import InPlace, MicroBatch, Versioned


class Teller(Protocol):
    """Wants to know what tasks did."""

    def add(self, report: Mapping[str, Any]) -> None:
        """Take in the report of one task, at its end."""


@dataclass(frozen=True)
class JoinTask:
    """The join of one `enrich` call, ready to run on any executor; Spark calls it with the batches of a task.

    Answers depend on the task's rows and on the pinned version of the master, on nothing else: a retried task gives the same rows.
    """

    master: InPlace | Versioned  # names, from which every task of a micro-batch opens the same version
    options: dict[str, Any]
    stream: pa.Schema
    joined: pa.Schema  # what the join gave when it was defined
    output: pa.Schema  # the same in types that Spark takes
    name: str  # of the join, in metrics
    tellers: tuple[Teller, ...] = ()

    def telling(self, teller: Teller) -> JoinTask:
        """The same join, which also tells this one what its tasks did."""
        return replace(self, tellers=(*self.tellers, teller))

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Join the rows of one task."""
        rows = (cast(batch, self.stream) for batch in batches if batch.num_rows)
        first = next(rows, None)
        if first is None:  # many tasks of a small micro-batch are empty: they take no memory and read no page
            self._tell({**empty_report(self.options["algorithm"], self.options["memory"]), "tasks_empty": 1})
            return
        with ExitStack() as at_the_end:
            master = self.master.open(MicroBatch.of_this_task(), self._fits)
            if isinstance(master, FileMaster):
                at_the_end.callback(master.close)
            join = Join(master, **self.options)
            for joined in join(chain([first], rows)):
                yield cast(joined, self.output)
            self._tell({**join.report(), **_facts(master), "tasks_empty": 0})

    def rehearse(self) -> None:
        """Open the master as a task would, and check that it is the one the join was defined with; no row is needed."""
        master = self.master.open(None, self._fits)
        self._fits(master)
        if isinstance(master, FileMaster):
            master.close()

    def _tell(self, report: dict[str, Any]) -> None:
        """Tell everybody who wants to know what this task did, and for which micro-batch."""
        batch = MicroBatch.of_this_task() if self.tellers else None
        query, number = (batch.query, batch.number) if batch else ("", None)
        for teller in self.tellers:
            teller.add({"query": query, "join": self.name, "batch": number, "tasks": 1, **report})

    def _fits(self, master: Master) -> None:
        """Refuse a version whose join would not give the columns that the query was defined with."""
        joined = Join(master, **self.options).output_schema(self.stream)
        if joined.types != self.joined.types:
            changed = [
                f"{new.name} is {new.type} and was {old.type}"
                for new, old in zip(joined, self.joined, strict=True)
                if new.type != old.type
            ]
            raise ColumnError("; ".join(changed))


def _facts(master: Master) -> dict[str, Any]:
    """What to tell about a master that has versions."""
    if not isinstance(master, FileMaster):
        return {}
    age = datetime.now(UTC) - datetime.fromisoformat(master.manifest.created)
    return {"version": master.version.name, "staleness_s": max(0.0, age.total_seconds())}


def cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with exactly the types of `schema`; a column that has its type already is not copied."""
    if batch.schema.equals(schema):
        return batch
    columns = [
        column if column.type.equals(field.type) else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
