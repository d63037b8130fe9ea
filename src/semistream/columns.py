"""Arrow columns as plain arrays, which kernels understand, and back. Types and their shapes are in kinds.py."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from semistream import kinds, nested
from semistream.errors import ColumnError
from semistream.parts.memory import I64, U8

NO_BYTES: U8 = np.zeros(8, np.uint8)


class Plain(NamedTuple):
    """One column as arrays: `values` (fixed), or `starts` and `data` (cells); `valid` is None when nothing is missing."""

    values: NDArray[Any]
    starts: I64
    data: U8
    valid: U8 | None


def to_plain(column: pa.Array) -> Plain:
    """Arrays of an Arrow column, without copying where Arrow's own layout already is the plain one."""
    column = plain_array(column)
    kind = column.type
    valid = _valid(column)
    if pt.is_nested(kind):
        starts, data = nested.encode(column)
        return Plain(NO_BYTES, starts, data, valid)
    if kinds.is_text(kind):
        return _cells(column, valid)
    if pt.is_null(kind):
        return Plain(NO_BYTES, _NO_STARTS, NO_BYTES, valid)
    values = borrow(column.buffers()[1])
    if pt.is_boolean(kind):
        return Plain(_bits(values, column.offset, len(column)), _NO_STARTS, NO_BYTES, valid)
    size = kind.bit_width // 8
    values = values[column.offset * size : (column.offset + len(column)) * size]
    if kinds.is_narrow(kind):
        return Plain(values.view(np.uint64)[::2].copy(), _NO_STARTS, NO_BYTES, valid)
    return Plain(values.view(f"u{size}") if size in (2, 4, 8) else values, _NO_STARTS, NO_BYTES, valid)


def from_fixed(kind: pa.DataType, rows: int, values: U8, valid: U8 | None) -> pa.Array:
    """An Arrow column from gathered fixed-width values (bytes) and one byte a row that says what is present."""
    plain = kinds.plain_type(kind)
    if pt.is_null(plain):
        return restore(pa.nulls(rows), kind)
    if pt.is_boolean(plain):
        values = np.packbits(values[:rows], bitorder="little")
    elif kinds.is_narrow(plain):
        wide = np.empty((rows, 2), np.int64)
        wide[:, 0] = values.view(np.int64)[:rows]
        np.right_shift(wide[:, 0], 63, out=wide[:, 1])
        values = wide.view(np.uint8).reshape(-1)
    buffers = [_bitmap(valid, rows), pa.py_buffer(values)]
    return restore(pa.Array.from_buffers(plain, rows, buffers), kind)


def from_cells(kind: pa.DataType, rows: int, ends: NDArray[np.signedinteger], data: U8, valid: U8 | None) -> pa.Array:
    """An Arrow column from gathered cells: value i is data[ends[i]:ends[i + 1]]."""
    plain = kinds.plain_type(kind)
    if pt.is_nested(plain):
        return restore(nested.decode(plain, ends[: rows + 1].astype(np.int64), data, valid), kind)
    stored = kinds.offset_type(plain)
    array = pa.Array.from_buffers(
        stored, rows, [_bitmap(valid, rows), pa.py_buffer(ends[: rows + 1]), pa.py_buffer(data)]
    )
    return restore(array if stored == plain else array.cast(plain), kind)


def new_bytes(size: int) -> tuple[pa.Buffer, U8]:
    """Memory for a column that leaves with the caller, from Arrow's pool, and as an array.

    The pool keeps what comes back: with several batches alive, numpy's memory went back to the system between two batches, and touching it
    anew took longer than filling it.
    """
    buffer = pa.allocate_buffer(max(size, 8))
    return buffer, np.frombuffer(buffer, np.uint8)


def refuse_schema(expected: pa.Schema, came: pa.Schema, position: int) -> NoReturn:
    """The stream's schema changed under way."""
    changed = [f"{f.name} {f.type}" for f in came if f not in list(expected)] or came.names
    raise ColumnError(
        f"the stream's batch at row {position} has another schema than the first: {', '.join(changed)} came, "
        f"{', '.join(f'{f.name} {f.type}' for f in expected)} was needed; cast the batches to one schema"
    )


def borrow(buffer: pa.Buffer | None) -> U8:
    """The bytes of an Arrow buffer as an array that looks writable.

    It is not to be written to: numba compiles a second version of a kernel for read-only arrays, and kernels only write to arrays
    that parts own.
    """
    if buffer is None or buffer.size == 0:
        return NO_BYTES[:0]
    bytes_ = (ctypes.c_uint8 * buffer.size).from_address(buffer.address)
    array = np.ctypeslib.as_array(bytes_)
    bytes_.keep = buffer  # the array keeps `bytes_`, which keeps the buffer
    return array


_NO_STARTS: I64 = np.zeros(1, np.int64)


def _cells(column: pa.Array, valid: U8 | None) -> Plain:
    if pt.is_string(column.type) or pt.is_binary(column.type):
        offsets = borrow(column.buffers()[1]).view(np.int32)
    elif pt.is_large_string(column.type) or pt.is_large_binary(column.type):
        offsets = borrow(column.buffers()[1]).view(np.int64)
    else:
        return _cells(column.cast(kinds.offset_type(column.type)), valid)
    if not offsets.size:  # Arrow allows an empty column to have no offsets
        return Plain(NO_BYTES, _NO_STARTS, NO_BYTES[:0], valid)
    starts = offsets[column.offset : column.offset + len(column) + 1].astype(np.int64)
    return Plain(NO_BYTES, starts, borrow(column.buffers()[2]), valid)


def _valid(column: pa.Array) -> U8 | None:
    if column.null_count == 0:
        return None
    if pt.is_null(column.type):
        return np.zeros(len(column), np.uint8)
    return _bits(borrow(column.buffers()[0]), column.offset, len(column))


def _bits(bitmap: U8, offset: int, count: int) -> U8:
    first = offset >> 3
    bits = np.unpackbits(bitmap[first : (offset + count + 7) >> 3], bitorder="little")
    return np.ascontiguousarray(bits[offset - 8 * first :][:count])


def _bitmap(valid: U8 | None, rows: int) -> pa.Buffer | None:
    return None if valid is None else pa.py_buffer(np.packbits(valid[:rows], bitorder="little"))


def plain_array(column: pa.Array) -> pa.Array:
    """The column below dictionary, run-end and extension wrappers."""
    if isinstance(column.type, pa.BaseExtensionType):
        return plain_array(column.storage)
    if pt.is_dictionary(column.type):
        values = plain_array(column.dictionary)
        if not kinds.is_takeable(values.type):
            values = values.cast(kinds.offset_type(values.type))
        return values.take(column.indices)
    if pt.is_run_end_encoded(column.type):
        return plain_array(pc.run_end_decode(column))
    return column


def restore(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Put the wrappers of `kind` back round a plain column."""
    if column.type == kind:
        return column
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, restore(column, kind.storage_type))
    if pt.is_dictionary(kind):
        return restore(column, kind.value_type).dictionary_encode().cast(kind)
    if pt.is_run_end_encoded(kind):
        return pc.run_end_encode(restore(column, kind.value_type), run_end_type=kind.run_end_type)
    return column.cast(kind)
