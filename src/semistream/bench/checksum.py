"""A checksum of a table that forgets the order of its rows: two answers are equal when their checksums are.

Every value becomes one 64-bit word, a row is the sum of its words times one odd number per column, mixed once; the
table is the sum of its rows, modulo 2^64. Columns are taken by name and cast to the expected types first, so that
engines which return strings as views or decimals of another width are judged by values only. Sums of parts add up to
the sum of the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from semistream.parts.compiler import kernel

Words = NDArray[np.uint64]
CHUNK_ROWS = 1 << 16  # a chunk's words stay in the second-level cache
GATHER_ROWS = 1 << 18  # small batches are put together first: a column costs some microseconds whatever its length
NULL = np.uint64(0x9E3779B97F4A7C15)


class Checksum(NamedTuple):
    """Number of rows and the sum of their hashes."""

    rows: int
    total: int

    def __add__(self, other: object) -> Checksum:
        """The checksum of both tables together."""
        assert isinstance(other, Checksum)
        return Checksum(self.rows + other.rows, (self.total + other.total) % (1 << 64))

    def __str__(self) -> str:
        """Text for results, `rows:hash`."""
        return f"{self.rows}:{self.total:016x}"


EMPTY = Checksum(0, 0)


def checksum(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Checksum:
    """Checksum of all rows over the columns of `schema`; a missing, doubled or additional column is an error.

    >>> one = pa.record_batch({"k": [1, 2], "v": ["a", None]})
    >>> two = pa.record_batch({"v": pa.array([None, "a"], pa.large_string()), "k": [2, 1]})
    >>> checksum([one], one.schema) == checksum([two], one.schema)
    True
    """
    total = EMPTY
    for batch in _gathered(batches):
        if sorted(batch.schema.names) != sorted(schema.names):
            raise ValueError(f"answer has columns {batch.schema.names}, expected {schema.names}")
        for start in range(0, batch.num_rows, CHUNK_ROWS):
            total += _chunk(batch.slice(start, CHUNK_ROWS), schema)
    return total


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of a useful size."""
    kept: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        kept.append(batch)
        rows += batch.num_rows
        if rows >= GATHER_ROWS:
            yield from pa.Table.from_batches(kept).combine_chunks().to_batches()
            kept, rows = [], 0
    if kept:
        yield from pa.Table.from_batches(kept).combine_chunks().to_batches()


def _chunk(batch: pa.RecordBatch, schema: pa.Schema) -> Checksum:
    """Checksum of a few rows."""
    factors = _mixed(np.arange(1, len(schema) + 1, dtype=np.uint64)) | np.uint64(1)
    rows = np.zeros(batch.num_rows, np.uint64)
    for field, factor in zip(schema, factors, strict=True):
        rows += words(batch.column(field.name).cast(field.type)) * factor
    return Checksum(batch.num_rows, int(_mixed(rows).sum(dtype=np.uint64)))


def words(column: pa.Array) -> Words:
    """One 64-bit word per value: equal values of one column give equal words."""
    present = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None
    found = _values(column)
    return found if present is None else np.where(present, found, NULL)


def _values(column: pa.Array) -> Words:
    """Words of the values; what stands at a null does not matter."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _values(column.dictionary_decode())
    if pa.types.is_decimal(kind):
        return _decimal_words(column.cast(pa.decimal128(38, kind.scale)))
    if pa.types.is_floating(kind):
        values = column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0  # -0.0 becomes 0.0
        return np.asarray(np.where(np.isnan(values), np.nan, values).view(np.uint64))
    if pa.types.is_boolean(kind):
        return _values(column.cast(pa.uint8()))
    if pa.types.is_integer(kind):
        return _unsigned(column)
    if pa.types.is_temporal(kind):
        return _unsigned(column.cast(pa.int32() if kind.bit_width == 32 else pa.int64()))
    data = column.cast(pa.large_binary()).fill_null(b"")
    _, offsets, content = data.buffers()
    starts = np.frombuffer(offsets, np.int64)[data.offset : data.offset + len(data) + 1]
    found = np.empty(len(data), np.uint64)
    _hash_bytes(starts, np.frombuffer(content, np.uint8) if content else np.empty(0, np.uint8), found)
    return found


def _unsigned(column: pa.Array) -> Words:
    """Two's complement of any integer type, widened."""
    values = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
    return np.asarray(values.astype(np.int64, copy=False).view(np.uint64))


def _decimal_words(column: pa.Array) -> Words:
    """Both halves of a 128-bit number, the upper one moved out of the way of the lower one."""
    halves = np.frombuffer(column.buffers()[1], np.uint64)[2 * column.offset : 2 * (column.offset + len(column))]
    return np.asarray(halves[0::2] + halves[1::2] * NULL)


def _mixed(rows: Words) -> Words:
    """Spread every bit over the whole word (the finaliser of a well-known generator, splitmix64)."""
    rows = (rows ^ (rows >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    rows = (rows ^ (rows >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return rows ^ (rows >> np.uint64(31))


@kernel
def _hash_bytes(starts: NDArray[np.int64], content: NDArray[np.uint8], found: Words) -> None:
    """Hash the bytes of every value: one multiplication per byte, the length included at the end."""
    for row in range(len(found)):
        seen = np.uint64(14695981039346656037)
        for at in range(starts[row], starts[row + 1]):
            seen = (seen ^ np.uint64(content[at])) * np.uint64(1099511628211)
        found[row] = seen ^ np.uint64(starts[row + 1] - starts[row])
