"""Key words: any key as 64 bits.

A word that determines its key is *exact*: integers, dates, times, booleans, short decimals, floats by Spark's rules (NaN equals NaN, -0.0
equals 0.0). Every other key (text, binary, long decimals, several columns) is written as bytes and hashed; equal words are then
verified on the bytes, so a weak hash costs time and never an answer. No word is reserved for anything.

A master is built with the types of its own keys; a stream's keys are brought to those types, or refused when that could lose something.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from semistream import columns, kinds
from semistream.errors import KeyTypeError
from semistream.parts import words as kernels
from semistream.parts.memory import I64, U8

KEY_BYTES = "\0key"  # hidden column with the bytes of keys that are not one text or binary column
NULL_WORD = 0x6E756C6C
_NARROW_DIGITS = 18
_DAY_MS = 86_400_000
_UNITS = {"s": 0, "ms": 1, "us": 2, "ns": 3}


NULL, NOWHERE = 1, 2


class KeyWords(NamedTuple):
    """Words of a batch; which keys have a missing part (NULL) or a value no master key can have (NOWHERE), None if there is no
    such key; and the hidden column if there is one.
    """

    words: I64
    missing: U8 | None
    hidden: pa.Array | None


def hash_bytes(starts: I64, data: U8) -> I64:
    """64-bit hashes of byte strings."""
    hashes = np.empty(starts.size - 1, np.int64)
    kernels.hash_cells(starts, data, hashes)
    return hashes


class KeyCodec:
    """Words of keys of the given types (the master's)."""

    def __init__(self, fields: Sequence[pa.Field]) -> None:
        self.fields = list(fields)
        self.kinds = [kinds.plain_type(field.type) for field in fields]
        for field, kind in zip(fields, self.kinds, strict=True):
            if _family(kind) is None:
                raise KeyTypeError(
                    f"key column {field.name!r} has type {field.type}: keys can be integers, strings, binary, booleans, dates, times, "
                    "timestamps, durations, decimals and floats; cast it or use another key"
                )
        self.exact = len(fields) == 1 and _is_exact(self.kinds[0])
        self.in_words = fields[0].name if self.exact and _is_invertible(fields[0].type) else None
        single_text = (
            len(fields) == 1 and _family(self.kinds[0]) in ("text", "binary") and kinds.shape_of(self.kinds[0]).is_cell
        )
        self.cell_name = None if self.exact else fields[0].name if single_text else KEY_BYTES
        self.hidden = pa.field(KEY_BYTES, pa.large_binary(), nullable=False) if self.cell_name == KEY_BYTES else None

    def words(self, keys: Sequence[pa.Array]) -> KeyWords:
        """Words of key columns whose types `check` has accepted."""
        plain = [columns.plain_array(key) for key in keys]
        parts = [_bring(key, kind) for key, kind in zip(plain, self.kinds, strict=True)]
        missing = _missing(parts)
        for part, key in zip(parts, plain, strict=True):
            if missing is not None and part.null_count > key.null_count:
                missing[np.asarray(pc.and_(part.is_null(), key.is_valid()))] = NOWHERE
        if len(parts) > 1:
            return self._composite(parts, missing)
        values = _exact_words(parts[0]) if self.exact else None
        if values is not None:
            if missing is not None:
                values = np.where(missing, NULL_WORD, values).astype(np.int64)
            return KeyWords(values, missing, None)
        starts, data = _cells(parts[0])
        values = hash_bytes(starts, data)
        if missing is not None:
            values[missing != 0] = NULL_WORD
        return KeyWords(values, missing, _as_binary(starts, data) if self.hidden is not None else None)

    def _composite(self, parts: list[pa.Array], missing: U8 | None) -> KeyWords:
        count = len(parts[0])
        plains = [_exact_words(part) if _is_exact(part.type) else _cells(part) for part in parts]
        valids = [_valid(part) for part in parts]
        sizes = np.zeros(count, np.int64)
        for plain, valid in zip(plains, valids, strict=True):
            sizes += 9 if isinstance(plain, np.ndarray) else 5 + np.where(valid, np.diff(plain[0]), 0)
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        data, cursor = np.zeros(int(starts[-1]) or 1, np.uint8), starts[:-1].copy()
        for plain, valid in zip(plains, valids, strict=True):
            if isinstance(plain, np.ndarray):
                kernels.append_part(plain, valid, data, cursor)
            else:
                kernels.append_cell(plain[0], plain[1], valid, data, cursor)
        return KeyWords(hash_bytes(starts, data), missing, _as_binary(starts, data))

    def from_words(self, words: I64, missing: U8 | None) -> pa.Array:
        """The key column that `in_words` left out of the rows."""
        field, kind = self.fields[0], self.kinds[0]
        mask = None if missing is None or not missing.any() else missing != 0
        if pt.is_decimal(kind):
            wide = np.stack([words, words >> 63], axis=1)
            array = pa.Array.from_buffers(
                pa.decimal128(_NARROW_DIGITS, kind.scale), words.size, [None, pa.py_buffer(wide)]
            )
            array = array if mask is None else pa.array(array.to_pylist(), array.type, mask=mask)
            return array.cast(kind).cast(field.type)
        if pt.is_boolean(kind):
            return pa.array(words != 0, mask=mask).cast(field.type)
        integers = words.astype(f"{'u' if pt.is_unsigned_integer(kind) else 'i'}{kind.bit_width // 8}")
        return pa.array(integers, mask=mask).view(kind).cast(field.type)

    def check(self, stream: Sequence[pa.Field]) -> None:
        """Raise `KeyTypeError` unless every stream key can be compared with the master's without loss."""
        for ours, theirs, kind in zip(stream, self.fields, self.kinds, strict=True):
            reason = _loss(kinds.plain_type(ours.type), kind)
            if not reason and self.cell_name == theirs.name and not kinds.shape_of(ours.type).is_cell:
                reason = "rows keep values of fixed and of variable length in different ways"
            if reason:
                raise KeyTypeError(
                    f"stream column {ours.name!r} has type {ours.type} and the master's key {theirs.name!r} has type {theirs.type}: "
                    f"{reason}; cast the stream column to {theirs.type} first"
                )


def _family(kind: pa.DataType) -> str | None:
    """Types of one family can be compared."""
    tests = (
        ("boolean", pt.is_boolean),
        ("integer", pt.is_integer),
        ("float", pt.is_floating),
        ("decimal", pt.is_decimal),
        ("date", pt.is_date),
        ("time", pt.is_time),
        ("timestamp", pt.is_timestamp),
        ("duration", pt.is_duration),
        ("text", lambda k: pt.is_string(k) or pt.is_large_string(k) or pt.is_string_view(k)),
        (
            "binary",
            lambda k: pt.is_binary(k) or pt.is_large_binary(k) or pt.is_binary_view(k) or pt.is_fixed_size_binary(k),
        ),
    )
    return next((name for name, test in tests if test(kind)), None)


def _loss(ours: pa.DataType, theirs: pa.DataType) -> str | None:
    """Why comparing these types could go wrong, or None."""
    family = _family(theirs)
    if _family(ours) != family:
        return "they are of different kinds"
    signed = pt.is_signed_integer(ours) or pt.is_signed_integer(theirs)
    if signed and pt.is_uint64(ours) != pt.is_uint64(theirs):
        return "no 64-bit integer holds both ranges"
    if family == "timestamp" and (ours.tz is None) != (theirs.tz is None):
        return "one has a time zone and the other has none"
    if family in ("timestamp", "time", "duration") and _UNITS[ours.unit] > _UNITS[theirs.unit]:
        return f"{ours.unit} does not fit into {theirs.unit} without loss"
    if family == "decimal" and (
        ours.scale > theirs.scale or ours.precision - ours.scale > theirs.precision - theirs.scale
    ):
        return "its digits do not fit without loss"
    return None


def _is_exact(kind: pa.DataType) -> bool:
    if pt.is_decimal(kind):
        return bool(kind.precision <= _NARROW_DIGITS and not pt.is_decimal256(kind))
    return _family(kind) not in ("text", "binary", None)


def _is_invertible(kind: pa.DataType) -> bool:
    """Whether the column can be rebuilt from its words (floats lose the sign of zero, date64 its milliseconds)."""
    return bool(_is_exact(kind) and not pt.is_floating(kind) and not pt.is_date64(kind))


def _bring(key: pa.Array, kind: pa.DataType) -> pa.Array:
    """The column in the master's key type, as far as its words need it; values beyond that type's range become null."""
    family = _family(kind)
    if family in ("timestamp", "time", "duration") and key.type != kind:
        factor = 1000 ** (_UNITS[kind.unit] - _UNITS[key.type.unit])
        if factor > 1 and kind.bit_width == 64:
            ticks = key.cast(pa.int32() if key.type.bit_width == 32 else pa.int64())
            reach = np.iinfo(np.int64).max // factor
            fits = pc.and_(pc.less_equal(ticks, reach), pc.greater_equal(ticks, -reach))
            key = pc.if_else(fits, key, pa.scalar(None, key.type))
        return key.cast(kind)
    return key.cast(kind) if family == "decimal" and key.type != kind else key


def _exact_words(key: pa.Array) -> I64:
    kind, plain = key.type, columns.to_plain(key)
    if pt.is_floating(kind):
        values = np.asarray(key.cast(pa.float64()).fill_null(0.0))
        words = np.empty(values.size, np.int64)
        kernels.float_words(values.astype(np.float64), words, values.astype(np.float64).view(np.int64))
        return words
    if pt.is_boolean(kind) or pt.is_decimal128(kind):
        return plain.values.astype(np.uint64).view(np.int64)
    signed = "u" if pt.is_unsigned_integer(kind) else "i"
    values = plain.values.view(f"{signed}{kind.bit_width // 8}") if len(key) else np.zeros(0, np.int64)
    if pt.is_date64(kind):
        values = values // _DAY_MS
    return values.view(np.int64) if values.itemsize == 8 else values.astype(np.int64)


def _cells(key: pa.Array) -> tuple[I64, U8]:
    plain = columns.to_plain(key)
    if kinds.shape_of(key.type).is_cell:
        return plain.starts, plain.data
    size = kinds.shape_of(key.type).size  # fixed_size_binary, long decimals
    return np.arange(len(key) + 1, dtype=np.int64) * size, np.ascontiguousarray(plain.values).view(np.uint8)


def _as_binary(starts: I64, data: U8) -> pa.Array:
    return pa.Array.from_buffers(pa.large_binary(), starts.size - 1, [None, pa.py_buffer(starts), pa.py_buffer(data)])


def _valid(key: pa.Array) -> U8:
    return np.asarray(key.is_valid()).astype(np.uint8)


def _missing(keys: Sequence[pa.Array]) -> U8 | None:
    if not any(key.null_count for key in keys):
        return None
    missing = np.zeros(len(keys[0]), np.uint8)
    for key in keys:
        missing |= np.asarray(key.is_null()).astype(np.uint8)
    return missing
