"""Pages: cut, filled and read back; a byte-for-byte check of what the module's drawing says."""

from __future__ import annotations

import itertools
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream.parts import page
from tests.parts.made import EDGES, ints, pages_of, plain_rows

HEAPS = st.lists(st.binary(max_size=90), max_size=30)


def need(rows, first, stop):
    """Bytes a page of these rows takes."""
    return 32 + (stop - first) * (8 + rows.width) + int(rows.ends[stop] - rows.ends[first])


@given(heaps=HEAPS, width=st.sampled_from([0, 1, 3, 8, 24]), page_bytes=st.sampled_from([64, 128, 256]))
def test_pages_are_as_full_as_can_be_and_only_a_single_row_is_ever_too_wide(heaps, width, page_bytes):
    rows = plain_rows(range(len(heaps)), width, heaps)
    starts = np.full(len(heaps) + 1, -1, np.int64)
    pages = page.cut_pages(rows.ends, width, page_bytes, starts)
    bounds = starts[: pages + 1].tolist()
    assert bounds[0] == 0
    assert bounds[-1] == len(heaps)
    for first, stop in itertools.pairwise(bounds):
        assert first < stop
        assert need(rows, first, stop) <= page_bytes or stop == first + 1
        assert stop == len(heaps) or need(rows, first, stop + 1) > page_bytes


@given(heaps=HEAPS, width=st.sampled_from([8, 12, 24]), page_bytes=st.sampled_from([96, 256, 4096]))
def test_what_was_filled_in_is_read_back(heaps, width, page_bytes):
    """The cell of a row is its last 4 bytes before the page is filled: its start in the row's own heap, zero."""
    rows = plain_rows([EDGES[i % len(EDGES)] for i in range(len(heaps))], width, heaps)
    fixed = rows.fixed.reshape(-1, width)
    fixed[:, 4:8] = 0
    memory, page_at, _ = pages_of(rows, page_bytes, cells=[4])
    count = len(heaps)
    assert page.count_rows(memory.b4, page_at) == count
    row_at, heap_at, words = (np.zeros(count, np.int64) for _ in range(3))
    assert page.row_places(memory, page_at, width, row_at, heap_at, words) == count
    assert (words == rows.words).all()
    for i, value in enumerate(heaps):
        row = memory.b1[row_at[i] : row_at[i] + width].tobytes()
        assert row[:4] + row[8:] == bytes([i % 256]) * (width - 4)
        at = int(heap_at[i] + struct.unpack("<I", row[4:8])[0])
        assert memory.b1[at : at + len(value)].tobytes() == value


@pytest.mark.parametrize("width", [5, 16])
def test_a_page_is_laid_out_as_drawn(width):
    rows = plain_rows([-1, 7, 8], width, [b"ab", b"", b"c" * 9])
    memory, page_at, starts = pages_of(rows, 4096)
    data = memory.b1[page_at[0] :].tobytes()
    magic, count, checksum, first, body, end = struct.unpack_from("<IIQqII", data)
    assert (magic, count, checksum, first, body) == (page.MAGIC, 3, 0, 0, page.rows_at(3))
    assert magic == int.from_bytes(b"SSP1", "little")
    assert struct.unpack_from("<3q", data, page.HEADER_BYTES) == (-1, 7, 8)
    assert data[body : body + 3 * width] == b"\0" * width + b"\1" * width + b"\2" * width
    assert data[body + 3 * width : end] == b"ab" + bytes(6) + b"c" * 9 + bytes(7)
    assert not any(data[end:4096])
    assert starts.tolist() == [0, 3]


def test_every_page_knows_the_number_of_its_first_row():
    rows = plain_rows(range(10), 8)
    starts = np.zeros(11, np.int64)
    pages = page.cut_pages(rows.ends, 8, 80, starts)
    memory, page_at, starts = pages_of(rows, 80)
    assert [int(memory.b8[(at >> 3) + 2]) for at in page_at] == starts[:-1].tolist() == [0, 3, 6, 9]
    page.fill_pages(memory, page_at[1:], rows, starts[1:], 1003, ints())
    assert [int(memory.b8[(at >> 3) + 2]) for at in page_at] == [0, 1003, 1006, 1009]
    assert pages == 4


@given(heaps=HEAPS, seed=st.randoms(use_true_random=False))
def test_heaps_follow_their_rows_into_another_order(heaps, seed):
    rows = plain_rows(range(len(heaps)), 8, heaps)
    order = list(range(len(heaps)))
    seed.shuffle(order)
    new_ends = np.cumsum([0] + [int(rows.ends[i + 1] - rows.ends[i]) for i in order]).astype(np.int64)
    taken = page.take_heap(rows.heap, rows.ends, ints(*order), new_ends)
    assert taken.size == new_ends[-1]
    for place, i in enumerate(order):
        assert taken[new_ends[place] :].tobytes().startswith(heaps[i])


def test_no_rows_make_no_pages():
    assert page.cut_pages(ints(0), 8, 4096, np.zeros(1, np.int64)) == 0
    memory, page_at, _ = pages_of(plain_rows([]), 4096)
    assert page.count_rows(memory.b4, page_at) == 0


CELL = 8  # where a row of 16 bytes keeps its cell


def sound_pages():
    """Three pages of rows with one cell each, and how long the pages are."""
    values = [b"some text" * (i % 4) for i in range(12)]
    rows = plain_rows(range(12), 16, values)
    for row, value in zip(rows.fixed.reshape(-1, 16), values, strict=True):
        row[CELL:] = np.frombuffer(struct.pack("<II", 0, len(value)), np.uint8)
    memory, page_at, _ = pages_of(rows, 256, cells=[CELL])
    return memory, page_at, np.full(page_at.size, 256, np.int64)


def test_pages_as_they_were_written_are_sound():
    memory, page_at, sizes = sound_pages()
    assert page_at.size > 2
    assert page.first_bad_page(memory, page_at, sizes, 16, ints(CELL)) == -1
    assert page.first_bad_page(memory, page_at[:0], sizes[:0], 16, ints(CELL)) == -1


@pytest.mark.parametrize(
    ("at", "number"),
    [(0, 0), (4, 100), (4, 2**32 - 1), (24, 0), (24, 252), (24, 2**31), (28, 257), (28, 32), (28, 2**32 - 1)],
)
@pytest.mark.parametrize("bad", [0, 1])
def test_a_number_in_the_head_of_a_page_that_points_elsewhere_is_found(at, number, bad):
    memory, page_at, sizes = sound_pages()
    memory.b4[(int(page_at[bad]) + at) >> 2] = number
    assert page.first_bad_page(memory, page_at, sizes, 16, ints(CELL)) == bad


@pytest.mark.parametrize(("start", "length"), [(257, 0), (0, 257), (200, 57), (2**32 - 1, 2**32 - 1)])
def test_a_cell_that_points_behind_its_page_is_found(start, length):
    memory, page_at, sizes = sound_pages()
    rows = int(memory.b4[(page_at[1] >> 2) + 1])
    last_row = int(page_at[1]) + int(memory.b4[(page_at[1] >> 2) + 6]) + 16 * (rows - 1)
    memory.b4[(last_row + CELL) >> 2 : (last_row + CELL + 8) >> 2] = start, length
    assert page.first_bad_page(memory, page_at, sizes, 16, ints(CELL)) == 1
