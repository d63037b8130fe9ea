"""Keys as 64-bit words: equal keys have equal words, whatever their types; exact words give their keys back."""

from __future__ import annotations

import decimal
import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream.errors import KeyTypeError
from semistream.keys import KEY_BYTES, NOWHERE, NULL_WORD, KeyCodec, hash_bytes
from tests.core.values import NESTED, PLAIN, VALUES, view

_D = decimal.Decimal
NAN = float("nan")


def codec(*kinds, nullable=True):
    """Of a master whose keys have these types."""
    return KeyCodec([pa.field(f"k{i}", kind, nullable=nullable) for i, kind in enumerate(kinds)])


def words(master, *columns):
    """Words of stream keys whose types the master accepts."""
    keys = codec(*master) if isinstance(master, tuple) else codec(master)
    keys.check([pa.field(f"s{i}", column.type) for i, column in enumerate(columns)])
    return keys.words(columns)


def hashed(*values):
    """The byte hash of values."""
    starts = np.cumsum([0] + [len(value) for value in values]).astype(np.int64)
    return hash_bytes(starts, np.frombuffer(b"".join(values) + b"\0", np.uint8)).tolist()


# ---------------------------------------------------------------------------------------------------------- one column

EXACT = {
    "bool": [1, None, 0, 1],
    "int8": [1, None, -128, 127],
    "int64": [1, None, -(2**63), 2**63 - 1],
    "uint8": [1, None, 255],
    "uint32": [1, None, 2**32 - 1],
    "uint64": [1, None, -1],
    "date32": [0, None, -719_162],
    "date64": [0, None, 1],
    "time32": [1, None, 86_399],
    "time64": [1, None, 86_399_999_999],
    "timestamp": [1, None, -(2**50)],
    "instant": [1, None, 2**50],
    "duration": [1, None, -(2**62)],
    "decimal32": [150, None, -99_999],
    "decimal64": [150, None, -99_999],
    "narrow decimal": [150, None, 10**18 - 1, -(10**17)],
}


@pytest.mark.parametrize("name", list(EXACT))
def test_a_key_that_fits_64_bits_is_its_own_word(name):
    found = words(PLAIN[name].type, PLAIN[name])
    assert found.words.tolist() == [NULL_WORD if word is None else word for word in EXACT[name]]
    assert found.missing.tolist() == [int(word is None) for word in EXACT[name]]
    assert found.hidden is None
    assert codec(PLAIN[name].type).exact


@pytest.mark.parametrize("name", [name for name in EXACT if name != "date64"])
def test_a_key_comes_back_from_its_word(name):
    keys = codec(PLAIN[name].type)
    assert keys.in_words == "k0"
    found = keys.words([PLAIN[name]])
    back = keys.from_words(found.words, found.missing)
    assert back.type == PLAIN[name].type
    assert back.to_pylist() == PLAIN[name].to_pylist()
    assert keys.from_words(found.words[:0], None).type == PLAIN[name].type
    assert keys.from_words(found.words[:1], np.zeros(1, np.uint8)).to_pylist() == PLAIN[name].to_pylist()[:1]


def test_a_date_with_milliseconds_is_kept_beside_its_word():
    assert codec(pa.date64()).exact
    assert codec(pa.date64()).in_words is None


def test_a_wrapped_key_comes_back_wrapped():
    column = pc.run_end_encode(pa.array([5, 5, None]))
    keys = codec(column.type)
    assert keys.in_words is None or keys.from_words(*keys.words([column])[:2]).equals(column)


def test_floats_are_equal_by_sparks_rules_and_are_kept_beside_their_word():
    column = pa.array([0.0, -0.0, NAN, -NAN, 1.5, None, float("inf"), 5e-324])
    found = words(pa.float64(), column)
    zero, other_zero, nan, other_nan, *rest = found.words.tolist()
    assert zero == other_zero == 0
    assert nan == other_nan
    assert rest[1] == NULL_WORD
    assert len({zero, nan, *rest}) == 6
    assert codec(pa.float64()).exact
    assert codec(pa.float64()).in_words is None


