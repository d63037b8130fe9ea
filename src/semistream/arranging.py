"""Rows of batches in another order, of any types."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from semistream import kinds
from semistream.parts.memory import I64, view
from semistream.records import RowCodec


def take(batch: pa.RecordBatch, picks: I64) -> pa.RecordBatch:
    """Rows of a batch, of any types."""
    if not picks.size:
        return batch.slice(0, 0)
    return next(arrange([batch], batch.schema, picks, picks.size))


def arrange(batches: list[pa.RecordBatch], schema: pa.Schema, order: I64, most_rows: int) -> Iterator[pa.RecordBatch]:
    """The rows of all batches in another order, in new batches of at most so many rows.

    By Arrow's `take` where it knows the types, else by way of packed rows, which know all: views and runs have no `take`, and
    dictionaries do not always join.
    """
    chunks = [order[start : start + most_rows] for start in range(0, order.size, most_rows)]
    if all(kinds.is_takeable(field.type) for field in schema):
        whole = pa.concat_batches(batches)
        yield from (whole.take(pa.array(chunk)) for chunk in chunks)
        return
    codec = RowCodec(schema)
    encoded = [codec.encode(batch) for batch in batches]
    width = -(-codec.width // 8) * 8
    sizes = np.concatenate([np.zeros(e.rows, np.int64) if e.sizes is None else e.sizes for e in encoded])
    row_at = np.arange(sizes.size, dtype=np.int64) * width
    heap_at = width * sizes.size + np.cumsum(sizes) - sizes
    memory = view(np.zeros((width * sizes.size + int(sizes.sum()) + 8) // 8 * 8, np.uint8))
    first = 0
    for one in encoded:
        rows = slice(first, first + one.rows)
        codec.pack(one, np.arange(one.rows, dtype=np.int64), memory, row_at[rows], heap_at[rows])
        first += one.rows
    for chunk in chunks:
        yield pa.record_batch(codec.unpack(memory, row_at[chunk], heap_at[chunk]), schema=schema)
