"""Random rows in blocks of fixed size, cut into batches afterwards: why a seed gives the same rows in any batch size.

Every table here is made in blocks of 65,536 rows. A block draws from generators of its own, seeded by (seed, purpose,
number of the block), so it never depends on how many rows are asked for or how they are cut: a longer run begins
with the shorter one. Only one block and one batch are held at a time, whatever the size of the table.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from semistream.errors import UsageError

BLOCK_ROWS = 1 << 16

Int64s = npt.NDArray[np.int64]
Float64s = npt.NDArray[np.float64]


class Tables(Protocol):
    """What every workload offers: a master, a stream that asks for its rows, and the columns that join them."""

    @property
    def on(self) -> dict[str, str]:
        """The key: stream column -> master column."""

    @property
    def master_rows(self) -> int:
        """How many rows the whole master has."""

    @property
    def master_schema(self) -> pa.Schema:
        """The columns of the master."""

    @property
    def stream_schema(self) -> pa.Schema:
        """The columns of the stream."""

    def master(self, rows: int | None = None, seed: int = 0, batch_rows: int = BLOCK_ROWS) -> pa.RecordBatchReader:
        """The master, or its first `rows` rows, in batches of at most `batch_rows`."""

    def stream(self, rows: int, batch_rows: int = BLOCK_ROWS, seed: int = 0) -> pa.RecordBatchReader:
        """The first `rows` rows of the stream, in batches of `batch_rows` (the last may be shorter)."""


def need_whole(name: str, value: object, least: int, most: int = 1 << 62) -> int:
    """The value as an int, or a `UsageError` that names the argument and its limits."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        limits = f"at least {least}" if most == 1 << 62 else f"from {least} to {most}"
        raise UsageError(f"workloads: {name}={value!r}: need a whole number, {limits}")
    return int(value)


def need_number(name: str, value: object, least: float, most: float) -> float:
    """The value as a float within [least, most], or a `UsageError` that names the argument and its limits."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not least <= value <= most:
        raise UsageError(f"workloads: {name}={value!r}: need a number from {least:g} to {most:g}")
    return float(value)


def generator(seed: int, purpose: str, block: int = 0) -> np.random.Generator:
    """A random generator that belongs to one purpose and one block.

    >>> int(generator(7, "keys").integers(1000)) == int(generator(7, "keys").integers(1000))
    True
    """
    words = [need_whole("seed", seed, 0), zlib.crc32(purpose.encode()), block]
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(words)))


def mixed(numbers: Int64s) -> npt.NDArray[np.uint64]:
    """64 well-mixed bits for every number: a stand-in for a random draw that must be the same in every table.

    Two multiply-and-shift rounds (the constants are those of the splitmix64 finaliser).
    """
    bits = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


class Rows:
    """Batches as a line of rows from which any number can be taken; holds one batch besides what it hands out."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = iter(batches)
        self._rest: pa.RecordBatch | None = None

    def take(self, rows: int) -> pa.RecordBatch | None:
        """The next `rows` rows (fewer at the end) as one batch, or None when nothing is left."""
        parts: list[pa.RecordBatch] = []
        while rows > 0:
            batch = self._rest if self._rest is not None else next(self._batches, None)
            if batch is None:
                break
            self._rest = batch.slice(rows) if batch.num_rows > rows else None
            parts.append(batch.slice(0, rows))
            rows -= parts[-1].num_rows
        if len(parts) < 2:
            return parts[0] if parts else None
        return pa.Table.from_batches(parts).combine_chunks().to_batches()[0]


def recut(batches: Iterable[pa.RecordBatch], batch_rows: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of `batch_rows`; only the last may be shorter."""
    rows = Rows(batches)
    while (batch := rows.take(batch_rows)) is not None:
        yield batch


def read_blocks(
    schema: pa.Schema, rows: int, batch_rows: int, make_block: Callable[[int], pa.RecordBatch]
) -> pa.RecordBatchReader:
    """A reader over the first `rows` rows of a table whose blocks `make_block(number)` makes."""
    rows, batch_rows = need_whole("rows", rows, 0), need_whole("batch_rows", batch_rows, 1)

    def blocks() -> Iterator[pa.RecordBatch]:
        for first in range(0, rows, BLOCK_ROWS):
            yield make_block(first // BLOCK_ROWS).slice(0, rows - first)

    return pa.RecordBatchReader.from_batches(schema, recut(blocks(), batch_rows))


def master_rows_asked(rows: int | None, master_rows: int) -> int:
    """How many rows of the master to make: all of them, or the first few."""
    return master_rows if rows is None else need_whole("rows of the master", rows, 0, master_rows)


def block_numbers(block: int, size: int) -> Int64s:
    """The row numbers 1..size that fall into this block."""
    first = block * BLOCK_ROWS
    return np.arange(first + 1, min(first + BLOCK_ROWS, size) + 1, dtype=np.int64)