@pytest.mark.parametrize("name", ["string", "large string", "string view", "binary", "large binary", "binary view"])
def test_text_is_hashed_and_stays_in_its_own_column(name):
    column = PLAIN[name]
    found = words(column.type, column)
    octets = [value.encode() if isinstance(value, str) else value for value in column.to_pylist()]
    assert found.words.tolist() == [NULL_WORD if v is None else hashed(v)[0] for v in octets]
    assert found.hidden is None
    keys = codec(column.type)
    assert (keys.exact, keys.in_words, keys.cell_name, keys.hidden) == (False, None, "k0", None)


@pytest.mark.parametrize("name", ["binary(1)", "binary(3)", "binary(16)", "long decimal", "decimal256"])
def test_other_long_keys_are_hashed_and_their_bytes_kept_in_a_hidden_column(name):
    column = PLAIN[name]
    found = words(column.type, column)
    assert len(set(found.words.tolist())) == len(column)
    assert found.words.tolist()[1] == NULL_WORD
    assert found.hidden.type == pa.large_binary()
    assert hashed(*(found.hidden[i].as_py() for i in (0, 2))) == [found.words[0], found.words[2]]
    assert (codec(column.type).cell_name, codec(column.type).exact) == (KEY_BYTES, False)


def test_a_short_decimal_of_32_bytes_is_hashed():
    column = pa.array([_D("1.25"), _D("-1.25")], pa.decimal256(10, 2))
    found = words(column.type, column)
    assert found.words.tolist() == hashed(*found.hidden.to_pylist())


def test_a_slice_of_a_key_column_has_its_own_words():
    for column in PLAIN.values():
        if pa.types.is_null(column.type) or str(column.type).startswith("month_day"):
            continue
        keys = codec(column.type)
        assert keys.words([column.slice(2)]).words.tolist() == keys.words([column]).words.tolist()[2:]
        assert keys.words([column.slice(0, 0)]).words.tolist() == []


def test_without_missing_keys_nothing_is_said_of_them():
    assert words(pa.int64(), pa.array([1, 2])).missing is None
    assert words(pa.string(), pa.array(["a"])).missing is None


def test_a_key_that_looks_like_the_word_of_missing_keys_is_a_key():
    found = words(pa.int64(), pa.array([NULL_WORD, None]))
    assert found.words.tolist() == [NULL_WORD] * 2
    assert found.missing.tolist() == [0, 1]


def test_a_missing_value_among_codes_is_a_missing_key():
    found = words(pa.string(), VALUES["coded with a missing value"])
    assert found.missing.tolist() == [0, 1, 0, 1]


# -------------------------------------------------------------------------------------------------------------- casts


def times(numbers, kind):
    return view(numbers, kind)


