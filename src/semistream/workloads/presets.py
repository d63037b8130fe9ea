"""`fixed`: the papers' row sizes, nothing but numbers. 120-byte master rows, 20-byte stream tuples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa

from semistream.workloads.blocks import (
    BLOCK_ROWS,
    Int64s,
    block_numbers,
    generator,
    master_rows_asked,
    read_blocks,
)
from semistream.workloads.columns import required
from semistream.workloads.keys import Domain, Scatter
from semistream.workloads.popularity import Popularity

_PAYLOAD = [f"m{place:02d}" for place in range(1, 29)]
FIXED_MASTER = pa.schema([required("key", pa.int64()), *(required(name, pa.int32()) for name in _PAYLOAD)])
FIXED_STREAM = pa.schema(
    [
        required("key", pa.int64()),
        required("tuple_no", pa.int32()),  # tells equal keys apart, so that a lost or doubled tuple shows in a checksum
        required("quantity", pa.int32()),
        required("source", pa.int32()),
    ]
)


@dataclass(frozen=True)
class Fixed:
    """One master row per key; `shuffled` gives the master in random order instead of by key.

    >>> FIXED_MASTER.names[:2], Fixed(master_rows=10).stream(rows=3).read_all().num_rows
    (['key', 'm01'], 3)
    """

    master_rows: int = 2_000_000
    popularity: Popularity = field(default_factory=Popularity)
    gap: int = 1
    shuffled: bool = False

    on: ClassVar[dict[str, str]] = {"key": "key"}
    master_schema: ClassVar[pa.Schema] = FIXED_MASTER
    stream_schema: ClassVar[pa.Schema] = FIXED_STREAM

    def __post_init__(self) -> None:
        Domain(self.master_rows, self.gap)  # which checks both

    @property
    def domain(self) -> Domain:
        """The keys of the master."""
        return Domain(self.master_rows, self.gap)

    def master(self, rows: int | None = None, seed: int = 0, batch_rows: int = BLOCK_ROWS) -> pa.RecordBatchReader:
        """The master, or its first `rows` rows."""
        order = Scatter(self.master_rows, seed)

        def block(number: int) -> pa.RecordBatch:
            numbers = block_numbers(number, self.master_rows)
            keys = self.domain.keys(order(numbers) if self.shuffled else numbers)
            return fixed_master_block(keys, seed, number)

        return read_blocks(FIXED_MASTER, master_rows_asked(rows, self.master_rows), batch_rows, block)

    def stream(self, rows: int, batch_rows: int = BLOCK_ROWS, seed: int = 0) -> pa.RecordBatchReader:
        """The first `rows` tuples."""
        return fixed_stream(self.popularity, self.domain, rows, batch_rows, seed)


def fixed_master_block(keys: Int64s, seed: int, number: int) -> pa.RecordBatch:
    """120-byte rows for these keys: random numbers that neither compress nor repeat."""
    draws = generator(seed, "fixed.master", number)
    payload = draws.integers(-(1 << 31), 1 << 31, (len(_PAYLOAD), len(keys)), dtype=np.int32)
    return pa.record_batch([pa.array(keys), *map(pa.array, payload)], schema=FIXED_MASTER)


def fixed_stream(popularity: Popularity, domain: Domain, rows: int, batch_rows: int, seed: int) -> pa.RecordBatchReader:
    """20-byte tuples that ask for the keys of this domain."""

    def block(number: int) -> pa.RecordBatch:
        draws = generator(seed, "fixed.stream", number)
        tuple_no = np.arange(number * BLOCK_ROWS, (number + 1) * BLOCK_ROWS) & 0x7FFFFFFF
        columns = [
            pa.array(popularity.keys(domain, seed, number)),
            pa.array(tuple_no.astype(np.int32)),
            pa.array(draws.integers(1, 100, BLOCK_ROWS, dtype=np.int32)),
            pa.array(draws.integers(0, 64, BLOCK_ROWS, dtype=np.int32)),
        ]
        return pa.record_batch(columns, schema=FIXED_STREAM)

    return read_blocks(FIXED_STREAM, rows, batch_rows, block)
