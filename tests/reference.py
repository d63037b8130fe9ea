"""The oracle: a semi-stream join as the obvious double loop over plain Python rows.

Every test of an answer compares with this file, so it shares nothing with the library: no kernels, no hashing of its
own, no key words, no pages. A row is a tuple of plain Python values; an answer is a multiset of rows.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

Row = tuple[Any, ...]
On = str | Sequence[str] | Mapping[str, str]
Columns = Sequence[str | tuple[str, str]] | Mapping[str, str] | None
Where = Callable[[dict[str, Any]], bool]

PAIRS_BY_DOUBLE_LOOP = 200_000
NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
KINDS = {
    "inner": "inner",
    **dict.fromkeys(("left", "left_outer", "leftouter"), "left"),
    **dict.fromkeys(("left_semi", "semi", "leftsemi"), "left_semi"),
    **dict.fromkeys(("left_anti", "anti", "leftanti"), "left_anti"),
}


@dataclass(frozen=True)
class Expected:
    """What a join must give: column names and types, and how often each row comes."""

    schema: pa.Schema
    rows: Counter[Row]


def plain(scalar: pa.Scalar[Any]) -> Any:
    """One value as a hashable Python object that is equal exactly when the Arrow values are the same.

    NaN gets a name because it is not equal to itself, and so does -0.0 because it is equal to 0.0: a payload must come
    out with the sign it went in with. Dates and times stay counts of their unit, so that no calendar limits them.

    >>> [plain(value) for value in pa.array([1.5, float("nan"), -0.0, None])]
    [1.5, 'NaN', '-0.0', None]
    """
    kind = scalar.type
    if pt.is_dictionary(kind):
        return plain(scalar.value) if scalar.is_valid else None
    if not scalar.is_valid or pt.is_null(kind):
        return None
    if pt.is_struct(kind):
        return tuple(plain(scalar[place]) for place in range(kind.num_fields))
    if pt.is_nested(kind):
        return tuple(plain(value) for value in scalar.values)
    if pt.is_temporal(kind):
        return scalar.value
    value = scalar.as_py()
    if pt.is_floating(kind):
        if value != value:
            return "NaN"
        if value == 0 and str(value).startswith("-"):
            return "-0.0"
    return value


def plain_key(scalar: pa.Scalar[Any]) -> Any:
    """One key value as a Python object that is equal exactly when Spark calls the keys equal (None is a null key).

    NaN equals NaN, -0.0 equals 0.0, numbers and times are equal by value whatever their width or unit.
    """
    value, kind = plain(scalar), scalar.type
    if value is None:
        return None
    if pt.is_boolean(kind):
        return ("boolean", value)
    if pt.is_floating(kind):
        return 0.0 if value == "-0.0" else value
    if pt.is_timestamp(kind):
        return ("time", value * NANOSECONDS[kind.unit])
    if pt.is_date(kind):
        return ("time", value * (86_400 * 10**9 if pt.is_date32(kind) else 10**6))
    return value


def plain_column(column: pa.ChunkedArray[Any] | pa.Array[Any]) -> list[Any]:
    """`plain` of every value; where that is what Arrow's own conversion gives, in one go."""
    kind = column.type
    if pt.is_integer(kind) or pt.is_string(kind) or pt.is_binary(kind) or pt.is_boolean(kind):
        values: list[Any] = column.to_pylist()
        return values
    return [plain(value) for value in column]


def plain_rows(table: pa.Table | pa.RecordBatch) -> list[Row]:
    """All rows of a table or batch as tuples of plain values."""
    if table.num_columns == 0:
        return [()] * table.num_rows
    return list(zip(*(plain_column(column) for column in table.columns), strict=True))


def plain_keys(table: pa.Table, names: Sequence[str]) -> list[Row]:
    """The key tuple of every row."""
    return list(zip(*(plain_key_column(table[name]) for name in names), strict=True))


def plain_key_column(column: pa.ChunkedArray[Any]) -> list[Any]:
    """`plain_key` of every value; a column of integers or text at one go."""
    if pt.is_integer(column.type) or pt.is_string(column.type):
        return plain_column(column)
    return [plain_key(value) for value in column]


def key_names(on: On) -> tuple[list[str], list[str]]:
    """The key columns of the stream and of the master, place by place."""
    if isinstance(on, str):
        return [on], [on]
    if isinstance(on, Mapping):
        return list(on.keys()), list(on.values())
    return list(on), list(on)


