"""Nested values as byte strings."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream import nested
from tests.core.values import NESTED, VALUES, longer, same_values

every_type = pytest.mark.parametrize("name", [*NESTED, *(name for name in VALUES if name.startswith("struct of "))])


def again(column):
    """Encoded and decoded."""
    found = nested.decode(column.type, *nested.encode(column))
    found.validate(full=True)
    return found


@every_type
@pytest.mark.parametrize(("start", "count"), [(0, None), (1, 2), (3, 9), (2, 0)])
def test_values_come_back_from_any_slice(name, start, count):
    column = longer(name).slice(start, count)
    assert same_values(again(column), column)


@every_type
def test_a_slice_costs_what_it_holds_and_not_what_its_parent_holds(name):
    column = longer(name)
    for at in (3, 4):
        _, small = nested.encode(column.slice(at, 1))
        _, alone = nested.encode(
            pa.array([column[at].as_py()], column.type) if not wraps(name) else column.slice(at, 1)
        )
        assert small.size == alone.size


def wraps(name):
    """Whether Arrow cannot make the type from Python values."""
    return any(word in name for word in ("runs", "uuid", "tensor", "coded", "codes"))


@every_type
def test_a_value_is_missing_where_the_row_says_so(name):
    column = longer(name).slice(0, 3)
    found = nested.decode(column.type, *nested.encode(column), np.array([1, 0, 1], np.uint8))
    found.validate(full=True)
    expected = column.to_pylist()
    assert repr(found.to_pylist()) == repr([expected[0], None, expected[2]])


def test_what_lies_under_a_missing_parent_is_not_kept():
    inner = pa.array([1, 2, 3])
    hidden = pa.StructArray.from_arrays([inner], ["a"], mask=pa.array([False, True, False]))
    assert again(hidden).to_pylist() == [{"a": 1}, None, {"a": 3}]
    assert nested.encode(hidden)[1].size == 2 * (1 + 4 + 9) + 1
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3]), inner, mask=pa.array([False, True, False]))
    assert again(lists).to_pylist() == [[1], None, [3]]


def test_list_views_may_overlap_and_come_in_any_order():
    values = pa.array([1, 2, 3, 4])
    column = pa.ListViewArray.from_arrays(pa.array([2, 0, 1], pa.int32()), pa.array([2, 3, 0], pa.int32()), values)
    assert again(column).to_pylist() == [[3, 4], [1, 2, 3], []]


def test_the_encoding_is_the_one_that_masters_on_disk_were_written_with():
    def cell(column):
        starts, data = nested.encode(column)
        return data[starts[0] : starts[1]].tobytes()

    assert cell(pa.array([None], pa.list_(pa.int8()))) == b"\0"
    assert cell(pa.array([[]], pa.list_(pa.int8()))) == b"\1"
    assert cell(pa.array([[7, None]], pa.list_(pa.int8()))) == b"\1" + b"\2\0\0\0\1\7" + b"\1\0\0\0\0"
    pair = pa.array([{"a": "xy", "b": True}], pa.struct({"a": pa.string(), "b": pa.bool_()}))
    assert cell(pair) == b"\1" + b"\3\0\0\0\1xy" + b"\2\0\0\0\1\1"
    entry = b"\1" + b"\2\0\0\0\1k" + b"\3\0\0\0\1\5\0"
    assert (
        cell(pa.array([[("k", 5)]], pa.map_(pa.string(), pa.int16()))) == b"\1" + bytes([len(entry), 0, 0, 0]) + entry
    )


LEAVES = st.none() | st.text(max_size=4)
PAIR = st.fixed_dictionaries({"a": st.none() | st.lists(LEAVES, max_size=3), "b": st.none() | st.integers(-9, 9)})
DEEP = st.lists(st.none() | st.lists(st.none() | PAIR, max_size=3), max_size=6)
KIND = pa.list_(pa.struct({"a": pa.list_(pa.string()), "b": pa.int64()}))


@given(values=DEEP, start=st.integers(0, 3))
def test_any_tree_comes_back(values, start):
    column = pa.array(values, KIND).slice(start)
    assert again(column).to_pylist() == values[start:]
