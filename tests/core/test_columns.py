"""Arrow columns as plain arrays: borrowed where they can be, right whatever Arrow's layout is."""

from __future__ import annotations

import decimal
import gc

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from semistream import columns
from semistream.errors import ColumnError
from tests.core.values import PLAIN, VALUES, longer, same_values


@pytest.mark.parametrize("name", list(VALUES))
def test_a_wrapped_column_is_unwrapped_and_wrapped_again(name):
    column = longer(name)
    plain = columns.plain_array(column)
    assert columns.plain_array(plain) is plain
    assert len(plain) == len(column)
    assert same_values(columns.restore(plain, column.type), column)


def test_wrappers_in_wrappers_are_all_taken_off():
    runs_of_uuids = pc.run_end_encode(pa.array([b"a" * 16, None], pa.binary(16)))
    codes = pa.DictionaryArray.from_arrays(pa.array([1, 0, None]), pa.array(["x" * 20, None], pa.string_view()))
    assert columns.plain_array(runs_of_uuids).to_pylist() == [b"a" * 16, None]
    assert columns.plain_array(codes).to_pylist() == [None, "x" * 20, None]


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64", "uint64", "float64", "date32", "decimal256"])
def test_columns_of_fixed_width_are_borrowed_and_not_copied(name):
    column = PLAIN[name].slice(1)
    plain = columns.to_plain(column)
    assert plain.values.nbytes == len(column) * (column.type.bit_width // 8)
    assert plain.values.ctypes.data == column.buffers()[1].address + column.type.bit_width // 8
    assert plain.valid.tolist() == [0] + [1] * (len(column) - 1)


def test_a_borrowed_buffer_lives_as_long_as_the_array():
    array = columns.borrow(pa.array(range(1000), pa.int64()).buffers()[1])
    gc.collect()
    other = [np.full(8000, 0xAB, np.uint8) for _ in range(50)]
    assert array.view(np.int64)[:1000].tolist() == list(range(1000))
    del other
    assert array.flags.writeable, "one version of every kernel is enough"
    assert columns.borrow(None).size == columns.borrow(pa.py_buffer(b"")).size == 0


def test_buffers_that_begin_anywhere_are_read_right():
    data = pa.py_buffer(b"?" + np.array([1, -2, 3], np.int64).tobytes()).slice(1)
    column = pa.Array.from_buffers(pa.int64(), 3, [None, data])
    assert columns.to_plain(column).values.view(np.int64).tolist() == [1, -2, 3]
    offsets = pa.py_buffer(b"???" + np.array([0, 1, 1, 3], np.int32).tobytes()).slice(3)
    text = pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"abc")])
    plain = columns.to_plain(text)
    assert [plain.data[a:b].tobytes() for a, b in zip(plain.starts, plain.starts[1:], strict=False)] == [
        b"a",
        b"",
        b"bc",
    ]


def test_an_empty_text_column_needs_no_offsets():
    column = pa.Array.from_buffers(pa.string(), 0, [None, pa.py_buffer(b""), pa.py_buffer(b"")])
    assert columns.to_plain(column).starts.tolist() == [0]


MAKE = {
    "bool": lambda i: i % 2 == 1,
    "int64": lambda i: i,
    "string": str,
    "list<item: int8>": lambda i: [i],
}


@pytest.mark.parametrize("kind", [pa.bool_(), pa.int64(), pa.string(), pa.list_(pa.int8())], ids=str)
@pytest.mark.parametrize("offset", [0, 1, 7, 8, 9, 15, 17])
def test_validity_and_bools_are_read_at_any_bit(kind, offset):
    values = [None if i % 3 == 0 else MAKE[str(kind)](i) for i in range(40)]
    plain = columns.to_plain(pa.array(values, kind).slice(offset, 11))
    expected = values[offset : offset + 11]
    assert plain.valid.tolist() == [int(value is not None) for value in expected]
    if pa.types.is_boolean(kind):
        assert [bool(v) for v, ok in zip(plain.values, plain.valid, strict=True) if ok] == [
            value for value in expected if value is not None
        ]


def test_nothing_missing_means_no_validity():
    assert columns.to_plain(pa.array([1, 2])).valid is None
    assert columns.to_plain(pa.array([None, 1, 2]).slice(1)).valid is None


@pytest.mark.parametrize("digits", ["0", "-1", "999999999999999999", "-999999999999999999"])
def test_a_decimal_of_18_digits_survives_in_8_bytes(digits):
    column = pa.array([decimal.Decimal(digits)], pa.decimal128(18, 0))
    plain = columns.to_plain(column)
    assert plain.values.itemsize == 8
    assert columns.from_fixed(column.type, 1, plain.values.view(np.uint8), None).equals(column)


def test_another_schema_is_told_by_its_columns_and_its_place():
    first, second = (
        pa.schema([("a", pa.int64()), ("b", pa.string())]),
        pa.schema([("a", pa.int64()), ("b", pa.binary())]),
    )
    message = "batch at row 17 has another schema than the first: b binary came, a int64, b string was needed"
    with pytest.raises(ColumnError, match=message):
        columns.refuse_schema(first, second, 17)
    with pytest.raises(ColumnError, match="a came, a int64, b string was needed"):
        columns.refuse_schema(first, pa.schema([("a", pa.int64())]), 0)
