"""Pages: cut, filled and read back; a byte-for-byte check of what the module's drawing says."""

from __future__ import annotations

import itertools
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream.parts import page
from tests.parts.made import EDGES, ints, new_memory, pages_of, plain_rows

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


# ------------------------------------------------------------------------------------------------------------ checksum

KIB = 1024


def noise(size, seed=1):
    """So many bytes as 64-bit words."""
    return np.random.default_rng(seed).integers(0, 1 << 64, size // 8, np.uint64)


def plain_sum(words):
    """What `sum_of` computes, with Python's numbers."""
    total_low, total_high, low_half = len(words), 0, (1 << 32) - 1
    key_low, key_high = page._KEY_LOW.tolist(), page._KEY_HIGH.tolist()
    for start in range(0, len(words), len(key_low)):
        low = high = 0
        for word, left, right in zip(words[start:], key_low, key_high, strict=False):
            product = (((word & low_half) + left) & low_half) * (((word >> 32) + right) & low_half)
            low += product & low_half
            high += product >> 32
        total_low = (total_low & low_half) * key_low[1] ^ (total_low >> 32) ^ low
        total_high = (total_high & low_half) * key_high[1] ^ (total_high >> 32) ^ high
    return total_low ^ (total_high << 32) & ((1 << 64) - 1) ^ (total_high >> 32)


SIZES = [0, 8, 4 * KIB, 8 * KIB, 12 * KIB, 16 * KIB, 20 * KIB, 40 * KIB]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("fill", ["noise", "zeros", "ones"])
def test_the_checksum_is_the_same_in_plain_numbers(size, fill):
    words = noise(size)
    words[:] = {"noise": words, "zeros": 0, "ones": 2**64 - 1}[fill]
    assert page.sum_of(words) == plain_sum(words.tolist())


def test_the_checksum_is_the_one_that_masters_on_disk_have():
    """A master that was built yesterday must be readable tomorrow."""
    words = np.arange(3 * 512, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    sums = [0xCE611F8373D060A7, 0x613D979CDC77F928, 0x475270E72B1C3024]
    assert [int(page.sum_of(words[:count])) for count in (512, 1024, 1536)] == sums


@given(
    kib=st.sampled_from([4, 8, 12, 16]), word=st.integers(0, 2**30), bits=st.integers(0, 63), seed=st.integers(0, 2**30)
)
def test_any_flipped_bit_changes_the_checksum(kib, word, bits, seed):
    words = noise(kib * KIB, seed) if seed % 3 else np.full(kib * 128, (0, 2**64 - 1)[seed % 2], np.uint64)
    before = page.sum_of(words)
    words[word % words.size] ^= np.uint64(1 << bits)
    assert page.sum_of(words) != before


@given(size=st.sampled_from([4, 12, 20]), places=st.lists(st.integers(0, 2**30), min_size=2, max_size=2))
def test_swapped_words_change_the_checksum(size, places):
    words = noise(size * KIB)
    before, (one, other) = page.sum_of(words), (place % words.size for place in places)
    words[[one, other]] = words[[other, one]]
    assert (page.sum_of(words) == before) == (one == other)


@pytest.mark.parametrize("swapped", [(0, 1), (1, 2), (0, 2)])
def test_swapped_parts_change_the_checksum(swapped):
    """Parts of 8 KiB have the same keys each."""
    words = noise(24 * KIB).reshape(3, -1)
    before = page.sum_of(words.reshape(-1))
    words[list(swapped)] = words[list(swapped[::-1])]
    assert page.sum_of(words.reshape(-1)) != before


@pytest.mark.parametrize("cut", [8, 512, 4 * KIB, 8 * KIB, 12 * KIB])
def test_a_page_that_lost_its_end_has_another_checksum(cut):
    for words in (noise(20 * KIB), np.zeros(20 * 128, np.uint64)):
        assert page.sum_of(words[: -cut // 8]) != page.sum_of(words)
        zeroed = words.copy()
        zeroed[-cut // 8 :] = 0
        assert (page.sum_of(zeroed) == page.sum_of(words)) == (not words.any())


def sealed_pages(kib=(4, 8, 12)):
    """Pages of these sizes with checksums: memory, where they begin, how long they are."""
    sizes = ints(*(size * KIB for size in kib))
    memory = new_memory(64 + int(sizes.sum()))
    memory.b8[8:] = noise(int(sizes.sum()))
    page_at = 64 + np.cumsum(sizes) - sizes
    page.seal_pages(memory, page_at, sizes)
    return memory, page_at, sizes


def test_sealed_pages_are_whole_and_looking_leaves_them_as_they_are():
    memory, page_at, sizes = sealed_pages()
    before = memory.b1.tobytes()
    assert page.first_damaged_page(memory, page_at, sizes) == -1
    page.seal_pages(memory, page_at, sizes)
    assert memory.b1.tobytes() == before


@pytest.mark.parametrize("damaged", [0, 1, 2])
@pytest.mark.parametrize("at", [0, 4, 8, 15, 16, 32, -1])
def test_a_damaged_byte_is_found_wherever_it_is(damaged, at):
    memory, page_at, sizes = sealed_pages()
    memory.b1[int(page_at[damaged]) + at % int(sizes[damaged])] ^= 0x10
    before = memory.b1.tobytes()
    assert page.first_damaged_page(memory, page_at, sizes) == damaged
    assert memory.b1.tobytes() == before


def test_an_unwritten_page_is_damaged():
    memory, page_at, sizes = sealed_pages()
    memory.b1[int(page_at[1]) : int(page_at[2])] = 0
    assert page.first_damaged_page(memory, page_at, sizes) == 1


def test_pages_in_each_other_s_place_have_their_checksums_and_are_told_by_their_first_row():
    """A checksum says that the bytes are those of some page; which one it is, its header says."""
    memory, page_at, sizes = sealed_pages((8, 8))
    first, second = (memory.b8[int(at) >> 3 :][:KIB].copy() for at in page_at)
    memory.b8[int(page_at[0]) >> 3 :][:KIB], memory.b8[int(page_at[1]) >> 3 :][:KIB] = second, first
    assert page.first_damaged_page(memory, page_at, sizes) == -1
