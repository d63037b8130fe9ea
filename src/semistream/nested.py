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

from semistream import columns, kinds
from semistream.parts import cells
from semistream.parts.memory import I64, U8


def encode(column: pa.Array) -> tuple[I64, U8]:
    """Cells of a column: value i is data[starts[i]:starts[i + 1]]."""
    column = columns.plain_array(column)
    kind, rows = column.type, len(column)
    valid = np.asarray(column.is_valid()).astype(np.uint8) if column.null_count else np.ones(rows, np.uint8)
    children, groups = _children(column)
    if children is None:
        plain = columns.to_plain(column)
        if kinds.shape_of(kind).is_cell:
            return cells.flag_cells(plain.starts, plain.data, valid)
        size = kinds.shape_of(kind).size
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
    present = cells.read_flags(starts, data)
    if valid is not None:
        present &= valid[: present.size]
    inner = kinds.plain_type(kind)
    if not pt.is_nested(inner):
        return _decode_leaf(kind, starts, data, present)
    cursor = starts[:-1] + 1
    bitmap = pa.py_buffer(np.packbits(present, bitorder="little"))
    if pt.is_struct(inner):
        one = np.ones(present.size, np.int64)
        children = [decode(field.type, *cells.split_cells(cursor, data, one, present)) for field in inner.fields]
        return columns.restore(pa.Array.from_buffers(inner, present.size, [bitmap], children=children), kind)
    counts = cells.count_cells(starts, data, present)
    if pt.is_fixed_size_list(inner):
        counts[:] = inner.list_size  # missing lists own their elements too
    child = decode(_element(inner).type, *cells.split_cells(cursor, data, counts, present))
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    return columns.restore(_build_list(inner, offsets, child, bitmap), kind)


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
    if pt.is_map(kind) or pt.is_list(kind) or pt.is_large_list(kind):
        offsets = np.asarray(column.offsets).astype(np.int64)
        first, count = int(offsets[0]), int(offsets[-1] - offsets[0])  # a slice holds all its parent's elements
        if not pt.is_map(kind):
            return [column.values.slice(first, count)], offsets - first
        pairs = [column.keys.slice(first, count), column.items.slice(first, count)]
        return [pa.StructArray.from_arrays(pairs, fields=[kind.key_field, kind.item_field])], offsets - first
    return None, np.zeros(1, np.int64)


def _element(kind: pa.DataType) -> pa.Field:
    if pt.is_map(kind):
        return pa.field("entries", pa.struct([kind.key_field, kind.item_field]), nullable=False)
    return kind.value_field


def _build_list(kind: pa.DataType, offsets: I64, child: pa.Array, bitmap: pa.Buffer) -> pa.Array:
    rows = offsets.size - 1
    if pt.is_fixed_size_list(kind):
        return pa.Array.from_buffers(kind, rows, [bitmap], children=[child])
    wide = pt.is_large_list(kind) or pt.is_large_list_view(kind)
    numbers = offsets if wide else offsets.astype(np.int32)
    buffers = [bitmap, pa.py_buffer(numbers)]
    if pt.is_list_view(kind) or pt.is_large_list_view(kind):
        buffers = [bitmap, pa.py_buffer(numbers[:-1].copy()), pa.py_buffer(np.diff(numbers))]
    return pa.Array.from_buffers(kind, rows, buffers, children=[child])


def _decode_leaf(kind: pa.DataType, starts: I64, data: U8, present: U8) -> pa.Array:
    rows = starts.size - 1
    shape = kinds.shape_of(kind)
    inner_starts, inner = cells.unflag_cells(starts, data, present, -1 if shape.is_cell else shape.size)
    if shape.is_cell:
        return columns.from_cells(kind, rows, inner_starts.astype(kinds.offset_dtype(kind)), inner, present)
    return columns.from_fixed(kind, rows, inner, present)
