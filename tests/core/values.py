"""One small column of every Arrow type that rows can carry, each with missing values where the type has them."""

from __future__ import annotations

import decimal
import functools

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_D = decimal.Decimal


def view(numbers, kind):
    """Numbers seen as values of a type of their width."""
    return pa.array(numbers, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)


def extension(kind, storage):
    """An extension array."""
    return pa.ExtensionArray.from_storage(kind, storage)


PLAIN = {
    "null": pa.nulls(4),
    "bool": pa.array([True, None, False, True]),
    "int8": pa.array([1, None, -128, 127], pa.int8()),
    "int16": pa.array([1, None, -(2**15), 2**15 - 1], pa.int16()),
    "int32": pa.array([1, None, -(2**31), 2**31 - 1], pa.int32()),
    "int64": pa.array([1, None, -(2**63), 2**63 - 1], pa.int64()),
    "uint8": pa.array([1, None, 255], pa.uint8()),
    "uint16": pa.array([1, None, 2**16 - 1], pa.uint16()),
    "uint32": pa.array([1, None, 2**32 - 1], pa.uint32()),
    "uint64": pa.array([1, None, 2**64 - 1], pa.uint64()),
    "float16": pa.array(np.array([0.5, np.nan, -0.0], np.float16)),
    "float32": pa.array([0.5, None, float("nan"), -0.0], pa.float32()),
    "float64": pa.array([0.1, None, float("nan"), -0.0], pa.float64()),
    "date32": view([0, None, -719_162], pa.date32()),
    "date64": view([0, None, 86_400_000], pa.date64()),
    "time32": view([1, None, 86_399], pa.time32("s")),
    "time64": view([1, None, 86_399_999_999], pa.time64("us")),
    "timestamp": view([1, None, -(2**50)], pa.timestamp("us")),
    "instant": view([1, None, 2**50], pa.timestamp("us", "Europe/Berlin")),
    "duration": view([1, None, -(2**62)], pa.duration("ns")),
    "interval": pa.array([(1, 2, 3), None, (4, 5, 6)], pa.month_day_nano_interval()),
    "decimal32": pa.array([_D("1.50"), None, _D("-999.99")], pa.decimal32(5, 2)),
    "decimal64": pa.array([_D("1.50"), None, _D("-999.99")], pa.decimal64(15, 2)),
    "narrow decimal": pa.array([_D("1.50"), None, _D(10**16) - _D("0.01"), -_D(10**15)], pa.decimal128(18, 2)),
    "long decimal": pa.array([_D(1), None, -(_D(10) ** 30)], pa.decimal128(38, 3)),
    "decimal256": pa.array([_D(1), None, -(_D(10) ** 50)], pa.decimal256(60, 5)),
    "string": pa.array(["", None, "é" * 9, "a\0b"]),
    "large string": pa.array(["", None, "x" * 70], pa.large_string()),
    "string view": pa.array(["short", None, "longer than twelve bytes", ""], pa.string_view()),
    "binary": pa.array([b"", None, b"\0\xff"]),
    "large binary": pa.array([b"", None, b"\0\xff"], pa.large_binary()),
    "binary view": pa.array([b"short", None, b"longer than twelve bytes"], pa.binary_view()),
    "binary(1)": pa.array([b"a", None, b"b"], pa.binary(1)),
    "binary(3)": pa.array([b"abc", None, b"xyz"], pa.binary(3)),
    "binary(16)": pa.array([b"a" * 16, None, b"b" * 16], pa.binary(16)),
    "binary(0)": pa.array([b"", None, b""], pa.binary(0)),
}
NESTED = {
    "list": pa.array([[1, None], None, [], [3]], pa.list_(pa.int32())),
    "list of nothing": pa.array([[None], None, []], pa.list_(pa.null())),
    "list of bools": pa.array([[True, None], None, [False]], pa.list_(pa.bool_())),
    "list of text": pa.array([["a", None, ""], None, ["b" * 40]], pa.list_(pa.string())),
    "list of views": pa.array([["a", None, ""], None, ["b" * 40]], pa.list_(pa.string_view())),
    "large list": pa.array([["x"], None, [], ["", None]], pa.large_list(pa.string())),
    "list view": pa.array([[1], None, [2, 3], []], pa.list_view(pa.int32())),
    "large list view": pa.array([["1"], None, ["2", "3"]], pa.large_list_view(pa.string())),
    "fixed list": pa.array([[1, None], None, [3, 4]], pa.list_(pa.int16(), 2)),
    "fixed list of nothing": pa.array([[], None, []], pa.list_(pa.int8(), 0)),
    "list of required": pa.array([[1], [], [2]], pa.list_(pa.field("item", pa.int8(), nullable=False))),
    "struct": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": None}], pa.struct({"a": pa.int64(), "b": pa.string()})),
    "empty struct": pa.array([{}, None, {}], pa.struct([])),
    "struct of views": pa.array(
        [{"a": "x", "b": [1]}, None, {"a": None, "b": None}],
        pa.struct({"a": pa.string_view(), "b": pa.list_view(pa.int8())}),
    ),
    "map": pa.array([[("k", 1.5), ("l", None)], None, []], pa.map_(pa.string(), pa.float64())),
    "map of views": pa.array([[("a", "b")], None, []], pa.map_(pa.string(), pa.string_view())),
    "sorted map": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int8(), keys_sorted=True)),
    "deep": pa.array(
        [[{"a": [["x", None], None]}], None, [], [None, {"a": None}]],
        pa.list_(pa.struct({"a": pa.list_(pa.list_(pa.string()))})),
    ),
    "map of lists": pa.array([[(1, [_D("0.50"), None])], None, [(2, None)]], pa.map_(pa.int16(), pa.list_(pa.decimal128(9, 2)))),
    "list of codes": pa.array([["a"], None, ["b", None]], pa.list_(pa.dictionary(pa.int32(), pa.string()))),
}  # fmt: skip
WRAPPED = {
    "coded text": pa.array(["red", None, "green", "red"]).dictionary_encode(),
    "coded numbers": pa.array([5, None, 7]).dictionary_encode(),
    "coded in a byte": pa.array(["a", None, "b"]).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string())),
    "coded with a missing value": pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None]), pa.array(["a", None, "b"])),
    "runs": pc.run_end_encode(pa.array([1, 1, None, 2])),
    "runs of text": pc.run_end_encode(pa.array(["a", "a", None]), run_end_type=pa.int16()),
    "uuid": extension(pa.uuid(), pa.array([b"a" * 16, None, b"b" * 16], pa.binary(16))),
    "json": extension(pa.json_(), pa.array(["1", None, "{}"])),
    "bool in a byte": extension(pa.bool8(), pa.array([1, None, 0], pa.int8())),
    "tensor": extension(pa.fixed_shape_tensor(pa.int8(), [2]), pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int8(), 2))),
}  # fmt: skip
WRAPPED |= {
    f"struct of {name}": pa.StructArray.from_arrays([WRAPPED[name]], ["a"])
    for name in ("coded text", "coded with a missing value", "runs", "uuid", "tensor")
}
VALUES = PLAIN | NESTED | WRAPPED


def same_values(left, right):
    """Whether two arrays have the same type and values; NaN is NaN, and -0.0 is not 0.0."""
    return left.type == right.type and repr(left.to_pylist()) == repr(right.to_pylist())


@functools.cache
def longer(name):
    """The column's values again and again, without their missing ones at first: 40 rows or so."""
    column = VALUES[name]
    return pa.concat_arrays([column.slice(0, 1)] * 3 + [column] * (40 // len(column)))


def without_nulls(column):
    """The same column without missing values. (Arrow's own filter does not know all types.)"""
    present = [column.slice(i, 1) for i, value in enumerate(column.to_pylist()) if value is not None]
    return pa.concat_arrays([column.slice(0, 0), *present])
