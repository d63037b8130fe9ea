"""From moments to a rate: when how many answers had come out, and what that says about tuples per second.

What counts is finished tuples, not accepted ones: some systems ask for input far ahead of their work. The stream goes on,
the same few batches in rotation, until enough has come out; the first batches are the warm-up, and what is still inside
when the clock stops is not counted. Neighbouring times are correlated, so the confidence interval comes from the means of
groups of batches.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count, cycle, takewhile

import numpy as np
import pyarrow as pa

GROUPS = 10
# two-sided 95 % points of Student's t for 1 to 9 degrees of freedom
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)


@dataclass
class Run:
    """A stream without end for one join, and the clock at its exit.

    `answers` says how many rows each of the `batches` gives. After the answers to `warm` batches the clock runs until
    `seconds` have passed and the answers to `least` further batches are out. Then the stream ends.
    """

    batches: list[pa.RecordBatch]
    answers: list[int]
    warm: int
    least: int
    seconds: float
    given: int = 0
    rows: int = 0
    cpu_s: float = 0.0  # of this process while the clock ran: tells a slow join from a busy machine
    drain_s: float = 0.0
    _enough: bool = False
    _times: list[float] = field(default_factory=list)
    _totals: list[int] = field(default_factory=list)

    def stream(self) -> Iterator[pa.RecordBatch]:
        """The input of the join."""
        for batch in cycle(self.batches):
            if self._enough:
                return
            self.given += 1
            yield batch

    def consume(self, outputs: Iterable[pa.RecordBatch]) -> None:
        """Take and drop the output of the join; no batch is held while the next one is made."""
        warm_rows, least_rows = self.expected(self.warm), self.expected(self.warm + self.least)
        started = None
        for output in outputs:
            self.rows += output.num_rows
            del output
            if self._enough:
                continue
            now = time.perf_counter()
            self._times.append(now)
            self._totals.append(self.rows)
            if started is None and self.rows >= warm_rows:
                started, self.cpu_s = now, -time.process_time()
            self._enough = started is not None and self.rows >= least_rows and now - started >= self.seconds
            if self._enough:
                self.cpu_s += time.process_time()
        self.drain_s = time.perf_counter() - self._times[-1]

    def expected(self, batches: int) -> int:
        """Number of answers to the first so many batches."""
        whole, rest = divmod(batches, len(self.answers))
        return whole * sum(self.answers) + sum(self.answers[:rest])

    @property
    def intervals(self) -> list[float]:
        """Seconds from the last answer to one batch to the last answer to the next, from the warm-up to the end of the clock."""
        totals = (self.expected(batches) for batches in count(self.warm))
        marks = list(takewhile(lambda total: total <= self._totals[-1], totals))
        return [float(seconds) for seconds in np.diff(np.interp(marks, self._totals, self._times))]


@dataclass(frozen=True)
class Rate:
    """Tuples per second with the 95 % confidence interval, which is None for fewer than two groups."""

    rows_per_s: float
    ci95: tuple[float, float] | None


def rate(intervals: list[float], batch_rows: int) -> Rate:
    """Rate over all intervals, its uncertainty from the means of up to ten groups of neighbouring ones.

    >>> rate([0.5, 0.5, 0.5, 0.5], 1000)
    Rate(rows_per_s=2000.0, ci95=(2000.0, 2000.0))
    """
    mean_s = float(np.mean(intervals))
    groups = min(GROUPS, len(intervals))
    if groups < 2:
        return Rate(batch_rows / mean_s, None)
    means = [float(np.mean(group)) for group in np.array_split(np.asarray(intervals), groups)]
    half_s = STUDENT[groups - 2] * float(np.std(means, ddof=1)) / groups**0.5
    slowest_s, fastest_s = mean_s + half_s, max(mean_s - half_s, min(means) / 2)  # never infinitely fast
    return Rate(batch_rows / mean_s, (batch_rows / slowest_s, batch_rows / fastest_s))
