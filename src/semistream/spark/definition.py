"""What is checked while a join is being defined, on the driver, so that nothing of it fails in a worker an hour later."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as st

from semistream.algorithms import find_algorithm
from semistream.errors import BudgetError, ColumnError, KeyTypeError
from semistream.join import Join
from semistream.protocols import Master
from semistream.units import format_bytes


def rehearse(
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


def check_collations(schema: st.StructType, on: str | Sequence[str] | Mapping[str, str]) -> None:
    """Refuse key columns whose own rules of equality Arrow does not carry over."""
    keys = [on] if isinstance(on, str) else list(on)
    for field in schema.fields:
        collation = getattr(field.dataType, "collation", "UTF8_BINARY")
        if field.name in keys and collation != "UTF8_BINARY":
            raise KeyTypeError(
                f"stream column {field.name}: has the collation {collation}, the join compares bytes; "
                f"cast it, for example with collate({field.name}, 'UTF8_BINARY')"
            )


def check_names(stream: DataFrame, schema: st.StructType) -> None:
    """Refuse names that Spark could not tell apart afterwards: unless told otherwise it ignores upper and lower case."""
    exact = (stream.sparkSession.conf.get("spark.sql.caseSensitive", "false") or "").lower() == "true"
    seen: dict[str, str] = {}
    for name in schema.names:
        folded = name if exact else name.lower()
        if folded in seen:
            raise ColumnError(
                f"output column {name}: Spark cannot tell it from {seen[folded]}; rename one of the two, "
                'in the stream or with columns={"master column": "new name"}'
            )
        seen[folded] = name


def warn_of_scans(algorithm: str, master: Master) -> None:
    """A scan needs all of the master to finish a task, however few rows the task has."""
    if find_algorithm(algorithm, master, None).scans:
        warnings.warn(
            f"algorithm={algorithm!r} reads all of master {master.name} in every task, however few rows it has, since no row waits for the "
            "next micro-batch; 'adaptive' reads what is asked for",
            stacklevel=3,
        )