SAME = {
    "int8 and int64": (pa.array([-1, 127], pa.int8()), pa.array([-1, 127], pa.int64())),
    "uint32 and int64": (pa.array([0, 2**32 - 1], pa.uint32()), pa.array([0, 2**32 - 1], pa.int64())),
    "uint64 and uint8": (pa.array([0, 255], pa.uint64()), pa.array([0, 255], pa.uint8())),
    "int64 and uint16": (pa.array([0, 65_535], pa.int64()), pa.array([0, 65_535], pa.uint16())),
    "float32 and float64": (pa.array([0.5, NAN], pa.float32()), pa.array([0.5, NAN], pa.float64())),
    "float16 and float64": (pa.array(np.array([0.5, -0.0], np.float16)), pa.array([0.5, 0.0])),
    "date64 and date32": (times([-86_400_000, 0], pa.date64()), times([-1, 0], pa.date32())),
    "date32 and date64": (times([-1, 0], pa.date32()), times([-86_400_000, 0], pa.date64())),
    "timestamp s and ns": (times([-1, 7], pa.timestamp("s")), times([-(10**9), 7 * 10**9], pa.timestamp("ns"))),
    "two time zones": (times([-1, 7], pa.timestamp("ms", "UTC")), times([-1000, 7000], pa.timestamp("us", "Asia/Tokyo"))),
    "time32 and time64": (times([0, 86_399], pa.time32("s")), times([0, 86_399 * 10**6], pa.time64("us"))),
    "time32 s and ms": (times([0, 86_399], pa.time32("s")), times([0, 86_399_000], pa.time32("ms"))),
    "duration ms and us": (times([-1, 5], pa.duration("ms")), times([-1000, 5000], pa.duration("us"))),
    "decimal and finer": (pa.array([_D("-1.50")], pa.decimal128(7, 2)), pa.array([_D("-1.5")], pa.decimal128(18, 4))),
    "decimal and long": (pa.array([_D("-1.50")], pa.decimal128(7, 2)), pa.array([_D("-1.5")], pa.decimal128(38, 4))),
    "decimal64 and decimal128": (pa.array([_D("-1.50")], pa.decimal64(7, 2)), pa.array([_D("-1.5")], pa.decimal128(9, 2))),
    "decimal128 and decimal256": (pa.array([_D("-1.50")], pa.decimal128(20, 2)), pa.array([_D("-1.5")], pa.decimal256(60, 5))),
    "string and large": (pa.array(["", "é"]), pa.array(["", "é"], pa.large_string())),
    "view and string": (pa.array(["", "x" * 20], pa.string_view()), pa.array(["", "x" * 20])),
    "string and view": (pa.array(["", "x" * 20]), pa.array(["", "x" * 20], pa.string_view())),
    "coded and string": (pa.array(["b", "a", "b"]).dictionary_encode(), pa.array(["b", "a", "b"])),
    "runs and int64": (pc.run_end_encode(pa.array([5, 5, 6], pa.int32())), pa.array([5, 5, 6])),
    "uuid and binary(16)": (VALUES["uuid"].slice(2), pa.array([b"b" * 16], pa.binary(16))),
    "binary and binary(3)": (pa.array([b"abc"]), pa.array([b"abc"], pa.binary(3))),
    "large binary and binary": (pa.array([b"abc"], pa.large_binary()), pa.array([b"abc"])),
}  # fmt: skip


@pytest.mark.parametrize("pair", list(SAME))
def test_the_same_key_in_another_type_has_the_same_word(pair):
    stream, master = SAME[pair]
    ours, theirs = words(master.type, stream), words(master.type, master)
    assert ours.words.tolist() == theirs.words.tolist()
    assert (ours.hidden is None) == (theirs.hidden is None)
    assert ours.hidden is None or ours.hidden.to_pylist() == theirs.hidden.to_pylist()


REFUSED = [
    (pa.string(), pa.int64(), "they are of different kinds"),
    (pa.int64(), pa.string(), "they are of different kinds"),
    (pa.int64(), pa.float64(), "they are of different kinds"),
    (pa.int64(), pa.decimal128(18, 0), "they are of different kinds"),
    (pa.bool_(), pa.int8(), "they are of different kinds"),
    (pa.string(), pa.binary(), "they are of different kinds"),
    (pa.date32(), pa.timestamp("s"), "they are of different kinds"),
    (pa.null(), pa.int64(), "they are of different kinds"),
    (pa.list_(pa.int64()), pa.int64(), "they are of different kinds"),
    (pa.uint64(), pa.int64(), "no 64-bit integer holds both ranges"),
    (pa.int8(), pa.uint64(), "no 64-bit integer holds both ranges"),
    (pa.timestamp("us"), pa.timestamp("us", "UTC"), "one has a time zone and the other has none"),
    (pa.timestamp("us", "UTC"), pa.timestamp("us"), "one has a time zone and the other has none"),
    (pa.timestamp("ns"), pa.timestamp("us"), "ns does not fit into us without loss"),
    (pa.time64("us"), pa.time32("ms"), "us does not fit into ms without loss"),
    (pa.duration("ms"), pa.duration("s"), "ms does not fit into s without loss"),
    (pa.decimal128(9, 3), pa.decimal128(9, 2), "its digits do not fit without loss"),
    (pa.decimal128(10, 2), pa.decimal128(9, 2), "its digits do not fit without loss"),
    (pa.binary(4), pa.binary(), "rows keep values of fixed and of variable length in different ways"),
    (pa.dictionary(pa.int8(), pa.int32()), pa.string(), "they are of different kinds"),
]


@pytest.mark.parametrize(("stream", "master", "reason"), REFUSED, ids=str)
def test_key_types_that_could_lose_something_are_refused_with_both_names_and_a_cure(stream, master, reason):
    message = (
        f"stream column 's' has type {stream} and the master's key 'k0' has type {master}: {reason}; "
        f"cast the stream column to {master} first"
    )
    with pytest.raises(KeyTypeError, match=re.escape(message)):
        codec(master).check([pa.field("s", stream)])


