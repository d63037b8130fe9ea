"""`ordered=True`: finished rows wait here until every tuple before them is finished.

The buffer is bounded because the join admits only stream positions below `limit`: a window of tuples whose rows, at the master's highest
number of rows a key, fit the bytes set aside. Batches are kept as they came and cut when the finished prefix moves, in large steps.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from semistream import arranging
from semistream.parts import order
from semistream.parts.memory import I64

_COPIES = 4  # as it came, cut, joined, sorted


class Reorder:
    """Holds output rows by stream position and releases them in order."""

    def __init__(self, schema: pa.Schema, given_bytes: int, row_bytes: float, rows_per_key: int) -> None:
        self._schema, self._given_bytes, self._rows_per_key = schema, given_bytes, max(rows_per_key, 1)
        self.window = self._positions_for(row_bytes)
        self._ring = self.window
        self._done = np.zeros(self._ring, np.uint8)
        self._held: list[tuple[pa.RecordBatch, I64]] = []
        self._due = 0  # first position that is not finished
        self._released = 0
        self._largest_rows = 0

    @property
    def limit(self) -> int:
        """First position that may not be admitted yet."""
        return self._due + self.window

    def _positions_for(self, row_bytes: float) -> int:
        """How many positions may be open so that all their rows fit, also while they are being sorted."""
        return max(1, int(self._given_bytes / (max(row_bytes, 1.0) * self._rows_per_key * _COPIES + 1)))

    def put(self, batch: pa.RecordBatch, positions: I64) -> None:
        """Keep output rows."""
        self._held.append((batch, positions.copy()))
        self._largest_rows = max(self._largest_rows, batch.num_rows)
        # rows may turn out wider than was thought; narrower ones do not matter, the ring has its size
        widest = max(held.nbytes / held.num_rows for held, _ in self._held)
        self.window = min(self._ring, self._positions_for(widest))

    def finish(self, positions: I64, read: int) -> None:
        """These positions will give no more rows; the stream has been read up to `read`."""
        order.finish(self._done, positions)
        self._due = order.advance(self._done, self._due, min(read, self._due + self._ring))

    @property
    def ready(self) -> bool:
        """Whether releasing is worth the while: a quarter of the window is finished."""
        return self._due - self._released >= max(1, self.window // 4)

    def release(self) -> Iterator[pa.RecordBatch]:
        """Rows whose turn has come."""
        if self._due == self._released:
            return
        self._released = self._due
        ready, kept = [], []
        for batch, positions in self._held:
            now = np.flatnonzero(positions < self._due)
            if now.size == positions.size:
                ready.append((batch, positions))
                continue
            if now.size:
                ready.append((arranging.take(batch, now), positions[now]))
                later = np.flatnonzero(positions >= self._due)
                batch, positions = arranging.take(batch, later), positions[later]
            kept.append((batch, positions))
        self._held = kept
        if not ready:
            return
        positions = np.concatenate([p for _, p in ready])
        yield from arranging.arrange(
            [b for b, _ in ready], self._schema, np.argsort(positions, kind="stable"), self._largest_rows
        )
