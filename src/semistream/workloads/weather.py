"""Weather reports joined on longitude: a stand-in for the cloud reports NDP-026B, genuinely many-to-many.

The papers join the December reports (the stream, 6 million) with those of April and August (the master, 20 million),
128 bytes each, on the longitude in hundredths of a degree, 0..36000. Those files are not shipped; this makes reports
with the same shape: land stations in clusters, some reporting far more often than others, and ships anywhere. At the
papers' sizes one longitude has 555 master rows on average and far more where stations stand, so the join's output is
huge: limit the stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from semistream.workloads.blocks import (
    BLOCK_ROWS,
    Float64s,
    Int64s,
    block_numbers,
    generator,
    master_rows_asked,
    need_number,
    need_whole,
    read_blocks,
)
from semistream.workloads.columns import moments, required

LONGITUDES = 36_001  # 0..36000 hundredths of a degree
_HOURS_US = 3 * 3_600_000_000  # reports are made every three hours
# fmt: off
_CODES = {  # column -> how many values it takes
    "on_land": 2, "report_type": 4, "sky_bright": 2, "present_weather": 100, "cloud_total": 9, "cloud_low": 9,
    "cloud_middle": 9, "cloud_high": 9, "type_low": 12, "type_middle": 13, "type_high": 10, "base_height": 10,
    "seen_middle": 9, "seen_high": 9, "change_code": 10, "solar_altitude": 18_001, "lunar_light": 10_001,
    "pressure": 1_500, "temperature": 900, "dew_point": 700, "wind_direction": 361, "wind_speed": 60, "visibility": 100,
    "sea_temperature": 400, "deck": 1_000, "quality": 16,
}
# fmt: on


def _reports(prefix: str) -> pa.Schema:
    """128 bytes: a moment and 30 four-byte numbers. All names but the longitude's carry the prefix."""
    numbers = ["report_no", "latitude", "station", *_CODES]
    return pa.schema(
        [
            required("longitude", pa.int32()),
            required(f"{prefix}reported", pa.timestamp("us", tz="UTC")),
            *(required(prefix + name, pa.int32()) for name in numbers),
        ]
    )


@dataclass(frozen=True)
class Weather:
    """April and August as the master (half each), December as the stream.

    >>> Weather(master_rows=1000).master(rows=5).read_all()["longitude"].type
    DataType(int32)
    """

    master_rows: int = 20_000_000
    stations: int = 5388
    ship_share: float = 0.12
    stations_seed: int = 26

    on: ClassVar[dict[str, str]] = {"longitude": "longitude"}
    master_schema: ClassVar[pa.Schema] = _reports("")
    stream_schema: ClassVar[pa.Schema] = _reports("dec_")

    def __post_init__(self) -> None:
        need_whole("master_rows", self.master_rows, 1, 1 << 31)
        need_whole("stations", self.stations, 1, 1_000_000)
        need_number("ship_share", self.ship_share, 0, 1)

    def master(self, rows: int | None = None, seed: int = 0, batch_rows: int = BLOCK_ROWS) -> pa.RecordBatchReader:
        """The April and August reports by time, or the first `rows` of them."""
        half = -(-self.master_rows // 2)

        def block(number: int) -> pa.RecordBatch:
            reports = block_numbers(number, self.master_rows) - 1
            april = _month(4, reports % half, half)
            moment = np.where(reports < half, april, _month(8, reports % half, half))
            return self._block(self.master_schema, generator(seed, "weather.master", number), reports, moment)

        return read_blocks(self.master_schema, master_rows_asked(rows, self.master_rows), batch_rows, block)

    def stream(self, rows: int, batch_rows: int = BLOCK_ROWS, seed: int = 0) -> pa.RecordBatchReader:
        """The first `rows` December reports by time; past 0.3 x the master's rows the month begins again."""
        whole = max(1, self.master_rows * 3 // 10)

        def block(number: int) -> pa.RecordBatch:
            reports = np.arange(number * BLOCK_ROWS, (number + 1) * BLOCK_ROWS)
            moment = _month(12, reports % whole, whole)
            return self._block(self.stream_schema, generator(seed, "weather.stream", number), reports, moment)

        return read_blocks(self.stream_schema, rows, batch_rows, block)

    def longitude_shares(self) -> Float64s:
        """The exact share of reports, in the master and in the stream, at each longitude 0..36000."""
        longitude, _, share = self._places
        at_stations = np.bincount(longitude, weights=np.diff(share, prepend=0.0), minlength=LONGITUDES)
        return np.asarray((1 - self.ship_share) * at_stations + self.ship_share / LONGITUDES, np.float64)

    @cached_property
    def _places(self) -> tuple[Int64s, Int64s, Float64s]:
        """Longitude and latitude of every station, and the running share of the land reports they make."""
        draws = generator(self.stations_seed, "weather.stations")
        centre = draws.integers(0, 40, self.stations)  # regions with many stations, as Europe or Japan are
        longitude = draws.uniform(0, LONGITUDES, 40)[centre] + draws.normal(0, 900, self.stations)
        latitude = np.clip(draws.normal(3000, 2500, 40)[centre] + draws.normal(0, 600, self.stations), -9000, 9000)
        # Most stations report every three hours, some once a day, and few of them always.
        reports = draws.choice([8, 4, 2, 1], self.stations, p=[0.5, 0.3, 0.12, 0.08]) * draws.uniform(
            0.3, 1, self.stations
        )
        share = np.cumsum(reports) / reports.sum()
        share[-1] = 1.0
        return longitude.astype(np.int64) % LONGITUDES, latitude.astype(np.int64), share

    def _block(self, schema: pa.Schema, draws: np.random.Generator, reports: Int64s, moment: Int64s) -> pa.RecordBatch:
        def number(values: npt.NDArray[np.integer | np.bool_]) -> pa.Array:
            return pa.array(values[: len(reports)].astype(np.int32))

        longitude, latitude, share = self._places
        station = np.searchsorted(share, draws.random(BLOCK_ROWS), side="right")
        ship = draws.random(BLOCK_ROWS) < self.ship_share
        codes = [number(draws.integers(0, values, BLOCK_ROWS, dtype=np.int32)) for values in _CODES.values()]
        columns = [
            number(np.where(ship, draws.integers(0, LONGITUDES, BLOCK_ROWS), longitude[station])),
            moments(moment),
            number(reports),
            number(np.where(ship, draws.integers(-7000, 7001, BLOCK_ROWS), latitude[station])),
            number(np.where(ship, 0, station + 1)),
            number(~ship),
            *codes[1:],
        ]
        return pa.record_batch(columns, schema=schema)


def _month(month: int, reports: Int64s, whole: int) -> Int64s:
    """The three-hourly moment in microseconds at which each of a month's `whole` reports is made."""
    starts = [int(datetime(1985 + m // 12, m % 12 + 1, 1, tzinfo=UTC).timestamp()) for m in (month - 1, month)]
    slots = (starts[1] - starts[0]) * 1_000_000 // _HOURS_US
    return starts[0] * 1_000_000 + reports * slots // whole * _HOURS_US
