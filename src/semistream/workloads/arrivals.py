"""When tuples arrive: constant, Poisson, self-similar ON/OFF, b-model; each gives a count per time step, for ever.

    process.chunks(seed)                   arrays of counts, 4096 steps at a time
    counts(process, steps, seed)           the first so many of them
    timestamps(process, seed, start_us)    the same arrivals as microseconds
    in_steps(batches, process, seed)       a stream as it would arrive: a batch per step, None for an empty step

Rates are means in tuples per second. The counts are whole, and round without drifting: fractions are carried over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count as numbers
from itertools import islice
from typing import Protocol

import numpy as np
import pyarrow as pa

from semistream.errors import UsageError
from semistream.workloads.blocks import BLOCK_ROWS, Float64s, Int64s, Rows, generator, need_number, need_whole

CHUNK_STEPS = 4096


class Arrivals(Protocol):
    """A process: the length of a step, and counts per step without end."""

    @property
    def step_ms(self) -> int:
        """The length of one time step."""

    def chunks(self, seed: int) -> Iterator[Int64s]:
        """Counts of `CHUNK_STEPS` steps at a time."""


@dataclass(frozen=True)
class Constant:
    """The same number in every step (but for the fraction).

    >>> counts(Constant(rate_per_s=250, step_ms=10), steps=4).tolist()
    [2, 3, 2, 3]
    """

    rate_per_s: float
    step_ms: int = 10

    def __post_init__(self) -> None:
        per_step(self)

    def chunks(self, seed: int) -> Iterator[Int64s]:
        """Counts of `CHUNK_STEPS` steps at a time."""
        return _whole(np.full(CHUNK_STEPS, per_step(self)) for _ in numbers())


@dataclass(frozen=True)
class Poisson:
    """Independent arrivals: the memoryless traffic of textbooks."""

    rate_per_s: float
    step_ms: int = 10

    def __post_init__(self) -> None:
        per_step(self)

    def chunks(self, seed: int) -> Iterator[Int64s]:
        """Counts of `CHUNK_STEPS` steps at a time."""
        for number in numbers():
            yield generator(seed, "poisson", number).poisson(per_step(self), CHUNK_STEPS).astype(np.int64)


@dataclass(frozen=True)
class OnOff:
    """Self-similar bursts: sources that talk and fall silent for Pareto-distributed periods, added up.

    Periods with a tail index of 3 - 2 * hurst, between 1 and 2, have a mean but no variance; their sum is bursty at
    every time scale above `period_ms`, the mean period (at least a step), and has the Hurst parameter asked for. All sources talk
    equally loud and half of the time, and start in equilibrium: without that the first minutes would be quieter or
    louder than the rest.
    """

    rate_per_s: float
    step_ms: int = 10
    hurst: float = 0.8
    sources: int = 16
    period_ms: float = 50.0

    def __post_init__(self) -> None:
        per_step(self)
        need_whole("sources", self.sources, 1, 1 << 16)
        need_number("period_ms", self.period_ms, self.step_ms, 1e9)
        need_number("hurst", self.hurst, 0.51, 0.95)

    def chunks(self, seed: int) -> Iterator[Int64s]:
        """Counts of `CHUNK_STEPS` steps at a time."""
        loudness = 2 * per_step(self) / self.sources
        draws = [generator(seed, "on_off", source) for source in range(self.sources)]
        talkers = [_Talker(draw, 3 - 2 * self.hurst, self.period_ms / self.step_ms) for draw in draws]
        edges = (np.arange(number * CHUNK_STEPS, (number + 1) * CHUNK_STEPS + 1) for number in numbers())
        return _whole(loudness * np.diff(np.sum([t.talked(until) for t in talkers], axis=0)) for until in edges)


@dataclass(frozen=True)
class BModel:
    """Bursts from one number: halve time again and again, giving one half `bias` of the tuples, the other the rest.

    0.5 is constant, 0.7-0.8 is typical of disk and network traffic (Wang, Madhyastha, Chan, Papadimitriou, Faloutsos,
    ICDE 2002). Every window of 4096 steps is halved twelve times and holds the mean number of tuples.
    """

    rate_per_s: float
    step_ms: int = 10
    bias: float = 0.7

    def __post_init__(self) -> None:
        per_step(self)
        need_number("bias", self.bias, 0.5, 1)

    def chunks(self, seed: int) -> Iterator[Int64s]:
        """Counts of `CHUNK_STEPS` steps at a time."""
        return _whole(self._window(generator(seed, "b_model", number)) for number in numbers())

    def _window(self, draws: np.random.Generator) -> Float64s:
        volumes = np.array([per_step(self) * CHUNK_STEPS])
        while len(volumes) < CHUNK_STEPS:
            left = np.where(draws.random(len(volumes)) < 0.5, self.bias, 1 - self.bias)
            volumes = np.stack([volumes * left, volumes * (1 - left)], axis=1).ravel()
        return volumes


class _Talker:
    """One ON/OFF source; time is counted in steps."""

    def __init__(self, draws: np.random.Generator, tail: float, mean_period: float) -> None:
        self._draws, self._tail, self._shortest = draws, tail, mean_period * (tail - 1) / tail
        self._talking = bool(draws.integers(2))
        first = self._residual(draws.random())
        self._times = np.array([0.0, first])
        self._talked = np.array([0.0, first if self._talking else 0.0])

    def talked(self, until: Int64s) -> Float64s:
        """Steps spent talking before each of these moments, which rise from call to call."""
        while self._times[-1] < until[-1]:
            self._toggle()
        answer: Float64s = np.interp(until, self._times, self._talked)
        done = max(0, int(np.searchsorted(self._times, until[-1])) - 1)
        self._times, self._talked = self._times[done:], self._talked[done:]
        return answer

    def _toggle(self) -> None:
        periods = self._shortest * (1 - self._draws.random(256)) ** (-1 / self._tail)
        talking = (np.arange(256) % 2 == 0) != self._talking  # begins with the other state, ends with this one
        self._times = np.concatenate([self._times, self._times[-1] + np.cumsum(periods)])
        self._talked = np.concatenate([self._talked, self._talked[-1] + np.cumsum(periods * talking)])

    def _residual(self, u: float) -> float:
        """What is left of the period running at time 0: uniform up to the shortest, then a heavier tail than theirs."""
        short = (self._tail - 1) / self._tail  # probability of less than the shortest period
        if u < short:
            return self._shortest * u / short
        return float(self._shortest * (self._tail * (1 - u)) ** (-1 / (self._tail - 1)))


def per_step(process: Constant | Poisson | OnOff | BModel) -> float:
    """The mean number of tuples per step."""
    need_whole("step_ms", process.step_ms, 1, 86_400_000)
    mean = need_number("rate_per_s", process.rate_per_s, 0, 1e9) * process.step_ms / 1000
    if mean < 1e-3:
        raise UsageError(
            f"workloads: rate_per_s={process.rate_per_s!r} is {mean:g} tuples per step of {process.step_ms} ms: "
            "need at least 0.001; choose longer steps with step_ms"
        )
    return mean


def counts(process: Arrivals, steps: int, seed: int = 0) -> Int64s:
    """How many tuples arrive in each of the first `steps` steps."""
    chunks = islice(process.chunks(seed), -(-need_whole("steps", steps, 1) // CHUNK_STEPS))
    return np.concatenate(list(chunks))[:steps]


def timestamps(process: Arrivals, seed: int = 0, start_us: int = 0) -> Iterator[Int64s]:
    """The moments of arrival in microseconds, rising, some at a time; those of a step are spread evenly over it."""
    step_us = process.step_ms * 1000
    for number, chunk in enumerate(process.chunks(seed)):
        full = np.flatnonzero(np.diff(np.cumsum(chunk) // BLOCK_ROWS)) + 1  # where to cut, so that no piece gets long
        steps = np.arange(CHUNK_STEPS) + number * CHUNK_STEPS
        for arrived, step in zip(np.split(chunk, full), np.split(steps, full), strict=True):
            of_step = np.repeat(arrived, arrived)
            place = np.arange(len(of_step)) - np.repeat(np.cumsum(arrived) - arrived, arrived)
            yield start_us + np.repeat(step, arrived) * step_us + place * step_us // of_step


def in_steps(batches: Iterable[pa.RecordBatch], process: Arrivals, seed: int = 0) -> Iterator[pa.RecordBatch | None]:
    """The rows of `batches` as they would arrive: one batch per time step, None for a step in which nothing came."""
    rows = Rows(batches)
    for chunk in process.chunks(seed):
        for count in chunk.tolist():
            batch = rows.take(count) if count else None
            if count and batch is None:
                return
            yield batch


def hurst_estimate(arrived: Int64s, least_steps: int = 16) -> float:
    """The Hurst parameter seen in counts: how slowly the variance of means falls with the length averaged over.

    Aggregated-variance method over lengths from `least_steps` up to 1/32 of the data: about 0.5 for independent
    counts, nearer 1 the more self-similar. It leans low above 0.85, because the mean of such data is itself
    uncertain.
    """
    lengths = [least_steps << k for k in range(63) if least_steps << k <= len(arrived) // 32]
    if len(lengths) < 2:
        raise UsageError(f"workloads.hurst_estimate: need at least {64 * least_steps} steps, got {len(arrived)}")
    cut = [arrived[: len(arrived) // length * length].reshape(-1, length) for length in lengths]
    variances = [float(block.mean(axis=1).var(ddof=1)) for block in cut]
    return 1 + float(np.polyfit(np.log(lengths), np.log(variances), 1)[0]) / 2


def _whole(volumes: Iterable[Float64s]) -> Iterator[Int64s]:
    """Whole counts whose running total is the running volume rounded down."""
    carried = 0.0
    for volume in volumes:
        running = carried + np.concatenate([[0.0], np.cumsum(volume)])
        total = np.floor(running + 1e-9)  # the hair's breadth undoes rounding such as 2.9999999999 for 3
        carried = float(running[-1] - (total[-1] - total[0]))
        yield np.diff(total).astype(np.int64)
