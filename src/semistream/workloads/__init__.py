"""Streams and masters to join: seeded, of any size, in bounded memory. `WORKLOADS` lists them.

    tables = find("fixed").make(master_rows=2_000_000, exponent=1.0)
    tables.master(seed=1)                      a reader of RecordBatches: the master
    tables.stream(rows=10_000_000, seed=1)     a reader of RecordBatches: the stream
    tables.on                                  {"stream column": "master column"}

The same seed gives the same rows, whatever the batch size; more rows begin with the fewer. Parts: `zipf` (how popular
each rank is), `drift` (how that changes), `keys` (which key a rank is), `popularity` (these three together),
`arrivals` (when tuples come).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

from semistream.errors import UsageError
from semistream.workloads.arrivals import BModel, Constant, OnOff, Poisson, counts, hurst_estimate, in_steps, timestamps
from semistream.workloads.blocks import Tables
from semistream.workloads.drift import Drift
from semistream.workloads.duplicates import Duplicates
from semistream.workloads.keys import Domain, Scatter
from semistream.workloads.popularity import Popularity
from semistream.workloads.presets import Fixed
from semistream.workloads.retail import Retail
from semistream.workloads.tpch import Tpch
from semistream.workloads.weather import Weather
from semistream.workloads.zipf import Zipf

__all__ = [
    "WORKLOADS",
    "BModel",
    "Constant",
    "Domain",
    "Drift",
    "Duplicates",
    "Fixed",
    "OnOff",
    "Poisson",
    "Popularity",
    "Retail",
    "Scatter",
    "Tables",
    "Tpch",
    "Weather",
    "Workload",
    "Zipf",
    "counts",
    "find",
    "hurst_estimate",
    "in_steps",
    "timestamps",
]


@dataclass(frozen=True)
class Workload:
    """An entry of the table: `make(**options)` gives the tables.

    Options are the fields of `kind` and, where it has a popularity, those of `Popularity` (exponent, scattered,
    absent_share, …).
    """

    name: str
    description: str
    kind: Callable[..., Any]
    popularity: Popularity | None = field(default_factory=Popularity)

    @property
    def options(self) -> list[str]:
        """Every option `make` takes."""
        own = [option.name for option in fields(self.kind) if option.name != "popularity"]  # type: ignore[arg-type]
        return own if self.popularity is None else own + [option.name for option in fields(Popularity)]

    def make(self, **options: Any) -> Tables:
        """The tables, with these options.

        >>> find("fixed").make(master_rows=1000, exponent=0.5).master_rows
        1000
        """
        if unknown := sorted(set(options) - set(self.options)):
            raise UsageError(f"workload {self.name}: no option {', '.join(unknown)}; it has {', '.join(self.options)}")
        if self.popularity is None:
            tables: Tables = self.kind(**options)
            return tables
        chosen = {name: options.pop(name) for name in list(options) if hasattr(self.popularity, name)}
        with_popularity: Tables = self.kind(popularity=replace(self.popularity, **chosen), **options)
        return with_popularity


WORKLOADS = [
    Workload("fixed", "the papers' sizes: 120-byte rows of numbers, 20-byte tuples, Zipf", Fixed),
    Workload(
        "drift",
        "as fixed, with a hot set that moves on by one key every 200 tuples",
        Fixed,
        Popularity(drift=Drift(0.005)),
    ),
    Workload("duplicates", "as fixed, with a master in which keys repeat and a third are missing", Duplicates),
    Workload("retail", "products and orders with strings, decimals, dates and nulls; bursty", Retail),
    Workload("tpch", "TPC-H customer and orders: no skew", Tpch, None),
    Workload("tpch_zipf", "TPC-H customer and orders, with Zipf-distributed customers", Tpch),
    Workload("weather", "station reports joined on longitude, many-to-many, 128-byte rows", Weather, None),
]


def find(name: str) -> Workload:
    """The workload of that name."""
    for workload in WORKLOADS:
        if workload.name == name:
            return workload
    raise UsageError(f"workload {name!r}: there is none; there are {', '.join(w.name for w in WORKLOADS)}")
