"""Key words: the byte hash is in files and must never change; the spread must stay even."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from semistream.parts import words
from semistream.parts.memory import view
from semistream.parts.stream_table import home_of, tag_of
from semistream.parts.words import KeyPlaces, RowSide
from tests.parts.made import EDGES, ints

PINNED = {
    b"": -4_787_778_348_424_595_907,
    b"a": -5_194_066_751_927_224_451,
    b"a\0": 8_218_194_500_928_879_342,
    b"abcd": 2_807_785_613_120_047_184,
    b"abcde": -6_809_106_593_093_473_865,
    b"abcdefgh": 975_066_815_288_678_261,
    b"abcdefghi": -2_942_623_677_032_520_195,
    b"\xff" * 16: 4_225_929_287_226_858_732,
    bytes(range(256)): -5_376_334_423_706_493_848,
}


def hashes(values, before=b"", behind=b""):
    """Words of byte strings that stand between other bytes."""
    starts = np.cumsum([len(before)] + [len(value) for value in values]).astype(np.int64)
    found = np.zeros(len(values), np.int64)
    words.hash_cells(starts, np.frombuffer(before + b"".join(values) + behind + b"\0", np.uint8), found)
    return found.tolist()


def spreads(numbers):
    """The mixed words."""
    return [np.uint64(words.spread(np.int64(number))) for number in numbers]


# ------------------------------------------------------------------------------------------------------- the byte hash


def test_the_byte_hash_is_the_one_that_masters_on_disk_were_written_with():
    assert dict(zip(PINNED, hashes(list(PINNED)), strict=True)) == PINNED


def test_the_byte_hash_sees_only_the_bytes_of_its_value():
    assert hashes(list(PINNED), b"xyz", b"uvw") == list(PINNED.values())


def test_a_null_byte_more_is_another_hash():
    assert len(set(hashes([b"\0" * n for n in range(64)]))) == 64


def test_every_bit_of_a_value_counts():
    base = bytearray(24)
    flipped = []
    for bit in range(24 * 8):
        base[bit // 8] ^= 1 << bit % 8
        flipped.append(bytes(base))
        base[bit // 8] ^= 1 << bit % 8
    found = hashes([bytes(base), *flipped])
    assert len(set(found)) == len(found)
    changed = [((found[0] ^ word) & (2**64 - 1)).bit_count() for word in found[1:]]
    assert 24 < sum(changed) / len(changed) < 40, "about half of all bits change"


@pytest.mark.parametrize("shift", range(0, 64, 8))
@pytest.mark.parametrize("form", ["text", "little", "big"])
def test_hashes_of_numbered_keys_are_spread_evenly(shift, form):
    count, buckets = 2048, 64
    keys = [b"customer-%d" % n if form == "text" else n.to_bytes(8, form) for n in range(count)]
    found = [(word >> shift) % buckets for word in hashes(keys)]
    assert chi_square(found, buckets) < 150


# ---------------------------------------------------------------------------------------------------------- the spread


def chi_square(numbers, buckets):
    """How far from even: about `buckets` for a fair die, and for 64 buckets above 150 less than once in a hundred million."""
    counts = np.bincount(np.array(numbers, np.int64), minlength=buckets)
    expected = len(numbers) / buckets
    return float(((counts - expected) ** 2 / expected).sum())


STEPS = [2**k for k in range(0, 54, 3)] + [3, 7, 10, 1000, 10**6, 86_400 * 10**6, 2**32 + 1, -1, 0x9E3779B1]
KEYS = {f"steps of {step}": lambda n, step=step: n * step for step in STEPS} | {
    "whole floats": lambda n: struct.unpack("<q", struct.pack("<d", n))[0],
    "prices": lambda n: struct.unpack("<q", struct.pack("<d", n / 100))[0],
    "two counters": lambda n: (n // 32) << 32 | n % 32,
    "sparse bits": lambda n: sum(1 << place for place in range(0, 60, 6) if n >> place // 6 & 1) * 5,
}


@pytest.mark.parametrize("keys", list(KEYS))
def test_keys_in_a_pattern_fill_a_table_evenly(keys):
    numbers = list(dict.fromkeys(wrapped(KEYS[keys](n)) for n in range(1024)))
    mixed = spreads(numbers)
    assert len(set(mixed)) == len(numbers)
    assert chi_square([home_of(m, 64) for m in mixed], 64) < 150
    assert chi_square([int(tag_of(m)) // 2 for m in mixed], 128) < 260


def wrapped(number):
    """The number as 64 bits with a sign."""
    return (number + 2**63) % 2**64 - 2**63


def test_tags_and_homes_are_independent():
    mixed = spreads(range(4096))
    pairs = [int(home_of(m, 8)) * 8 + int(tag_of(m)) // 32 for m in mixed]
    assert chi_square(pairs, 64) < 150


def test_any_word_has_a_home_and_a_tag_that_does_not_mean_empty():
    for size in (9, 20, 1000, 2**31):
        for mixed in spreads(EDGES):
            assert 0 <= home_of(mixed, size) < size
            assert 0 < tag_of(mixed) < 256


# ------------------------------------------------------------------------------------------------- floats, composites


def test_all_nans_are_one_key_and_so_are_both_zeros():
    other_nan = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0001))[0]
    values = np.array([np.nan, other_nan, 0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, 5e-324])
    found = np.zeros(values.size, np.int64)
    words.float_words(values, found, values.view(np.int64))
    assert found[0] == found[1]
    assert found[2] == found[3] == 0
    assert found[4:].tolist() == values[4:].view(np.int64).tolist()
    assert len(set(found.tolist())) == values.size - 2


def test_parts_of_composite_keys_are_written_one_after_the_other():
    """A number, and two texts, of which one is missing in each of two keys."""
    first = b"\1" + (-2).to_bytes(8, "little", signed=True) + b"\1\3\0\0\0abc" + b"\0\0\0\0\0"
    second = b"\0" + bytes(8) + b"\0\0\0\0\0" + b"\1\2\0\0\0de"
    starts, source = ints(1, 4, 6), np.frombuffer(b"-abcde", np.uint8)
    data, cursor = np.zeros(len(first + second), np.uint8), ints(0, len(first))
    words.append_part(ints(-2, 77), np.array([1, 0], np.uint8), data, cursor)
    words.append_cell(starts, source, np.array([1, 0], np.uint8), data, cursor)
    words.append_cell(starts, source, np.array([0, 1], np.uint8), data, cursor)
    assert data.tobytes() == first + second
    assert cursor.tolist() == [len(first), len(first + second)]


# --------------------------------------------------------------------------------------------------------- same keys


def side(rows):
    """Rows with a null byte and a cell, one after the other: each (is null, bytes)."""
    block, row_at, heap_at = bytearray(), [], []
    for null, value in rows:
        heap_at.append(len(block))
        block += b"??" + value + bytes(-(len(value) + 2) % 8)
        row_at.append(len(block))
        block += bytes([1 if null else 0, 0, 0, 0]) + struct.pack("<II", 2, len(value)) + bytes(4)
    return RowSide(view(np.frombuffer(bytes(block), np.uint8).copy()), ints(*row_at), ints(*heap_at))


PLACES = KeyPlaces(null_at=0, null_bit=1, cell=4)
PAIRS = [
    ((False, b""), (False, b""), 1, 1),
    ((False, b"abc"), (False, b"abc"), 1, 1),
    ((False, b"abc"), (False, b"abd"), 0, 0),
    ((False, b"abc"), (False, b"abcd"), 0, 0),
    ((False, b"abc"), (False, b"ab"), 0, 0),
    ((True, b""), (False, b""), 0, 0),
    ((False, b"x"), (True, b"x"), 0, 0),
    ((True, b"one"), (True, b"two"), 0, 1),
]


@pytest.mark.parametrize("null_safe", [False, True])
def test_keys_are_the_same_when_their_bytes_are(null_safe):
    same = np.full(len(PAIRS), 7, np.uint8)
    left, right = side([pair[0] for pair in PAIRS]), side([pair[1] for pair in PAIRS])
    words.same_keys(left, right, (PLACES, PLACES), null_safe, same)
    assert same.tolist() == [pair[3 if null_safe else 2] for pair in PAIRS]


def test_keys_without_a_cell_differ_only_in_being_missing():
    places = KeyPlaces(null_at=0, null_bit=1, cell=-1)
    left, right = side([(False, b"a"), (True, b"a"), (True, b"")]), side([(False, b"b"), (False, b"a"), (True, b"")])
    same = np.zeros(3, np.uint8)
    words.same_keys(left, right, (places, places), True, same)
    assert same.tolist() == [1, 0, 1]
