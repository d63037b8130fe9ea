"""Arrow columns -> packed rows -> Arrow columns, for every type."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream import arranging
from semistream.errors import ColumnError
from semistream.parts.memory import view
from semistream.records import RowCodec, Stage
from tests.core.values import VALUES, longer, same_values, without_nulls

every_type = pytest.mark.parametrize("name", list(VALUES))


def packed(codec, batch, picks=None, seed=0):
    """The picked rows somewhere in a slab full of noise: memory, row places, heap places."""
    encoded = codec.encode(batch)
    picks = np.arange(batch.num_rows) if picks is None else np.array(picks, np.int64)
    sizes = np.zeros(picks.size, np.int64) if encoded.sizes is None else encoded.sizes[picks]
    step = -(-codec.width // 8) * 8 + 8
    memory = view(np.random.default_rng(seed).integers(0, 256, 8 * (2 + picks.size * step // 8), np.uint8))
    heap = np.cumsum(sizes + 3) - sizes
    memory = view(
        np.concatenate([memory.b1, np.full(-(-int(sizes.sum() + 3 * picks.size + 3) // 8) * 8, 0xEE, np.uint8)])
    )
    order = random.Random(seed).sample(range(picks.size), picks.size)
    row_at = np.array(order, np.int64) * step + 8
    heap_at = 8 * (2 + picks.size * step // 8) + heap
    codec.pack(encoded, picks, memory, row_at, heap_at)
    return memory, row_at, heap_at


def round_trip(batch, picks=None, seed=0):
    """The picked rows again."""
    codec = RowCodec(batch.schema)
    return codec.unpack(*packed(codec, batch, picks, seed))


def of(column, nullable=True):
    """A batch of one column."""
    return pa.record_batch([column], schema=pa.schema([pa.field("c", column.type, nullable=nullable)]))


@every_type
def test_a_column_comes_back_as_it_was(name):
    column = longer(name)
    (found,) = round_trip(of(column))
    found.validate(full=True)
    assert same_values(found, column)


@every_type
@pytest.mark.parametrize(("start", "stop"), [(1, 3), (3, 4), (5, 30), (9, 9), (0, 0), (2, 1000)])
def test_a_slice_of_a_column_comes_back_alone(name, start, stop):
    column = longer(name)[start:stop]
    (found,) = round_trip(of(column))
    found.validate(full=True)
    assert same_values(found, column)


@every_type
def test_picked_rows_come_back_in_the_order_they_were_picked(name):
    column = longer(name)
    picks = random.Random(name).choices(range(len(column)), k=20)
    (found,) = round_trip(of(column), picks)
    values = column.to_pylist()
    assert repr(found.to_pylist()) == repr([values[pick] for pick in picks])


@pytest.mark.parametrize("name", [name for name in VALUES if name != "null"])
def test_a_column_that_is_never_missing_has_no_null_bit(name):
    column = VALUES[name].slice(0, 1)
    codec = RowCodec(of(column, nullable=False).schema)
    assert (codec.null_bytes, codec.columns[0].null_bit) == (0, 0)
    (found,) = round_trip(of(column, nullable=False))
    assert same_values(found, column)


@pytest.mark.parametrize("name", ["int64", "string", "list", "coded text", "coded with a missing value", "runs"])
def test_a_missing_value_in_a_column_declared_without_is_refused(name):
    column = VALUES[name]
    codec = RowCodec(of(column, nullable=False).schema)
    with pytest.raises(ColumnError, match="column 'c' is declared to have no nulls and has"):
        codec.encode(of(column, nullable=False))


@given(names=st.lists(st.sampled_from(sorted(VALUES)), max_size=12, unique=True), seed=st.integers(0, 99))
def test_any_columns_stand_side_by_side_in_a_row(names, seed):
    columns = {name: longer(name).slice(seed % 5, 20) for name in names}
    batch = pa.record_batch(list(columns.values()), names=names) if names else pa.record_batch({"x": pa.nulls(20)})
    for column, found in zip(batch.columns, round_trip(batch, seed=seed), strict=True):
        assert same_values(found, column)


@given(names=st.lists(st.sampled_from(sorted(VALUES)), max_size=12, unique=True), hidden=st.booleans())
def test_columns_in_a_row_are_aligned_and_do_not_overlap(names, hidden):
    schema = pa.schema([pa.field(name, VALUES[name].type, nullable=i % 3 != 2) for i, name in enumerate(names)])
    key = next((name for name in names if name.startswith("int")), None) if hidden else None
    codec = RowCodec(schema, in_words=key)
    used = np.zeros(codec.width, np.int64)
    for column in codec.columns:
        assert column.size == 0 or column.name != key
        if column.size in (2, 4, 8):
            assert column.offset % (4 if column.is_cell else column.size) == 0
        used[column.offset : column.offset + column.size] += 1
    bits = [(column.null_at, column.null_bit) for column in codec.columns if column.null_bit]
    assert len(set(bits)) == len(bits) == sum(field.nullable for field in schema)
    for at, bit in bits:
        assert codec.nulls_at <= at < codec.nulls_at + codec.null_bytes
        assert bit in (1, 2, 4, 8, 16, 32, 64, 128)
        used[at] = max(used[at], 2)
    assert used[used == 2].size <= codec.null_bytes
    assert codec.width % codec.align == 0
    assert sum(c.size for c in codec.columns) + codec.null_bytes <= codec.width


def test_a_schema_of_nothing_but_nulls_and_hidden_keys_takes_no_room():
    codec = RowCodec(pa.schema([pa.field("k", pa.int64(), nullable=False)]), in_words="k")
    assert (codec.width, codec.cells) == (0, [])
    codec = RowCodec(pa.schema([("k", pa.int64()), ("n", pa.null())]), in_words="k")
    assert codec.width == codec.null_bytes == 1
    assert RowCodec(pa.schema([])).width == 0


def test_only_the_named_columns_are_unpacked_in_the_order_of_their_names():
    batch = pa.record_batch({"a": [1, 2], "b": ["x", None], "c": [0.5, 1.5]})
    codec = RowCodec(batch.schema)
    found = codec.unpack(*packed(codec, batch), ["c", "b"])
    assert [column.to_pylist() for column in found] == [[0.5, 1.5], ["x", None]]


@every_type
def test_rows_of_a_batch_are_taken_whatever_their_type(name):
    column = longer(name)
    batch = pa.record_batch({"n": pa.array(range(len(column))), "c": column})
    picks = np.array([5, 1, 1, len(column) - 1])
    found = arranging.take(batch, picks)
    assert found.schema == batch.schema
    found.validate(full=True)
    values = column.to_pylist()
    assert repr(found["c"].to_pylist()) == repr([values[pick] for pick in picks])
    assert arranging.take(batch, picks[:0]).num_rows == 0


# ------------------------------------------------------------------------------------------------------------- stages


def stage_of(batch, rows, cell_rooms):
    codec = RowCodec(batch.schema)
    stage = Stage(codec)
    stage.open(rows, np.array(cell_rooms, np.int64))
    return stage, *packed(codec, batch)


@every_type
def test_rows_that_do_not_exist_come_out_as_nulls(name):
    column = without_nulls(longer(name))
    codec = RowCodec(of(column).schema)
    memory, row_at, heap_at = packed(codec, of(column))
    stage = Stage(codec)
    stage.open(row_at.size, stage.cell_bytes(memory, row_at))
    stage.add(memory, row_at[:5], heap_at[:5])
    stage.add_nothing(row_at[5:8].size)
    stage.add(memory, row_at[8:], heap_at[8:])
    (found,) = stage.close()
    found.validate(full=True)
    expected = [None if i in (5, 6, 7) else value for i, value in enumerate(column.to_pylist())]
    assert repr(found.to_pylist()) == repr(expected)


@every_type
def test_rows_added_in_parts_make_one_column(name):
    column = longer(name)
    codec = RowCodec(of(column).schema)
    memory, row_at, heap_at = packed(codec, of(column))
    stage = Stage(codec)
    stage.open(row_at.size, stage.cell_bytes(memory, row_at))
    for first, stop in ((0, 2), (2, 2), (2, 17), (17, row_at.size)):
        assert stage.fits(stop - first, stage.cell_bytes(memory, row_at[first:stop]))
        stage.add(memory, row_at[first:stop], heap_at[first:stop])
    assert stage.rows == row_at.size
    assert not stage.fits(1, stage.cell_bytes(memory, row_at[:1]))
    assert same_values(stage.close()[0], column)


def test_a_stage_says_when_rows_or_bytes_would_not_fit():
    batch = pa.record_batch({"a": ["12345", "1", ""], "b": ["", "12", "1"]})
    stage, memory, row_at, heap_at = stage_of(batch, 3, [6, 3])
    assert stage.cell_bytes(memory, row_at).tolist() == [6, 3]
    assert stage.fits(3, np.array([6, 3]))
    assert not stage.fits(4, np.array([0, 0]))
    assert not stage.fits(1, np.array([7, 0]))
    assert not stage.fits(1, np.array([0, 4]))
    stage.add(memory, row_at[:2], heap_at[:2])
    assert stage.fits(1, np.array([0, 1]))
    assert not stage.fits(1, np.array([1, 0]))
    assert not stage.fits(2, np.array([0, 0]))


def test_a_closed_stage_has_no_room_and_its_arrays_are_not_touched_by_the_next():
    batch = pa.record_batch({"a": ["x", None], "b": [1, None], "c": [True, None]})
    stage, memory, row_at, heap_at = stage_of(batch, 2, [1])
    stage.add(memory, row_at, heap_at)
    first = stage.close()
    assert (stage.room, stage.rows) == (0, 0)
    assert not stage.fits(1, np.array([0]))
    stage.open(2, np.array([2]))
    stage.add(memory, row_at[[0, 0]], heap_at[[0, 0]])
    second = stage.close()
    assert [a.to_pylist() for a in first] == [["x", None], [1, None], [True, None]]
    assert [a.to_pylist() for a in second] == [["x", "x"], [1, 1], [True, True]]
    assert [a.null_count for a in second] == [0, 0, 0]


def test_few_rows_do_not_keep_the_room_for_many_alive():
    batch = pa.record_batch({"a": ["text"], "b": [1.5], "c": [1], "d": [True]})
    stage, memory, row_at, heap_at = stage_of(batch, 10_000, [100_000])
    stage.add(memory, row_at, heap_at)
    assert sum(array.get_total_buffer_size() for array in stage.close()) < 200


def test_a_column_has_a_null_bitmap_only_when_something_is_missing():
    batch = pa.record_batch({"a": pa.array([1, 2]), "b": pa.array([1, None])})
    a, b = round_trip(batch)
    assert a.buffers()[0] is None
    assert b.buffers()[0] is not None
