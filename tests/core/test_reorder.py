"""The reorder buffer against sorting."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream.reorder import Reorder
from tests.core.values import VALUES, longer

SCHEMA = pa.schema([("position", pa.int64()), ("number", pa.int64())])


def batch_of(pairs):
    return pa.record_batch([[p for p, _ in pairs], [n for _, n in pairs]], schema=SCHEMA)


def new_reorder(window, rows_per_key=1, schema=SCHEMA):
    """With a window of so many positions."""
    reorder = Reorder(schema, 10**6, 1.0, rows_per_key)
    while reorder.window > window:
        reorder = Reorder(schema, reorder._given_bytes * window // reorder.window, 1.0, rows_per_key)
    assert reorder.window == window
    return reorder


@given(
    seed=st.integers(0, 10**6),
    window=st.sampled_from([1, 2, 5, 40, 1000]),
    most=st.integers(0, 4),
    count=st.integers(0, 120),
)
def test_rows_leave_in_the_order_of_their_positions_and_none_is_lost(seed, window, most, count):
    """Positions come in, each gives some rows in some batches, and finishes; at any moment the finished prefix may leave."""
    dice, reorder = random.Random(seed), new_reorder(10_000)
    reorder.window = reorder._ring = window
    reorder._done = np.zeros(window, np.uint8)
    expected, found, waiting, read = [], [], {}, 0
    while read < count or waiting:
        while read < count and read < reorder.limit and dice.random() < 0.7:
            waiting[read] = dice.randint(0, most)
            read += 1
        chosen = dice.sample(sorted(waiting), dice.randint(0, len(waiting)))
        if rows := [(position, n) for position in chosen for n in range(waiting[position])]:
            dice.shuffle(rows)
            cut = dice.randint(0, len(rows))
            for part in (rows[:cut], rows[cut:]):
                if part:
                    reorder.put(batch_of(part), np.array([position for position, _ in part], np.int64))
            reorder.window = window
            expected += rows
        for position in chosen:
            del waiting[position]
        reorder.finish(np.array(chosen, np.int64), read)
        due = min(waiting, default=read)
        assert reorder.limit == due + window
        if reorder.ready or dice.random() < 0.3:
            for batch in reorder.release():
                assert batch.num_rows
                found += zip(batch["position"].to_pylist(), batch["number"].to_pylist(), strict=True)
            assert all(position < due for position, _ in found)
    for batch in reorder.release():
        found += zip(batch["position"].to_pylist(), batch["number"].to_pylist(), strict=True)
    assert [position for position, _ in found] == sorted(position for position, _ in expected)
    assert sorted(found) == sorted(expected)


def test_rows_of_one_position_keep_the_order_they_came_in():
    reorder = new_reorder(100)
    reorder.put(batch_of([(1, 7), (0, 3)]), np.array([1, 0]))
    reorder.put(batch_of([(1, 1), (0, 9), (1, 5)]), np.array([1, 0, 1]))
    reorder.finish(np.array([0, 1]), 2)
    found = pa.Table.from_batches(reorder.release())
    assert found.to_pydict() == {"position": [0, 0, 1, 1, 1], "number": [3, 9, 7, 1, 5]}


def test_batches_that_leave_are_no_larger_than_those_that_came():
    reorder = new_reorder(1000)
    for start in range(0, 100, 10):
        reorder.put(batch_of([(p, p) for p in range(start, start + 10)]), np.arange(start, start + 10))
    reorder.finish(np.arange(100), 100)
    assert {batch.num_rows for batch in reorder.release()} == {10}


def test_nothing_leaves_twice():
    reorder = new_reorder(100)
    reorder.put(batch_of([(0, 1), (2, 2)]), np.array([0, 2]))
    reorder.finish(np.array([0, 1]), 3)
    assert [batch.to_pydict() for batch in reorder.release()] == [{"position": [0], "number": [1]}]
    assert list(reorder.release()) == []
    reorder.finish(np.array([2]), 3)
    assert [batch.to_pydict() for batch in reorder.release()] == [{"position": [2], "number": [2]}]


@pytest.mark.parametrize("name", list(VALUES))
def test_rows_of_any_type_are_put_in_order(name):
    column = longer(name)
    schema = pa.schema([("c", column.type)])
    reorder, values = new_reorder(1000, schema=schema), column.to_pylist()
    order = random.Random(1).sample(range(len(column)), len(column))
    for start in (1, 0):  # every second row, last ones first
        rows = [column.slice(at, 1) for at in order[start::2]]
        reorder.put(pa.record_batch([pa.concat_arrays(rows)], schema=schema), np.array(order[start::2]))
    for at in (20, len(column)):
        reorder.finish(np.arange(at - 20 if at == 20 else 20, at), len(column))
        found = [value for batch in reorder.release() for value in batch["c"].to_pylist()]
        assert repr(found) == repr(values[:20] if at == 20 else values[20:])


def test_the_window_is_what_fits_at_the_masters_highest_number_of_rows_a_key():
    windows = [Reorder(SCHEMA, 1 << 20, 100.0, rows).window for rows in (1, 10, 100)]
    assert windows[0] > 9 * windows[1] > 81 * windows[2] > 0
    assert Reorder(SCHEMA, 1000, 500.0, 10**9).window == 1
    assert Reorder(SCHEMA, 1 << 20, 0.0, 0).window > 0


def test_the_window_closes_when_rows_turn_out_wider_and_never_opens_beyond_its_ring():
    schema = pa.schema([("text", pa.string())])
    reorder = Reorder(schema, 1 << 20, 10.0, 1)
    ring = reorder.window
    reorder.put(pa.record_batch([["x" * 5000]], schema=schema), np.array([0]))
    assert reorder.window < ring / 100
    closed = reorder.window
    reorder.put(pa.record_batch([[""]], schema=schema), np.array([1]))
    assert reorder.window == closed, "the wide row is still held"
    reorder.finish(np.array([0, 1]), 2)
    assert sum(batch.num_rows for batch in reorder.release()) == 2
    reorder.put(pa.record_batch([[""]], schema=schema), np.array([2]))
    assert reorder.window == ring
