"""Rows of bytes <-> columns, against slices of Python bytes."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream.parts import rows
from tests.parts.made import ints, new_memory

WIDTHS = (1, 2, 3, 4, 5, 8, 12, 16, 32)
BLOCKS = 300  # more rows than two blocks of the gathering loop


def scattered(count, width, seed):
    """Places of rows in a slab, in no order and with gaps, and the slab full of noise."""
    places = random.Random(seed).sample(range(2 * count), count)
    size = 8 + 2 * count * width
    memory = new_memory(size)
    memory.b1[:] = np.random.default_rng(seed).integers(0, 256, memory.b1.size)
    return memory, ints(*(8 + place * width for place in places))


def packed(memory, values, width, picks, row_at, offset):
    """Write values of any width with the kernel meant for it."""
    if width in (1, 2, 4, 8):
        view = {1: memory.b1, 2: memory.b2, 4: memory.b4, 8: memory.b8}[width]
        rows.pack_words(values.view(f"u{width}"), picks, view, row_at, offset)
    else:
        rows.pack_bytes(values, width, picks, memory.b1, row_at, offset)


def gathered(memory, row_at, columns, first=0, room=None):
    """The fixed columns (offset, size) of rows, each as bytes a row."""
    room = first + row_at.size if room is None else room
    sizes = [size for _, size in columns]
    places = np.cumsum([0] + [-(-size * room // 64) * 64 for size in sizes])
    target = rows.Target(new_memory(int(places[-1])), places[:-1].astype(np.int64))
    rows.gather_fixed(memory, row_at, rows.Columns(ints(*(o for o, _ in columns)), ints(*sizes)), target, first)
    return [
        target.memory.b1[at : at + room * size].reshape(room, size)
        for at, size in zip(places.tolist(), sizes, strict=False)
    ]


@pytest.mark.parametrize("width", WIDTHS)
def test_values_of_every_width_come_back_from_scattered_rows(width):
    memory, row_at = scattered(BLOCKS, 48, width)
    values = np.random.default_rng(1).integers(0, 256, BLOCKS * 2 * width).astype(np.uint8)
    picks = ints(*random.Random(2).sample(range(2 * BLOCKS), BLOCKS))
    before = memory.b1.copy()
    packed(memory, values, width, picks, row_at, 16)
    (found,) = gathered(memory, row_at, [(16, width)])
    assert (found == values.reshape(-1, width)[picks]).all()
    for at in row_at:
        before[at + 16 : at + 16 + width] = memory.b1[at + 16 : at + 16 + width]
    assert (before == memory.b1).all(), "no byte beside the column changed"


def test_many_columns_are_gathered_at_once():
    offsets = np.cumsum([0, 32, 16, 12, 8, 4, 5, 3, 2]).tolist()
    columns = list(zip(offsets, (32, 16, 12, 8, 4, 5, 3, 2, 1), strict=True))
    columns = [(-(-offset // size) * size if size in (2, 4, 8) else offset, size) for offset, size in columns]
    memory, row_at = scattered(BLOCKS, 96, 5)
    for (offset, size), found in zip(columns, gathered(memory, row_at, columns), strict=True):
        for i, at in enumerate(row_at):
            assert found[i].tobytes() == memory.b1[at + offset : at + offset + size].tobytes()


@given(first=st.integers(0, 5), count=st.integers(0, 4), width=st.sampled_from(WIDTHS))
def test_gathering_appends_behind_what_is_there(first, count, width):
    memory, row_at = scattered(count, 32, 9)
    (found,) = gathered(memory, row_at, [(0, width)], first, room=12)
    assert not found[:first].any()
    assert not found[first + count :].any()
    for i, at in enumerate(row_at):
        assert found[first + i].tobytes() == memory.b1[at : at + width].tobytes()


def test_null_bits_are_cleared_set_and_read_one_by_one():
    memory, row_at = scattered(40, 16, 3)
    rows.clear_nulls(memory.b1, row_at, 5, 2)
    picks, noise = np.arange(40), memory.b1.copy()
    missing = [np.array([(i * 7 + bit) % 3 == 0 for i in range(40)]) for bit in range(9)]
    for number, column in enumerate(missing):
        valid = (~column).astype(np.uint8)
        rows.pack_nulls(valid, picks, memory.b1, row_at, 5 + number // 8, 1 << number % 8)
    for number, column in enumerate(missing):
        valid = np.full(45, 9, np.uint8)
        found = rows.gather_valid(memory.b1, row_at, 5 + number // 8, 1 << number % 8, valid, 2)
        assert found == column.sum()
        assert (valid[2:42] == ~column).all()
        assert set(valid[:2].tolist() + valid[42:].tolist()) == {9}
    for at in row_at:
        noise[at + 5 : at + 7] = memory.b1[at + 5 : at + 7]
    assert (noise == memory.b1).all()


def test_without_a_null_bit_nothing_is_missing_and_no_byte_is_read():
    behind_the_end = 16
    valid = np.zeros(2, np.uint8)
    assert rows.gather_valid(np.full(16, 0xFF, np.uint8), ints(0, behind_the_end), 0, 0, valid, 0) == 0
    assert valid.tolist() == [1, 1]


@given(
    values=st.lists(st.lists(st.binary(max_size=20), min_size=3, max_size=3), max_size=12),
    wide=st.booleans(),
    cut=st.integers(0, 12),
)
def test_cells_come_back_whatever_their_lengths(values, wide, cut):
    """Three variable columns, rows in two calls."""
    count, width = len(values), 24
    memory, row_at = scattered(count, width, 4)
    memory = new_memory(memory.b1.size + 4096)
    heap_at = ints(*(2048 + 8 + 64 * i for i in range(count)))
    used, picks = np.zeros(count, np.int64), np.arange(count)
    for column in range(3):
        data = b"".join(value[column] for value in values)
        starts = np.cumsum([5] + [len(value[column]) for value in values]).astype(np.int64)
        source = np.frombuffer(b"-----" + data, np.uint8)
        rows.pack_cells(starts, source, picks, memory, row_at, heap_at, used, 8 * column)
    assert used.tolist() == [sum(map(len, value)) for value in values]
    for column in range(3):
        expected = [value[column] for value in values]
        assert rows.cell_bytes(memory.b4, row_at, 8 * column) == sum(map(len, expected))
        ends = np.zeros(count + 1, np.int64 if wide else np.int32)
        found = np.zeros(sum(map(len, expected)) or 1, np.uint8)
        for part, first in ((slice(0, cut), 0), (slice(cut, None), min(cut, count))):
            rows.gather_cells(memory, row_at[part], heap_at[part], 8 * column, ends, found, first)
        text = found.tobytes()
        assert [text[a:b] for a, b in itertools.pairwise(ends)] == expected
