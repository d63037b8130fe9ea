"""Where the columns of a schema lie in a row."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from semistream import kinds


@dataclass(frozen=True)
class StoredColumn:
    """One column's place in a row. `null_bit` 0 means that the column is never missing."""

    name: str
    type: pa.DataType
    size: int
    is_cell: bool
    offset: int
    null_at: int
    null_bit: int


def alignment(size: int) -> int:
    """The widest word whose multiple the size is."""
    return next(align for align in (8, 4, 2, 1) if size % align == 0) if size else 1


def plan_row(schema: pa.Schema, in_words: str | None) -> list[StoredColumn]:
    """Wide columns first, so that all are aligned without gaps; null bits last."""
    shapes = [kinds.shape_of(field.type, field.name) for field in schema]
    shapes = [kinds.Shape(0, False) if f.name == in_words else shape for f, shape in zip(schema, shapes, strict=True)]
    # a cell is two 4-byte numbers
    order = sorted(range(len(shapes)), key=lambda i: -alignment(4 if shapes[i].is_cell else shapes[i].size))
    offsets, end = {}, 0
    for i in order:
        offsets[i] = end
        end += shapes[i].size
    planned, bits = [], 0
    for i, (field, shape) in enumerate(zip(schema, shapes, strict=True)):
        null_at, null_bit = (end + bits // 8, 1 << bits % 8) if field.nullable else (0, 0)
        bits += 1 if field.nullable else 0
        planned.append(StoredColumn(field.name, field.type, shape.size, shape.is_cell, offsets[i], null_at, null_bit))
    return planned
