"""Bytes and seconds as people write them."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream.errors import UsageError
from semistream.units import format_bytes, parse_bytes, parse_seconds


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (1, 1), ("1", 1), ("4096", 4096), ("1b", 1), ("2K", 2048), ("2kb", 2048), ("2 KiB", 2048), ("1.5m", 3 << 19),
        (" 64MB ", 64 << 20), ("1GiB", 1 << 30), ("2T", 2 << 40), ((1 << 50) - 1, (1 << 50) - 1),
    ],
)  # fmt: skip
def test_bytes_are_read_in_powers_of_1024(text, count):
    assert parse_bytes(text) == count


@pytest.mark.parametrize("value", [0, -1, "0", "0.4B", 1 << 50, "1024T", "9999999T"])
def test_a_number_of_bytes_beyond_reason_is_refused(value):
    with pytest.raises(UsageError, match=r"buffer=\d*.*: need more than 0 bytes and less than 1 PiB"):
        parse_bytes(value, "buffer")


@pytest.mark.parametrize(
    "value", ["", "MB", "1 2MB", "-1MB", "1e6", "64MBs", "1.MB", "nan", "inf", True, 1.5, None, b"1"]
)
def test_what_is_no_number_of_bytes_is_refused_with_an_example(value):
    with pytest.raises(UsageError, match=r'memory=.*: need a number of bytes or text such as "64MB"'):
        parse_bytes(value)


@given(st.integers(1, 1 << 49) | st.integers(1, 5000))
def test_formatted_bytes_are_read_back_within_a_tenth_of_their_unit(count):
    text = format_bytes(count)
    assert abs(parse_bytes(text) - count) <= 0.051 * max(1, count)
    assert len(text) <= 9


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("2s", 2), (" 1.5 min ", 90), ("1h", 3600), ("7d", 604_800), (0, 0), (2.5, 2.5), (dt.timedelta(minutes=1), 60)],
)  # fmt: skip
def test_times_are_read_as_seconds(text, seconds):
    assert parse_seconds(text, "max_wait") == seconds


@pytest.mark.parametrize(
    "value", ["", "5", "ms", "-1s", "1 week", -1, float("nan"), float("inf"), True, None, dt.timedelta(-1)]
)
def test_what_is_no_time_is_refused_with_examples(value):
    with pytest.raises(UsageError, match=r'retention=.*: need a time such as "500ms"'):
        parse_seconds(value, "retention")
