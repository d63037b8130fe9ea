"""`enrich`: the lookup join for Spark DataFrames, exact in every micro-batch.

Everything that can be wrong is found here, on the driver, while the query is being defined: names, types, the budget, the join type.
Nothing is read from the stream for it: the join tells its output schema before any data, and a rehearsal with an empty batch makes it
hand out its whole budget once. What the executors get is a `JoinTask` and a master version pinned now.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from datetime import timedelta
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import types as st

from semistream.errors import BudgetError, ColumnError, KeyTypeError, UsageError
from semistream.join import Join
from semistream.masters.file_master import FileMaster, open_master
from semistream.protocols import Master
from semistream.spark.slots import task_slots as slots_of
from semistream.spark.task import JoinTask
from semistream.spark.totals import JoinTotals
from semistream.spark.types import arrow_schema, spark_form, spark_schema
from semistream.units import format_bytes, parse_bytes


def enrich(  # noqa: PLR0913 - the options of Join, and two of Spark's own
    stream: DataFrame,
    master: str | PathLike[str] | Master,
    on: str | Sequence[str] | Mapping[str, str],
    *,
    algorithm: str = "adaptive",
    memory: int | str = "64MB",
    how: str = "inner",
    columns: Sequence[str | tuple[str, str]] | Mapping[str, str] | None = None,
    where: pc.Expression | None = None,
    null_safe: bool = False,
    ordered: bool = False,
    match_column: str | None = None,
    max_wait: int | str | timedelta | None = None,
    preset: str | None = None,
    task_slots: int | None = None,
    totals: JoinTotals | None = None,
) -> DataFrame:
    """Join `stream`, a streaming or batch DataFrame, with the master table at `master`; the options are those of `semistream.Join`.

        enriched = enrich(orders, "products.master", on="product_id", memory="256MB", how="left")

    The columns are the stream's, in order, then the master's without its keys, then `match_column`. A watermark on the stream stays.

    `memory` is per executor. It is divided evenly by the tasks that an executor runs at once (its cores / spark.task.cpus; say
    `task_slots` where Spark cannot tell), and every task runs one join within its share: `memory="64MB"` on `local[2]` is 2 x 32 MB.
    Two `enrich` calls in one query have a budget each. Not counted: Spark's own Arrow batches on their way in and out (see
    spark.sql.execution.arrow.maxRecordsPerBatch) and the Python interpreters.

    Exact per micro-batch: a task joins exactly its rows and waits for nothing beyond them, so a streaming query is exactly-once as soon
    as its sink and its checkpoint make it so. The version of the master is the one that is current now, for as long as the DataFrame is
    used; call `enrich` again, in a restarted query, to see a newer one.

    Errors come from this call: ColumnError, KeyTypeError, BudgetError, CapabilityError, MasterNotFound and the others of
    `semistream.errors`. Nothing in the session's settings is changed.
    """
    options: dict[str, Any] = {
        "on": on, "algorithm": algorithm, "how": how, "columns": columns, "where": where, "null_safe": null_safe,
        "ordered": ordered, "match_column": match_column, "max_wait": max_wait, "preset": preset,
        "threads": 1,  # a task slot is a core
    }  # fmt: skip
    slots = slots_of(stream.sparkSession) if task_slots is None else task_slots
    if slots < 1:
        raise UsageError(
            f"enrich: task_slots={slots}: need the number of tasks that an executor runs at once, 1 or more"
        )
    source = arrow_schema(stream.schema)
    opened = _open(master)
    options["memory"], joined = _rehearse(opened, source, options, parse_bytes(memory), slots)
    _check_collations(stream.schema, on)
    added = [pa.field(f.name, spark_form(f.type, f.name), f.nullable) for f in list(joined)[len(source) :]]
    schema = st.StructType([*stream.schema.fields, *spark_schema(pa.schema(added)).fields])
    _check_names(stream, schema)
    task = JoinTask(opened, options, source, pa.schema([*source, *added]), totals)
    return stream.mapInArrow(task, schema)


_PINNED: dict[Path, FileMaster] = {}


def _open(master: str | PathLike[str] | Master) -> Master:
    """The master, opened by us: a version stays pinned as long as this process, since a query may run as long.

    A table in place has no versions, and an open one keeps others from writing: tasks open it when they need it.
    """
    ours = open_master(master) if isinstance(master, str | PathLike) else copy.copy(master)
    if isinstance(ours, FileMaster):
        _PINNED.setdefault(ours.version.absolute(), ours)
    return ours


def _rehearse(
    master: Master, source: pa.Schema, options: dict[str, Any], memory_bytes: int, slots: int
) -> tuple[int, pa.Schema]:
    """Run the join once over no rows within one task's share: the share, and the schema that comes out."""
    share_bytes = memory_bytes // slots
    try:
        join = Join(master, memory=share_bytes, **options)
        joined = join.output_schema(source)
        for _ in join([pa.RecordBatch.from_pylist([], schema=source)]):
            pass
    except BudgetError as exc:
        smallest = exc.smallest_bytes * slots
        raise BudgetError(
            f"enrich: memory={memory_bytes} bytes ({format_bytes(memory_bytes)}) is {format_bytes(share_bytes)} for each of "
            f"the {slots} tasks that an executor runs at once, too small for the {exc.part}: one task needs "
            f"{exc.smallest_bytes} bytes; give at least memory={smallest} ({format_bytes(smallest)})",
            part=exc.part,
            needed_bytes=exc.needed_bytes * slots,
            smallest_bytes=smallest,
        ) from exc
    return share_bytes, joined


def _check_collations(schema: st.StructType, on: str | Sequence[str] | Mapping[str, str]) -> None:
    """Refuse key columns whose own rules of equality Arrow does not carry over."""
    keys = [on] if isinstance(on, str) else list(on)
    for field in schema.fields:
        collation = getattr(field.dataType, "collation", "UTF8_BINARY")
        if field.name in keys and collation != "UTF8_BINARY":
            raise KeyTypeError(
                f"stream column {field.name}: has the collation {collation}, the join compares bytes; "
                f"cast it, for example with collate({field.name}, 'UTF8_BINARY')"
            )


def _check_names(stream: DataFrame, schema: st.StructType) -> None:
    """Refuse names that Spark could not tell apart afterwards: unless told otherwise it ignores upper and lower case."""
    exact = stream.sparkSession.conf.get("spark.sql.caseSensitive", "false") == "true"
    seen: dict[str, str] = {}
    for name in schema.names:
        folded = name if exact else name.lower()
        if folded in seen:
            raise ColumnError(
                f"output column {name}: Spark cannot tell it from {seen[folded]}; rename one of the two, "
                'in the stream or with columns={"master column": "new name"}'
            )
        seen[folded] = name
