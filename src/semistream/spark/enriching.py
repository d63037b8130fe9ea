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
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import types as st

from semistream import plan
from semistream.errors import UsageError
from semistream.masters.batch_pins import check_writable
from semistream.masters.file_master import FileMaster, open_master
from semistream.protocols import Master
from semistream.spark.crossing import prepare
from semistream.spark.definition import check_collations, check_names, rehearse, warn_of_scans
from semistream.spark.metrics import JoinMetrics
from semistream.spark.reach import check_reach
from semistream.spark.shared_memory import SharedMemory
from semistream.spark.slots import task_slots as slots_of
from semistream.spark.task import JoinTask
from semistream.spark.totals import JoinTotals
from semistream.spark.types import arrow_schema, spark_form, spark_schema
from semistream.spark.versions import InPlace, Versioned, versioned
from semistream.units import parse_bytes


def enrich(  # noqa: PLR0913 - the options of Join, and two of Spark's own
    stream: DataFrame,
    master: str | PathLike[str] | Master,
    on: str | Sequence[str] | Mapping[str, str],
    *,
    algorithm: str = "adaptive",
    memory: int | str | SharedMemory = "64MB",
    how: str = "inner",
    columns: Sequence[str | tuple[str, str]] | Mapping[str, str] | None = None,
    where: pc.Expression | None = None,
    null_safe: bool = False,
    ordered: bool = False,
    match_column: str | None = None,
    max_wait: int | str | timedelta | None = None,
    preset: str | None = None,
    task_slots: int | None = None,
    pins: str | PathLike[str] | None = None,
    operator: str | None = None,
    totals: JoinTotals | None = None,
    metrics: JoinMetrics | None = None,
    crossing: str = "fast",
    row_bytes: int | str | None = None,
) -> DataFrame:
    """Join `stream`, a streaming or batch DataFrame, with the master table at `master`; the options are those of `semistream.Join`.

        enriched = enrich(orders, "products.master", on="product_id", memory="256MB", how="left")

    The columns are the stream's, in order, then the master's without its keys, then `match_column`. A watermark on the stream stays.

    `memory` is per executor. It is divided evenly by the tasks that an executor runs at once (its cores / spark.task.cpus; say
    `task_slots` where Spark cannot tell), and every task runs one join within its share: `memory="64MB"` on `local[2]` is 2 x 32 MB.
    Two `enrich` calls in one query have a budget each, unless they are given a `SharedMemory`. Not counted: Spark's own Arrow batches
    on their way in and out (see spark.sql.execution.arrow.maxRecordsPerBatch) and the Python interpreters.

    Exact per micro-batch: a task joins exactly its rows and waits for nothing beyond them, so a streaming query is exactly-once as soon
    as its sink and its checkpoint make it so. A micro-batch reads the version of the master that is current when it is first tried, and
    the same one whenever it is tried again; which one that was is kept in `pins` (a folder; the master's own unless given), under the
    query, the `operator` (a name for this join within the query, needed only where two joins are alike) and the number of the batch. An
    opened master, and a batch DataFrame, stay with the version that is open, or current, now.

    Errors come from this call: ColumnError, KeyTypeError, BudgetError, CapabilityError, MasterNotFound and the others of
    `semistream.errors`.

    `crossing="fast"` may set two settings of the session, for a faster way of rows into Python, where the width of rows is bounded, by
    their types or by `row_bytes`; "as_set" leaves them alone. What was set is logged; the reasons are in `semistream.spark.crossing`.
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
    memory_bytes = memory.share_bytes if isinstance(memory, SharedMemory) else parse_bytes(memory)
    source = arrow_schema(stream.schema)
    opened = open_master(master) if isinstance(master, str | PathLike) else copy.copy(master)
    options["memory"], joined = rehearse(opened, source, options, memory_bytes, slots)
    check_collations(stream.schema, on)
    added = [pa.field(f.name, spark_form(f.type, f.name), f.nullable) for f in list(joined)[len(source) :]]
    schema = st.StructType([*stream.schema.fields, *spark_schema(pa.schema(added)).fields])
    check_names(stream, schema)
    options["columns"] = plan.parse_columns(columns, opened) if plan.parse_how(how) in ("inner", "left") else []
    adds = [joined.names[len(source) :], plan.parse_how(how)]
    choice = _choice(
        stream, opened, isinstance(master, str | PathLike), plan.parse_on(on, opened), adds, pins, operator
    )
    name = operator or f"{opened.name.rstrip('/').rpartition('/')[2]} on {', '.join(plan.parse_on(on, opened))}"
    task = JoinTask(choice, options, source, joined, pa.schema([*source, *added]), name)
    check_reach(stream.sparkSession, task)
    prepare(stream.sparkSession, joined, crossing, row_bytes)
    warn_of_scans(algorithm, opened)
    if isinstance(memory, SharedMemory):
        memory.take(repr((name, adds)))
    if totals is not None:
        task = task.telling(totals)
    return stream.mapInArrow(task, schema) if metrics is None else metrics.apply(stream, task, schema)


def _in_micro_batch(frame: DataFrame) -> bool:
    """Whether this is a frame of a micro-batch, in the user's own `foreachBatch`."""
    try:
        return bool(frame.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"))
    except (AttributeError, PySparkException):  # Connect has no context
        return False


_HELD: dict[Path, FileMaster] = {}
_REPLAYED = "spark.sql.streaming.minBatchesToRetain"


def _choice(
    stream: DataFrame,
    master: Master,
    by_path: bool,
    keys: Sequence[str],
    adds: Sequence[object],
    pins: str | PathLike[str] | None,
    operator: str | None,
) -> InPlace | Versioned:
    """How the tasks will find their version of the master.

    A version that does not change stays pinned by this process, since a query may run as long. A table in place has no versions, and
    an open one keeps others from writing: tasks open it when they need it.
    """
    if not isinstance(master, FileMaster):
        return InPlace(master)
    on = dict(zip(keys, master.manifest.key, strict=True))
    retained = int(stream.sparkSession.conf.get(_REPLAYED, "100") or 100)
    choice = versioned(
        master, follows=by_path, pins=pins, operator=operator, on=on, adds=adds, kept_batches=max(2, retained)
    )
    if stream.isStreaming:
        check_writable(Path(choice.pins))
    if by_path and (stream.isStreaming or _in_micro_batch(stream)):
        master.close()  # tasks pin what they read
    else:
        _HELD.setdefault(master.version.absolute(), master)
    return choice
