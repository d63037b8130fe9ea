"""Orders arriving: a thread drops small Parquet files into an inbox, in bursts, while the query runs."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from semistream.workloads import BModel, Popularity, Retail, counts
from semistream.workloads.arrivals import CHUNK_STEPS
from semistream.workloads.blocks import Rows

FILE_S = 0.25  # a file holds the orders of so many seconds
RATE_PER_S = 40_000  # on average
BIAS = 0.65  # of the b-model: the fullest file holds some five times the average, the emptiest a tenth of it


def shop(orders: int, products: int) -> Retail:
    """The tables of the demo: Zipf-distributed products, a few of them unknown, and orders in bursts, a few sent twice.

    A b-model spreads its tuples over a window of fixed length: the window is the demo, at least four seconds long.
    """
    step_ms = max(1, round(1000 * orders / RATE_PER_S / CHUNK_STEPS))
    return Retail(
        master_rows=products,
        popularity=Popularity(exponent=1.0, absent_share=0.02),
        gap=3,
        shuffled=True,
        arrivals=BModel(rate_per_s=1000 * orders / step_ms / CHUNK_STEPS, step_ms=step_ms, bias=BIAS),
        resent_share=0.02,
    )


@dataclass
class Inbox:
    """A folder that fills up while the `with` block runs; leaving the block stops the orders.

    One file comes at once, the others when `flowing` is set: the first micro-batch of a Spark that has just started takes
    ten times as long as the later ones, and bursts should meet a stream that runs. `sent` counts the rows in the folder;
    `done` is set after the last.
    """

    folder: Path
    shop: Retail
    orders: int
    seed: int
    sent: int = 0
    flowing: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="orders")
        self._filled = self._thread.submit(self._fill)
        return self

    def __exit__(self, *failure: object) -> None:
        self.done.set()
        self.flowing.set()
        self._thread.shutdown()
        self._filled.result()  # raises what went wrong in the thread

    def _fill(self) -> None:
        try:
            self._drop_files()
        finally:
            self.done.set()

    def _drop_files(self) -> None:
        rows = Rows(self.shop.stream(self.orders, seed=self.seed))
        first, *others = self._file_sizes()
        self._drop(rows.take(first), 0)
        self.flowing.wait()
        start = time.monotonic()
        for number, size in enumerate(others, 1):
            if self.done.wait(max(0.0, start + number * FILE_S - time.monotonic())):
                return
            self._drop(rows.take(size), number)

    def _file_sizes(self) -> list[int]:
        """Orders per file: those that arrive while it is open; at least one in the first, all that are left in the last."""
        arrivals = self.shop.arrivals
        arrived = counts(arrivals, CHUNK_STEPS, self.seed)
        steps = max(1, round(1000 * FILE_S / arrivals.step_ms))
        sizes: list[int] = np.add.reduceat(arrived, np.arange(0, CHUNK_STEPS, steps)).tolist()
        sizes[0] = max(1, sizes[0])
        sizes[-1] += self.orders - sum(sizes)
        return sizes

    def _drop(self, batch: pa.RecordBatch | None, number: int) -> None:
        """One file. Spark does not look at names with a dot, so a file appears to it when it is whole."""
        if batch is None:  # nobody ordered
            return
        hidden = self.folder / f".{number:05}"
        pq.write_table(pa.Table.from_batches([batch]), hidden)
        hidden.rename(self.folder / f"orders-{number:05}.parquet")
        self.sent += batch.num_rows
