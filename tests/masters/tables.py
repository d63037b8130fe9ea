"""Tables that tests build masters from, and the bag of rows that a master must give back."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

LONG = "long " * 2000
DAY = dt.date(2024, 2, 29)
MOMENT = dt.datetime(2024, 2, 29, 12, 30, 15, 123456, tzinfo=dt.UTC)
NAIVE = MOMENT.replace(tzinfo=None)

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bool": (pa.bool_(), [True, False]),
    **{f"int{n}": (getattr(pa, f"int{n}")(), [-(2 ** (n - 1)), 0, 2 ** (n - 1) - 1]) for n in (8, 16, 32, 64)},
    **{f"uint{n}": (getattr(pa, f"uint{n}")(), [0, 2**n - 1]) for n in (8, 16, 32, 64)},
    "float16": (pa.float16(), [np.float16(0.5), np.float16(-2)]),
    "float32": (pa.float32(), [0.5, -0.0, float("inf")]),
    "float64": (pa.float64(), [0.1, -0.0, float("-inf")]),
    "decimal(5,2)": (pa.decimal128(5, 2), [decimal.Decimal("-999.99"), decimal.Decimal("0.01")]),
    "decimal(38,10)": (pa.decimal128(38, 10), [decimal.Decimal("-1234567890123456789.0123456789")]),
    "decimal(76,0)": (pa.decimal256(76, 0), [decimal.Decimal(10) ** 75, decimal.Decimal(-1)]),
    "string": (pa.string(), ["", "a", "ü€😀", LONG]),
    "large_string": (pa.large_string(), ["", "b"]),
    "string_view": (pa.string_view(), ["", "c", LONG]),
    "binary": (pa.binary(), [b"", b"\x00\xff"]),
    "large_binary": (pa.large_binary(), [b"d"]),
    "binary_view": (pa.binary_view(), [b"e" * 100]),
    "fixed_size_binary": (pa.binary(3), [b"abc", b"\x00\x00\x00"]),
    "date32": (pa.date32(), [DAY]),
    "date64": (pa.date64(), [DAY]),
    "time32": (pa.time32("ms"), [dt.time(1, 2, 3, 4000)]),
    "time64": (pa.time64("us"), [dt.time(23, 59, 59, 999999)]),
    **{f"timestamp[{unit}]": (pa.timestamp(unit), [0, -1, 2**31]) for unit in ("s", "ms", "us", "ns")},
    "timestamp[us, UTC]": (pa.timestamp("us", "UTC"), [MOMENT]),
    "timestamp[ns, Berlin]": (pa.timestamp("ns", "Europe/Berlin"), [MOMENT]),
    "duration": (pa.duration("us"), [dt.timedelta(days=-1), dt.timedelta(microseconds=1)]),
    "interval": (pa.month_day_nano_interval(), [(1, 2, 3)]),
    "null": (pa.null(), [None]),
    "list": (pa.list_(pa.int32()), [[], [1, None, 3]]),
    "large_list": (pa.large_list(pa.string()), [["a", None], []]),
    "list_view": (pa.list_view(pa.int64()), [[1], []]),
    "fixed_size_list": (pa.list_(pa.float32(), 2), [[0.5, 1.5]]),
    "struct": (pa.struct([("x", pa.int8()), ("y", pa.string())]), [{"x": 1, "y": None}, {"x": None, "y": "z"}]),
    "map": (pa.map_(pa.string(), pa.int32()), [[("a", 1)], []]),
    "nested": (pa.list_(pa.struct([("k", pa.list_(pa.string()))])), [[{"k": ["p", None]}, None], []]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["red", "green"]),
    "run_end_encoded": (pa.run_end_encoded(pa.int32(), pa.int64()), [7, 8]),
    "uuid": (pa.uuid(), [uuid.UUID(int=7).bytes]),
}


def column(kind: pa.DataType, values: list[Any], rows: int) -> pa.Array:
    """So many rows of these values and nulls in turn."""
    cycle = [*values, None]
    wanted = [cycle[i % len(cycle)] for i in range(rows)]
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, pa.array(wanted, kind.storage_type))
    if pa.types.is_run_end_encoded(kind):
        ends = pa.array(range(1, rows + 1), kind.run_end_type)
        return pa.RunEndEncodedArray.from_arrays(ends, pa.array(wanted, kind.value_type))
    return pa.array(wanted, kind)


def every_type(rows: int = 23) -> pa.Table:
    """A table with a column of every type, and `id` as a key."""
    columns = {name: column(kind, values, rows) for name, (kind, values) in VALUES.items()}
    return pa.table({"id": pa.array(range(rows), pa.int64()), **columns})


def bag(batches: Iterable[pa.RecordBatch] | pa.Table) -> Counter[str]:
    """Rows with their counts, whatever their order."""
    batches = batches.to_batches() if isinstance(batches, pa.Table) else batches
    return Counter(repr(row) for batch in batches for row in batch.to_pylist())