def chosen_columns(columns: Columns, master: pa.Schema, keys: Sequence[str]) -> list[tuple[str, str]]:
    """Which master columns come out, in order, each with its output name."""
    if columns is None or isinstance(columns, Mapping):
        renamed = columns or {}
        return [(name, renamed.get(name, name)) for name in master.names if name not in keys]
    return [(item, item) if isinstance(item, str) else (item[0], item[1]) for item in columns]


def double_loop(stream_keys: Sequence[Row], master_keys: Sequence[Row], null_safe: bool) -> list[list[int]]:
    """For every stream row the numbers of the master rows it matches: each is compared with each."""
    matches = []
    for stream_key in stream_keys:
        found = []
        for number, master_key in enumerate(master_keys):
            if stream_key == master_key and (null_safe or None not in stream_key):
                found.append(number)
        matches.append(found)
    return matches


def dictionary_loop(stream_keys: Sequence[Row], master_keys: Sequence[Row], null_safe: bool) -> list[list[int]]:
    """The same as `double_loop`, for cases too large for it; a test holds the two together."""
    numbers: dict[Row, list[int]] = {}
    for number, master_key in enumerate(master_keys):
        numbers.setdefault(master_key, []).append(number)
    return [numbers.get(key, []) if null_safe or None not in key else [] for key in stream_keys]


def reference_join(
    stream: pa.Table,
    master: pa.Table,
    on: On,
    how: str = "inner",
    columns: Columns = None,
    where: Where | None = None,
    null_safe: bool = False,
    match_column: str | None = None,
) -> Expected:
    """The answer of the join, computed slowly and obviously."""
    how = KINDS[how]
    stream_on, master_on = key_names(on)
    payload = chosen_columns(columns, master.schema, master_on) if how in ("inner", "left") else []
    payload_rows = plain_rows(master.select([name for name, _ in payload]))
    master_keys = plain_keys(master, master_on)
    if where is not None:
        seen = [where(dict(zip(master.column_names, row, strict=True))) for row in plain_rows(master)]
        payload_rows = list(itertools.compress(payload_rows, seen))
        master_keys = list(itertools.compress(master_keys, seen))
    small = stream.num_rows * len(master_keys) <= PAIRS_BY_DOUBLE_LOOP
    loop = double_loop if small else dictionary_loop
    matches = loop(plain_keys(stream, stream_on), master_keys, null_safe)
    rows: Counter[Row] = Counter()
    for stream_row, found in zip(plain_rows(stream), matches, strict=True):
        flag = () if match_column is None else (bool(found),)
        if how in ("inner", "left"):
            for number in found:
                rows[(*stream_row, *payload_rows[number], *flag)] += 1
        if how == "left" and not found:
            rows[(*stream_row, *(None for _ in payload), *flag)] += 1
        if how == ("left_semi" if found else "left_anti"):
            rows[(*stream_row, *flag)] += 1
    return Expected(_schema(stream.schema, master.schema, payload, match_column), rows)


def _schema(
    stream: pa.Schema, master: pa.Schema, payload: Sequence[tuple[str, str]], match_column: str | None
) -> pa.Schema:
    """Stream columns, then the chosen master columns, then the match column."""
    fields = [pa.field(field.name, field.type) for field in stream]
    fields += [pa.field(output, master.field(name).type) for name, output in payload]
    fields += [] if match_column is None else [pa.field(match_column, pa.bool_())]
    return pa.schema(fields)


def difference(batches: Iterable[pa.RecordBatch], expected: Expected, shown: int = 5) -> str:
    """What is wrong with an answer, in words; empty when it is right."""
    rows: Counter[Row] = Counter()
    wanted = [(field.name, field.type) for field in expected.schema]
    for batch in batches:
        came = [(field.name, field.type) for field in batch.schema]
        if came != wanted:
            return f"columns differ\n  wanted {_names(wanted)}\n  got    {_names(came)}"
        rows.update(plain_rows(batch))
    missing, surplus = expected.rows - rows, rows - expected.rows
    if not missing and not surplus:
        return ""
    lines = [f"{rows.total()} rows came, {expected.rows.total()} were wanted; columns {expected.schema.names}"]
    for title, counter in (("missing", missing), ("not wanted", surplus)):
        lines.append(f"{counter.total()} {title}:")
        lines += [f"  {times} x {str(row)[:400]}" for row, times in counter.most_common(shown)]
    return "\n".join(lines)


def _names(fields: Sequence[tuple[str, pa.DataType]]) -> str:
    return ", ".join(f"{name}: {kind}" for name, kind in fields)


def same_multiset(batches: Iterable[pa.RecordBatch], expected: Expected) -> None:
    """Fail, showing the difference, unless the batches hold exactly the expected rows."""
    wrong = difference(batches, expected)
    assert not wrong, wrong
