"""Byte strings side by side: flags and groups put on and taken off again."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from semistream.parts import cells
from tests.parts.made import ints

VALUES = st.lists(st.none() | st.binary(max_size=12), max_size=12)
GROUPS = st.lists(st.none() | st.lists(st.binary(max_size=6), max_size=5), max_size=10)


def joined(values, before=b""):
    """Starts, bytes and validity of values, behind some other bytes."""
    plain = [value or b"" for value in values]
    starts = np.cumsum([len(before)] + [len(value) for value in plain]).astype(np.int64)
    data = np.frombuffer(before + b"".join(plain) + b"\0" * 8, np.uint8)
    return starts, data, np.array([value is not None for value in values], np.uint8)


def cut(starts, data):
    """The values again."""
    return [data[a:b].tobytes() for a, b in itertools.pairwise(starts)]


@given(values=VALUES, before=st.binary(max_size=3))
def test_flags_keep_a_missing_value_apart_from_an_empty_one(values, before):
    starts, data, valid = joined(values, before)
    ends, flagged = cells.flag_cells(starts, data, valid)
    assert cut(ends, flagged) == [b"\0" if value is None else b"\1" + value for value in values]
    present = cells.read_flags(ends, flagged)
    assert present.tolist() == valid.tolist()
    plain_starts, plain = cells.unflag_cells(ends, flagged, present, -1)
    assert cut(plain_starts, plain) == [value or b"" for value in values]


@given(st.lists(st.none() | st.binary(min_size=3, max_size=3), max_size=12))
def test_values_of_fixed_size_leave_room_for_missing_ones(values):
    starts, data, valid = joined(values)
    ends, flagged = cells.flag_cells(starts, data, valid)
    plain_starts, plain = cells.unflag_cells(ends, flagged, valid, 3)
    assert plain_starts.tolist() == [3 * i for i in range(len(values) + 1)]
    assert cut(plain_starts, plain) == [value or bytes(3) for value in values]


def test_an_empty_cell_is_a_missing_value():
    assert cells.read_flags(ints(0, 0, 1), np.array([1], np.uint8)).tolist() == [0, 1]


@given(GROUPS)
def test_groups_of_values_become_one_cell_a_row_and_come_back(rows):
    children = [value for row in rows for value in row or []]
    starts, child, _ = joined(children)
    groups = np.cumsum([0] + [len(row or []) for row in rows]).astype(np.int64)
    valid = np.array([row is not None for row in rows], np.uint8)
    sizes = [1 + sum(4 + len(value) for value in row or []) for row in rows]
    ends = np.cumsum([0, *sizes]).astype(np.int64)
    data = np.zeros(int(ends[-1]) + 1, np.uint8)
    data[ends[:-1]] = valid
    cursor = ends[:-1] + 1
    cells.join_cells(starts, child, groups, valid, data, cursor)
    assert cursor.tolist() == ends[1:].tolist()
    counts = cells.count_cells(ends, data, valid)
    assert counts.tolist() == [len(row or []) for row in rows]
    found_starts, found = cells.split_cells(ends[:-1] + 1, data, counts, valid)
    assert cut(found_starts, found) == children


def test_splitting_goes_on_where_it_stopped():
    """Fields of structs lie one behind the other: the cursor moves over one field of every row at a time."""
    fields = [[b"a", b"bb"], [b"", b"c" * 300]]
    data = b"".join(len(value).to_bytes(4, "little") + value for row in fields for value in row)
    cursor = ints(0, sum(4 + len(value) for value in fields[0]))
    block = np.frombuffer(data, np.uint8)
    for number in range(2):
        found = cells.split_cells(cursor, block, ints(1, 1), np.ones(2, np.uint8))
        assert cut(*found) == [row[number] for row in fields]
    assert cursor.tolist() == [11, len(data)]


def test_the_children_of_a_missing_row_are_empty_and_no_byte_is_read():
    cursor, behind_the_end = ints(0, 5), ints(0, 5)
    data = np.frombuffer(b"\1\0\0\0x", np.uint8)
    found = cells.split_cells(cursor, data, ints(1, 2), np.array([1, 0], np.uint8))
    assert cut(*found) == [b"x", b"", b""]
    assert cursor.tolist() == [5, behind_the_end[1]]
