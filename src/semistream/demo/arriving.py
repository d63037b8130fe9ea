"""Orders arriving: a thread drops small Parquet files into an inbox, in bursts, while the query runs."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq

from semistream.workloads import OnOff, Popularity, Retail, in_steps

STEP_MS = 250
RATE_PER_S = 40_000  # on average; bursts are several times that
UNKNOWN_SHARE = 0.02
RESENT_SHARE = 0.02


def shop(orders: int, products: int) -> Retail:
    """The tables of the demo: Zipf-distributed products of which some are unknown, orders in bursts of which some are sent twice."""
    return Retail(
        master_rows=products,
        popularity=Popularity(exponent=1.0, absent_share=UNKNOWN_SHARE),
        gap=3,
        shuffled=True,
        arrivals=OnOff(rate_per_s=min(RATE_PER_S, max(orders, 1000)), step_ms=STEP_MS, period_ms=800.0),
        resent_share=RESENT_SHARE,
    )


@dataclass
class Inbox:
    """A folder that fills up while the `with` block runs; leaving the block stops the orders.

    `sent` counts the rows in the folder; `done` is set after the last.
    """

    folder: Path
    shop: Retail
    orders: int
    seed: int
    sent: int = 0
    done: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="orders")
        self._filled = self._thread.submit(self._fill)
        return self

    def __exit__(self, *failure: object) -> None:
        self.done.set()
        self._thread.shutdown()
        self._filled.result()  # raises what went wrong in the thread

    def _fill(self) -> None:
        try:
            self._drop_files()
        finally:
            self.done.set()

    def _drop_files(self) -> None:
        start = time.monotonic()
        steps = in_steps(self.shop.stream(self.orders, seed=self.seed), self.shop.arrivals, self.seed)
        for step, batch in enumerate(steps):
            early_s = start + step * STEP_MS / 1000 - time.monotonic()
            if early_s > 0 and self.done.wait(early_s):
                return
            if batch is not None:
                self._drop(batch, step)

    def _drop(self, batch: pa.RecordBatch, step: int) -> None:
        """One file. Spark does not look at names with a dot, so a file appears to it when it is whole."""
        hidden = self.folder / f".{step:05}"
        pq.write_table(pa.Table.from_batches([batch]), hidden)
        hidden.rename(self.folder / f"orders-{step:05}.parquet")
        self.sent += batch.num_rows