@pytest.mark.parametrize("name", [*NESTED, "null", "interval"])
def test_a_type_that_cannot_be_a_key_is_refused(name):
    with pytest.raises(KeyTypeError, match=r"key column 'k0' has type .*keys can be integers, strings"):
        codec(VALUES[name].type)


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_a_time_beyond_the_masters_range_matches_nothing(unit):
    reach = (2**63 - 1) // 1000 ** {"ms": 1, "us": 2, "ns": 3}[unit]
    numbers = [0, reach, reach + 1, -reach, -reach - 1, 2**63 - 1, -(2**63), None]
    for kind in (pa.timestamp, pa.duration):
        found = words(kind(unit), times(numbers, kind("s")))
        assert found.missing.tolist() == [0, 0, NOWHERE, 0, NOWHERE, NOWHERE, NOWHERE, 1]
        factor = {"ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
        assert found.words[[0, 1, 3]].tolist() == [0, reach * factor, -reach * factor]


# ---------------------------------------------------------------------------------------------------- composite keys

KEYS = st.lists(
    st.tuples(st.none() | st.text("ab", max_size=3), st.none() | st.integers(-2, 2), st.none() | st.binary(max_size=2)),
    min_size=1,
    max_size=12,
)
KINDS = (pa.string(), pa.int32(), pa.binary())


@given(KEYS)
def test_composite_keys_are_equal_when_all_their_parts_are(keys):
    columns = [pa.array([key[i] for key in keys], kind) for i, kind in enumerate(KINDS)]
    found = words(KINDS, *columns)
    octets = found.hidden.to_pylist()
    for i, key in enumerate(keys):
        for k, other in enumerate(keys):
            assert (octets[i] == octets[k]) == (key == other)
            assert (found.words[i] == found.words[k]) == (key == other)
    expected = [int(None in key) for key in keys]
    assert (found.missing is None and not any(expected)) or found.missing.tolist() == expected


def test_parts_of_composite_keys_do_not_run_into_each_other():
    first, second = pa.array(["a", "ab", "", "ab"]), pa.array(["bc", "c", "abc", ""])
    assert len(set(words((pa.string(), pa.string()), first, second).words.tolist())) == 4


def test_the_order_of_parts_counts_and_wider_types_do_not():
    left, right = pa.array([1, 2], pa.int8()), pa.array([2, 1], pa.uint16())
    straight = words((pa.int64(), pa.int64()), left, right).words.tolist()
    assert straight == words((pa.int32(), pa.int16()), left.cast(pa.int64()), right.cast(pa.int32())).words.tolist()
    assert straight == words((pa.int64(), pa.int64()), right, left).words.tolist()[::-1]
    assert len(set(straight)) == 2


def test_the_bytes_of_a_composite_key_are_those_that_masters_on_disk_hold():
    found = words((pa.int64(), pa.string()), pa.array([-2, None]), pa.array(["ab", None]))
    number = (-2).to_bytes(8, "little", signed=True)
    assert found.hidden.to_pylist() == [b"\1" + number + b"\1\2\0\0\0ab", b"\0" + bytes(8) + b"\0\0\0\0\0"]
    assert found.words.tolist() == hashed(*found.hidden.to_pylist())


@pytest.mark.parametrize("name", [name for name in PLAIN if name not in ("null", "interval")])
def test_any_key_type_can_be_part_of_a_composite_key(name):
    column = PLAIN[name]
    found = words((column.type, pa.int8()), column, pa.array(range(len(column)), pa.int8()))
    assert len(set(found.words.tolist())) == len(column)
    keys = codec(column.type, pa.int8())
    assert (keys.exact, keys.in_words, keys.cell_name) == (False, None, KEY_BYTES)


def test_a_part_beyond_the_masters_range_makes_the_whole_key_match_nothing():
    stream = times([2**62, 0, None, 2**62], pa.timestamp("s"))
    found = words((pa.timestamp("ns"), pa.int64()), stream, pa.array([1, 1, 1, None]))
    assert found.missing.tolist() == [NOWHERE, 0, 1, NOWHERE]
