"""Demand: what a stream asks of a master, from a sample of it or from Zipf's law."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from semistream.errors import ColumnError, UsageError
from semistream.models.popularity import Popularity, empirical, zipf
from semistream.models.setting import Demand
from semistream.parts.memory import F64, I64
from semistream.protocols import Master

_MOST_EXPONENT = 10.0


class Sampled(NamedTuple):
    """A sample over a master in word order: where the keys that came really lie."""

    curve: Popularity
    page: I64  # of every key of the sample, hottest first
    asked: F64  # how often it came
    page_count: int

    @property
    def keys(self) -> float:
        """See `Demand`."""
        return self.curve.keys

    def hottest(self, count: float) -> float:
        """See `Demand`."""
        return self.curve.hottest(count)

    def classes(self, beyond: float = 0.0) -> tuple[F64, F64]:
        """See `Demand`."""
        return self.curve.classes(beyond)

    def needed(self, partition_rows: float, beyond: float = 0.0) -> F64:
        """Where the keys of the sample lie, and the share of those it has not seen everywhere."""
        partitions = max(1, round(self.keys / partition_rows))
        first = min(int(beyond), self.page.size)
        seen = 1 - self.curve.hottest(beyond) - (1 - self.curve.hottest(float(self.page.size)))
        place = self.page[first:] * partitions // self.page_count
        known = np.bincount(place, self.asked[first:], partitions)
        unseen = max(0.0, 1 - self.curve.hottest(max(beyond, float(self.page.size))))
        total = known.sum()
        needed = known / total * max(0.0, seen) if total else known
        needed = needed + unseen / partitions
        return np.asarray(needed / needed.sum() if needed.sum() > 0 else np.full(partitions, 1 / partitions))


def from_exponent(master: Master, exponent: float, *, sorted_master: bool) -> Demand:
    """Keys by Zipf's law, as many as the master has rows."""
    if isinstance(exponent, bool) or not isinstance(exponent, int | float) or not 0 <= exponent <= _MOST_EXPONENT:
        raise UsageError(
            f"exponent={exponent!r}: need a number from 0 (all keys alike) to {_MOST_EXPONENT:.0f}; 1 is usual"
        )
    return zipf(max(1, master.rows), float(exponent), sorted_master=sorted_master)


def from_sample(master: Master, sample: pa.RecordBatch, keys: Sequence[str], *, sorted_master: bool) -> Demand:
    """How often the sample's keys came, and where in the master they lie."""
    if not sample.num_rows:
        raise UsageError("the stream sample is empty: need some rows of the stream, the more the better")
    for name in keys:
        if name not in sample.schema.names:
            raise ColumnError(f"the stream sample has no key column {name!r}; it has {', '.join(sample.schema.names)}")
    master.keys.check([sample.schema.field(name) for name in keys])
    words, counts = np.unique(master.keys.words([sample.column(name) for name in keys]).words, return_counts=True)
    hottest = np.argsort(-counts, kind="stable")
    curve = empirical(counts, max(master.rows, words.size), sorted_master=sorted_master)
    reader = master.reader()
    try:
        if not reader.word_order or not reader.pages:
            return curve
        from semistream.budget import Slab

        reader.attach(Slab(sum(share.least for share in reader.shares()) + 4096))
        assert reader.order is not None
        page = np.maximum(0, reader.order.first_words[: reader.pages].searchsorted(words, "right") - 1)
        return Sampled(curve, page[hottest], counts[hottest].astype(np.float64), reader.pages)
    finally:
        reader.close()


def as_batch(stream: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch]) -> pa.RecordBatch:
    """A sample as one batch."""
    if isinstance(stream, pa.RecordBatch):
        return stream
    if not isinstance(stream, pa.Table):
        batches = [batch for batch in stream if batch is not None] if isinstance(stream, Iterable) else None
        if not batches or not all(isinstance(batch, pa.RecordBatch) for batch in batches):
            raise UsageError(
                f"stream={type(stream).__name__}: need a sample with rows, as a pyarrow table or record batches"
            )
        stream = pa.Table.from_batches(batches)
    whole = stream.combine_chunks().to_batches()
    return whole[0] if whole else pa.RecordBatch.from_pylist([], schema=stream.schema)
