"""Columns made fast: strings, decimals and fixed-width rows straight from numpy arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from semistream.workloads.blocks import Int64s


def numbered(prefix: str, numbers: Int64s, digits: int) -> pa.Array:
    """Strings of one length: a prefix and the number with leading zeros.

    >>> numbered("A-", np.array([7, 12345]), digits=4).to_pylist()
    ['A-0007', 'A-2345']
    """
    start = np.frombuffer(prefix.encode(), np.uint8)
    width = len(start) + digits
    letters = np.empty((len(numbers), width), np.uint8)
    letters[:, : len(start)] = start
    rest = numbers
    for place in range(width - 1, len(start) - 1, -1):
        rest, digit = np.divmod(rest, 10)
        letters[:, place] = digit + ord("0")
    offsets = np.arange(len(numbers) + 1, dtype=np.int32) * np.int32(width)
    return pa.Array.from_buffers(pa.string(), len(numbers), [None, pa.py_buffer(offsets), pa.py_buffer(letters)])


def picked(words: Sequence[str | None], choice: npt.NDArray[np.integer]) -> pa.Array:
    """One word per row; a None among the words is a null."""
    return pa.array(words, pa.string()).take(pa.array(choice))


def money(cents: Int64s) -> pa.Array:
    """decimal(12, 2) from whole cents.

    >>> [str(price) for price in money(np.array([1999, -5])).to_pylist()]
    ['19.99', '-0.05']
    """
    halves = np.stack([cents, cents >> 63], axis=1)  # 128 bits, low half first; the high half repeats the sign
    return pa.Array.from_buffers(pa.decimal128(12, 2), len(cents), [None, pa.py_buffer(halves)])


def moments(microseconds: Int64s) -> pa.Array:
    """timestamp[us, UTC] from microseconds since 1970."""
    return pa.array(microseconds).cast(pa.timestamp("us", tz="UTC"))


def some_null(column: pa.Array, null: npt.NDArray[np.bool_]) -> pa.Array:
    """The column with nulls where the mask says so."""
    return pc.if_else(pa.array(null), pa.scalar(None, column.type), column)


def required(name: str, type_: pa.DataType) -> pa.Field:
    """A field that is never null."""
    return pa.field(name, type_, nullable=False)


def row_bytes(schema: pa.Schema) -> int:
    """Bytes of one row when every column has a fixed width."""
    return sum(int(field.type.bit_width) for field in schema) // 8
