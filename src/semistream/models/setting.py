"""What a model is told: the demand, the sizes, the costs. And what it tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from semistream.models.costs import Iteration, UnitCosts
from semistream.parts.memory import F64


class Demand(Protocol):
    """How the stream asks for keys, and the partitions they lie in (`popularity.Popularity`, or a sample over a real master)."""

    @property
    def keys(self) -> float:
        """Keys that are asked for or may be."""

    def hottest(self, count: float) -> float:
        """The share of the stream that asks for the hottest `count` keys."""

    def needed(self, partition_rows: float, beyond: float = 0.0) -> F64:
        """The share of each partition among tuples that ask for none of the hottest `beyond` keys."""

    def classes(self, beyond: float = 0.0) -> tuple[F64, F64]:
        """How many keys each class of equally hot keys has, and the share of each key."""


@dataclass(frozen=True)
class Setting:
    """A join to be predicted. Rows are rows of the master, slots are tuples that can wait."""

    demand: Demand
    rows: float
    slots: float
    partition_rows: float  # that a load brings
    costs: UnitCosts
    row_bytes: float = 120.0
    cached_rows: float = 0.0
    least_waiting: float = (
        0.0  # tuples that make a row worth caching, where victims are random; 0: the hottest rows are cached
    )
    pinned_rows: float = 0.0
    matches: float = 1.0  # rows of output for a tuple
    segments: int = 1  # of a partition: R-MESHJOIN
    parallel_reads: float = 1.0  # that the device does at once: OP-CACHEJOIN
    moved_rows: float = 0.0  # into the cache, in an iteration
    output_bytes: float = 0.0  # of a row
    piece_rows: float = 1e9  # tuples that are taken from the stream at once

    @property
    def take_s(self) -> float:
        """What a tuple costs that is taken from the stream."""
        return self.costs.take_s + self.costs.piece_s / self.piece_rows

    @property
    def settle_s(self) -> float:
        """What a row of output costs."""
        return self.costs.settle_s + self.output_bytes * self.costs.settle_byte_s

    @property
    def load_bytes(self) -> float:
        """What a load reads."""
        return self.partition_rows * self.row_bytes

    @property
    def partitions(self) -> float:
        """How many loads the whole master takes."""
        return max(1.0, self.rows / self.partition_rows)


@dataclass(frozen=True)
class Prediction:
    """What an algorithm will do in a setting."""

    algorithm: str
    form: str
    slots: float
    iteration: Iteration
    age: float  # of the oldest tuple when it leaves, in tuples that entered

    @property
    def rate(self) -> float:
        """Tuples a second."""
        return self.iteration.rate

    @property
    def hit_share(self) -> float:
        """The share of tuples that do not wait for a load (p_N)."""
        return self.iteration.hits / self.iteration.tuples if self.iteration.tuples else 0.0

    @property
    def wait_tuples(self) -> float:
        """How many tuples of the stream come, on average, while one waits: by Little's law the stream table, hits counted in."""
        return self.slots / max(1e-12, 1 - self.hit_share)

    @property
    def wait_s(self) -> float:
        """The same in seconds, at the predicted rate."""
        return self.wait_tuples / self.rate
