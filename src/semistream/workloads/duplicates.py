"""A master in which keys repeat and many keys are missing, as in SSBJ's experiments: genuinely many-to-many.

Keys are drawn uniformly with repetition from as many values as there are rows, so a key has 0, 1, 2, 3 … rows with the
probabilities of a Poisson law of mean 1: 37 % of the keys that the stream may ask for have none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from semistream.workloads.blocks import BLOCK_ROWS, block_numbers, generator, master_rows_asked, need_whole, read_blocks
from semistream.workloads.keys import Domain
from semistream.workloads.popularity import Popularity
from semistream.workloads.presets import FIXED_MASTER, FIXED_STREAM, fixed_master_block, fixed_stream


@dataclass(frozen=True)
class Duplicates:
    """Rows as in `Fixed`; `distinct_keys` (as many as rows, if None) is how many values a key may take.

    >>> Duplicates(master_rows=1000).master(seed=1).read_all()["key"].unique().to_numpy().size < 700
    True
    """

    master_rows: int = 2_000_000
    popularity: Popularity = field(default_factory=Popularity)
    distinct_keys: int | None = None
    gap: int = 1

    on: ClassVar[dict[str, str]] = {"key": "key"}
    master_schema: ClassVar[pa.Schema] = FIXED_MASTER
    stream_schema: ClassVar[pa.Schema] = FIXED_STREAM

    def __post_init__(self) -> None:
        need_whole("master_rows", self.master_rows, 1, 1 << 40)
        need_whole("distinct_keys", self.domain.size, 1, 1 << 40)

    @property
    def domain(self) -> Domain:
        """The values a key may take."""
        return Domain(self.master_rows if self.distinct_keys is None else self.distinct_keys, self.gap)

    def master(self, rows: int | None = None, seed: int = 0, batch_rows: int = BLOCK_ROWS) -> pa.RecordBatchReader:
        """The master, or its first `rows` rows, in random order."""

        def block(number: int) -> pa.RecordBatch:
            count = len(block_numbers(number, self.master_rows))
            numbers = generator(seed, "duplicates", number).integers(1, self.domain.size, BLOCK_ROWS, endpoint=True)
            return fixed_master_block(self.domain.keys(numbers[:count]), seed, number)

        return read_blocks(FIXED_MASTER, master_rows_asked(rows, self.master_rows), batch_rows, block)

    def stream(self, rows: int, batch_rows: int = BLOCK_ROWS, seed: int = 0) -> pa.RecordBatchReader:
        """The first `rows` tuples; their keys may have no row, one or several."""
        return fixed_stream(self.popularity, self.domain, rows, batch_rows, seed)
