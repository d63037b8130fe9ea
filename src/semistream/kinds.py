"""Arrow types: how a value of each is kept in a row, and what can be done with it.

Every type becomes one of four shapes: nothing (`null`, and keys that their word holds), fixed width, a cell of variable length,
or, for nested types, a cell with an encoding of its own (nested.py).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from semistream.errors import ColumnError

_PLENTY = 1 << 30  # rows that no batch of ours has
_NARROW_DIGITS = 18  # a decimal of so many digits fits 64 bits


class Shape(NamedTuple):
    """How one column is kept: `size` bytes in the fixed part of a row, or a cell (`is_cell`, size 8)."""

    size: int
    is_cell: bool


CELL = Shape(8, True)


def shape_of(kind: pa.DataType, name: str = "") -> Shape:
    """How a column of this type is kept in a row."""
    kind = plain_type(kind)
    if pt.is_null(kind):
        return Shape(0, False)
    if pt.is_boolean(kind):
        return Shape(1, False)
    if is_narrow(kind):
        return Shape(8, False)
    if is_text(kind) or pt.is_nested(kind):
        if (inside := _unkept(kind)) is not None:
            raise ColumnError(
                f"column {name!r} has type {kind}: {inside} cannot be kept in rows; cast or drop the column"
            )
        return CELL
    try:
        return Shape(kind.bit_width // 8, False)
    except ValueError:
        raise ColumnError(
            f"column {name!r} has type {kind}, which semistream cannot keep; cast or drop the column"
        ) from None


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type below dictionary, run-end and extension wrappers."""
    if isinstance(kind, pa.BaseExtensionType):
        return plain_type(kind.storage_type)
    if pt.is_dictionary(kind) or pt.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    return kind


def offset_type(kind: pa.DataType) -> pa.DataType:
    """The text or binary type with offsets into one buffer that carries values of `kind`."""
    kind = plain_type(kind)
    if pt.is_string(kind) or pt.is_binary(kind) or pt.is_large_string(kind) or pt.is_large_binary(kind):
        return kind
    return pa.large_string() if pt.is_string_view(kind) else pa.large_binary()


def offset_dtype(kind: pa.DataType) -> type[np.signedinteger]:
    """Integer type of the offsets that `from_cells` wants for this column."""
    stored = offset_type(kind)
    return np.int32 if pt.is_string(stored) or pt.is_binary(stored) else np.int64


def most_rows(kind: pa.DataType) -> int:
    """Rows a batch may have so that the column's own numbers (dictionary indices, run ends) stay in range."""
    if pt.is_dictionary(kind):
        return int((1 << (kind.index_type.bit_width - 1)) - 1)
    if pt.is_run_end_encoded(kind):
        return int((1 << (kind.run_end_type.bit_width - 1)) - 1)
    return most_rows(kind.storage_type) if isinstance(kind, pa.BaseExtensionType) else 1 << 40


def is_wrapped(kind: pa.DataType) -> bool:
    """Whether the values are brought into another form before they are packed."""
    return bool(kind != plain_type(kind) or pt.is_string_view(kind) or pt.is_binary_view(kind))


def is_nested(kind: pa.DataType) -> bool:
    """Whether values of this type are lists, structs or maps."""
    return bool(pt.is_nested(plain_type(kind)))


def is_bare(kind: pa.DataType) -> bool:
    """Whether the values of a fixed-width column lie in a row as they do in an Arrow buffer."""
    return bool(
        kind == plain_type(kind)
        and not (pt.is_null(kind) or pt.is_boolean(kind) or is_narrow(kind) or shape_of(kind).is_cell)
    )


def is_takeable(kind: pa.DataType) -> bool:
    """Whether Arrow itself can take values of this type from several batches (`take` knows no views, dictionaries may not join)."""
    if is_wrapped(kind):
        return False
    return not pt.is_nested(kind) or all(is_takeable(kind.field(i).type) for i in range(kind.num_fields))


def is_text(kind: pa.DataType) -> bool:
    """Whether values are byte strings of variable length."""
    return bool(
        pt.is_string(kind)
        or pt.is_large_string(kind)
        or pt.is_string_view(kind)
        or pt.is_binary(kind)
        or pt.is_large_binary(kind)
        or pt.is_binary_view(kind)
        or (pt.is_fixed_size_binary(kind) and kind.byte_width == 0)
    )


def is_narrow(kind: pa.DataType) -> bool:
    """Whether a 16-byte decimal has so few digits that 8 bytes hold it."""
    return bool(pt.is_decimal128(kind) and kind.precision <= _NARROW_DIGITS)


def _unkept(kind: pa.DataType) -> pa.DataType | None:
    """A type inside this one that cannot be kept: unions, and wrappers whose small indices many rows together would overflow."""
    if pt.is_union(kind):
        return kind
    if isinstance(kind, pa.BaseExtensionType):
        return _unkept(kind.storage_type)
    if not pt.is_nested(kind) or pt.is_run_end_encoded(kind):
        return None
    for inner in (kind.field(i).type for i in range(kind.num_fields)):
        if most_rows(inner) < _PLENTY or (found := _unkept(inner)) is not None:
            return inner if most_rows(inner) < _PLENTY else found
    return None
