"""Nested Arrow values (lists, structs, maps) as byte strings, so that a row can carry them.

One value is one cell, encoded by its type, which is known and therefore not written:

    missing              0
    fixed width          1, the value's bytes
    text, binary         1, the bytes
    struct               1, then for every field: u32 length, the field's cell
    list, map            1, then for every element: u32 length, the element's cell

All of it is done for a whole column at once: one kernel call a level of nesting, not a value.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from semistream import columns
from semistream.parts import cells
from semistream.parts.memory import I64, U8


def encode(column: pa.Array) -> tuple[I64, U8]:
    """Cells of a column: value i is data[starts[i]:starts[i + 1]]."""
    kind, rows = column.type, len(column)
    valid = np.asarray(column.is_valid()).astype(np.uint8) if column.null_count else np.ones(rows, np.uint8)
    children, groups = _children(column)
    if children is None:
        plain = columns.to_plain(column)
        if columns.shape_of(kind).is_cell:
            return cells.flag_cells(plain.starts, plain.data, valid)
        size = columns.shape_of(kind).size
        starts = np.arange(rows + 1, dtype=np.int64) * size
        return cells.flag_cells(starts, np.ascontiguousarray(plain.values).view(np.uint8), valid)
    parts = [encode(child) for child in children]
    lengths = valid.astype(np.int64)
    lengths[valid == 0] = 1
    for starts, _ in parts:
        lengths += np.where(valid, starts[groups[1:]] - starts[groups[:-1]] + 4 * np.diff(groups), 0)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    data = np.zeros(max(int(ends[-1]), 1), np.uint8)
    data[ends[:-1]] = valid
    cursor = ends[:-1] + 1
    for starts, child in parts:
        cells.join_cells(starts, child, groups, valid, data, cursor)
    return ends, data


def decode(kind: pa.DataType, starts: I64, data: U8, valid: U8 | None = None) -> pa.Array:
    """The inverse of `encode`. A value is missing where its cell says so, where it is empty, or where `valid` is 0."""
    rows = starts.size - 1
    present = cells.read_flags(starts, data)
    if valid is not None:
        present &= valid[:rows]
    inner = columns.plain_type(kind)
    if not pt.is_nested(inner):
        return _decode_leaf(kind, starts, data, present)
    mask = pa.array(present == 0)
    cursor = starts[:-1] + 1
    if pt.is_struct(inner):
        fields = [inner.field(i) for i in range(inner.num_fields)]
        if not fields:
            return pa.array([{} if p else None for p in present], inner)
        held = [decode(field.type, *cells.split_cells(cursor, data, present.astype(np.int64))) for field in fields]
        places = pa.array(np.cumsum(present, dtype=np.int64) - 1, mask=present == 0)  # missing structs hold no fields
        arrays = [array.take(places) for array in held]
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=mask)
    counts = cells.count_cells(starts, data, present)
    child = decode(_element(inner).type, *cells.split_cells(cursor, data, counts))
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    return _build_list(inner, offsets, child, present, mask)


def _children(column: pa.Array) -> tuple[list[pa.Array] | None, I64]:
    """Child columns of a nested column, and which of their values belong to which row (None: not nested)."""
    kind, rows = column.type, len(column)
    if pt.is_struct(kind):
        return [column.field(i) for i in range(kind.num_fields)], np.arange(rows + 1, dtype=np.int64)
    if pt.is_fixed_size_list(kind):
        size = kind.list_size
        groups = np.arange(rows + 1, dtype=np.int64) * size
        return [column.values[column.offset * size : (column.offset + rows) * size]], groups
    if pt.is_list_view(kind) or pt.is_large_list_view(kind):
        # Arrow's own cast from a list view breaks on missing values
        lengths = np.asarray(pc.list_value_length(column).fill_null(0)).astype(np.int64)
        return [column.flatten()], np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    if pt.is_map(kind):
        entries = pa.StructArray.from_arrays([column.keys, column.items], fields=[kind.key_field, kind.item_field])
        return [entries], np.asarray(column.offsets).astype(np.int64)
    if pt.is_list(kind) or pt.is_large_list(kind):
        return [column.values], np.asarray(column.offsets).astype(np.int64)
    return None, np.zeros(1, np.int64)


def _element(kind: pa.DataType) -> pa.Field:
    if pt.is_map(kind):
        return pa.field("entries", pa.struct([kind.key_field, kind.item_field]), nullable=False)
    return kind.value_field


def _build_list(kind: pa.DataType, offsets: I64, child: pa.Array, present: U8, mask: pa.Array) -> pa.Array:
    if pt.is_fixed_size_list(kind):
        # missing lists still own list_size elements in Arrow: point them at some that exist, or at nulls
        size = kind.list_size
        take = np.repeat(offsets[:-1], size) + np.tile(np.arange(size), present.size)
        filler = pa.array(np.where(np.repeat(present, size) == 1, take, 0), mask=np.repeat(present, size) == 0)
        return pa.FixedSizeListArray.from_arrays(child.take(filler), type=kind, mask=mask)
    if pt.is_list_view(kind) or pt.is_large_list_view(kind):
        small = pt.is_list_view(kind)
        starts, sizes = (
            pa.array(part.astype(np.int32 if small else np.int64)) for part in (offsets[:-1], np.diff(offsets))
        )
        views = pa.ListViewArray if small else pa.LargeListViewArray
        return views.from_arrays(starts, sizes, child, type=kind, mask=mask)
    bitmap = pa.py_buffer(np.packbits(present, bitorder="little"))
    ends = pa.py_buffer(offsets if pt.is_large_list(kind) else offsets.astype(np.int32))
    return pa.Array.from_buffers(kind, present.size, [bitmap, ends], children=[child])


def _decode_leaf(kind: pa.DataType, starts: I64, data: U8, present: U8) -> pa.Array:
    rows = starts.size - 1
    shape = columns.shape_of(kind)
    inner_starts, inner = cells.unflag_cells(starts, data, present, -1 if shape.is_cell else shape.size)
    if shape.is_cell:
        return columns.from_cells(kind, rows, inner_starts.astype(columns.offset_dtype(kind)), inner, present)
    return columns.from_fixed(kind, rows, inner, present)
