"""Values of SQLite as Arrow columns: converted without loss, or an error that names row, column and value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import pyarrow as pa

from semistream.errors import SourceError

_EPOCH: Final = datetime.fromisoformat("1970-01-01")


def quoted(name: str) -> str:
    """`name` as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class Relation:
    """A table or query to read: its SQL, and the Arrow type and declaration of every column."""

    where: str
    sql: str
    schema: pa.Schema
    declared: tuple[str, ...]

    def columns(self, table: str = "") -> str:
        """SQL of all columns, in order."""
        return ", ".join((f"{table}." if table else "") + quoted(name) for name in self.schema.names)


def to_batch(rows: Sequence[tuple[Any, ...]], relation: Relation, first: int = 0) -> pa.RecordBatch:
    """Rows as fetched -> a batch in the relation's types; `first` is the number of the first row, for error messages."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(relation.schema)
    arrays = []
    for place, wanted in enumerate(relation.schema):
        try:
            arrays.append(_to_array(columns[place], wanted.type))
        except (pa.ArrowException, ValueError, TypeError, InvalidOperation, OverflowError) as exc:
            row = next(i for i, value in enumerate(columns[place]) if not _fits(value, wanted.type))
            declared = relation.declared[place] or "no declared type"
            raise SourceError(
                f"{relation.where}: column {wanted.name} ({declared}, read as {wanted.type}) holds "
                f"{columns[place][row]!r:.60} in row {first + row + 1}, which does not fit; correct it, or CAST the column in ?query="
            ) from exc
    return pa.RecordBatch.from_arrays(arrays, schema=relation.schema)


def _fits(value: Any, kind: pa.DataType) -> bool:
    try:
        _to_array((value,), kind)
    except (pa.ArrowException, ValueError, TypeError, InvalidOperation, OverflowError):
        return False
    return True


def _to_array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    convert = _CONVERT.get(kind.id)
    if convert is not None:
        values = [None if value is None else convert(value) for value in values]
    return pa.array(values, kind)


def _to_bool(value: Any) -> bool:
    if value not in (0, 1):
        raise ValueError(value)
    return bool(value)


def _to_int(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError(value)
    return value


def _to_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _to_bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError(value)
    return value


def _to_moment(value: Any) -> datetime:
    """ISO text, or whole seconds since 1970: the two of SQLite's three ways that are exact."""
    if isinstance(value, int):
        return _EPOCH + timedelta(seconds=value)
    moment = datetime.fromisoformat(_to_text(value))
    return moment if moment.tzinfo is None else moment.astimezone(UTC)


_CONVERT: Final[dict[int, Callable[[Any], Any]]] = {
    pa.bool_().id: _to_bool,
    pa.int64().id: _to_int,
    pa.string().id: _to_text,
    pa.binary().id: _to_bytes,
    pa.date32().id: date.fromisoformat,
    pa.time64("us").id: time.fromisoformat,
    pa.timestamp("us").id: _to_moment,
    pa.decimal128(1).id: lambda value: Decimal(str(value)),
    pa.decimal256(1).id: lambda value: Decimal(str(value)),
}
