"""`retail`: a product master and a stream of orders that look like real tables: strings, decimals, dates, nulls.

The master is what a warehouse keeps per product, its own surrogate key `product_sk` included; the stream is what
shops send. Orders arrive in bursts, some are sent twice (`resent_share`), some name products nobody knows
(`popularity.absent_share`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from semistream.workloads import words
from semistream.workloads.arrivals import Arrivals, OnOff, timestamps
from semistream.workloads.blocks import (
    BLOCK_ROWS,
    Int64s,
    block_numbers,
    generator,
    master_rows_asked,
    need_number,
    need_whole,
    read_blocks,
)
from semistream.workloads.columns import moments, money, numbered, picked, required, some_null
from semistream.workloads.keys import Domain, Scatter
from semistream.workloads.popularity import Popularity

PIECES = {"piece": 1, "pack": 6, "dozen": 12, "case": 48}  # what a unit of an order stands for
OPENED = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())  # the stream begins here, the master was last changed before
_DAY_US = 86_400_000_000

PRODUCTS = pa.schema(
    [
        required("product_id", pa.int64()),
        required("product_sk", pa.int64()),
        required("sku", pa.string()),
        required("name", pa.string()),
        required("category", pa.string()),
        required("brand", pa.string()),
        required("vendor", pa.string()),
        required("price", pa.decimal128(12, 2)),
        pa.field("weight_kg", pa.float64()),
        required("listed", pa.date32()),
        required("updated_ts", pa.timestamp("us", tz="UTC")),
        required("active", pa.bool_()),
        pa.field("description", pa.string()),
    ]
)
ORDERS = pa.schema(
    [
        required("order_id", pa.int64()),
        required("product_id", pa.int64()),
        required("customer_id", pa.int64()),
        required("quantity", pa.int32()),
        required("unit", pa.string()),
        required("order_ts", pa.timestamp("us", tz="UTC")),
        pa.field("channel", pa.string()),
    ]
)


@dataclass(frozen=True)
class Retail:
    """Products and orders.

    >>> Retail(master_rows=100).master(rows=1).read_all()["sku"].to_pylist()
    ['SKU-000000001']
    """

    master_rows: int = 1_000_000
    popularity: Popularity = field(default_factory=Popularity)
    gap: int = 1
    shuffled: bool = False
    arrivals: Arrivals = field(default_factory=lambda: OnOff(rate_per_s=2000))
    resent_share: float = 0.01
    customers: int = 250_000

    on: ClassVar[dict[str, str]] = {"product_id": "product_id"}
    master_schema: ClassVar[pa.Schema] = PRODUCTS
    stream_schema: ClassVar[pa.Schema] = ORDERS

    def __post_init__(self) -> None:
        Domain(self.master_rows, self.gap)  # which checks both
        need_number("resent_share", self.resent_share, 0, 1)
        need_whole("customers", self.customers, 1)

    @property
    def domain(self) -> Domain:
        """The product ids of the master."""
        return Domain(self.master_rows, self.gap)

    def master(self, rows: int | None = None, seed: int = 0, batch_rows: int = BLOCK_ROWS) -> pa.RecordBatchReader:
        """The products, or the first `rows` of them."""
        order, surrogate = Scatter(self.master_rows, seed), Scatter(self.master_rows, seed + 1)

        def block(number: int) -> pa.RecordBatch:
            numbers = block_numbers(number, self.master_rows)
            numbers = order(numbers) if self.shuffled else numbers
            draws = generator(seed, "retail.master", number)
            return _products(draws, numbers, self.domain.keys(numbers), surrogate(numbers))

        return read_blocks(PRODUCTS, master_rows_asked(rows, self.master_rows), batch_rows, block)

    def stream(self, rows: int, batch_rows: int = BLOCK_ROWS, seed: int = 0) -> pa.RecordBatchReader:
        """The first `rows` orders, in the order of their arrival."""
        arrived = _blocks_of(timestamps(self.arrivals, seed, OPENED * 1_000_000))

        def block(number: int) -> pa.RecordBatch:
            draws = generator(seed, "retail.stream", number)
            orders = self._orders(draws, self.popularity.keys(self.domain, seed, number), next(arrived), number)
            return orders.take(pa.array(_resent(generator(seed, "retail.resent", number), self.resent_share)))

        return read_blocks(ORDERS, rows, batch_rows, block)

    def _orders(self, draws: np.random.Generator, keys: Int64s, arrived: Int64s, number: int) -> pa.RecordBatch:
        columns = [
            pa.array(np.arange(number * BLOCK_ROWS, (number + 1) * BLOCK_ROWS) + 1_000_000_000),
            pa.array(keys),
            pa.array(draws.integers(1, self.customers, BLOCK_ROWS, endpoint=True)),
            pa.array(np.minimum(draws.geometric(0.4, BLOCK_ROWS), 99).astype(np.int32)),
            picked(list(PIECES), _skewed(draws, len(PIECES), BLOCK_ROWS)),
            moments(arrived),
            picked(words.CHANNELS, draws.integers(0, len(words.CHANNELS), BLOCK_ROWS)),
        ]
        return pa.record_batch(columns, schema=ORDERS)


def _products(draws: np.random.Generator, numbers: Int64s, keys: Int64s, surrogate: Int64s) -> pa.RecordBatch:
    rows = len(numbers)
    space = pa.scalar(" ")
    kind, noun = draws.integers(0, len(words.KINDS), rows), draws.integers(0, len(words.NOUNS), rows)
    material, size = draws.integers(0, len(words.MATERIALS), rows), draws.integers(0, len(words.SIZES), rows)
    name = [
        picked(words.KINDS, kind),
        picked(words.MATERIALS, material),
        picked(words.NOUNS, noun),
        picked(words.SIZES, size),
    ]
    listed = OPENED // 86_400 - draws.integers(1, 4000, rows, dtype=np.int32)
    updated = OPENED * 1_000_000 - draws.integers(0, 300 * _DAY_US, rows)
    columns = [
        pa.array(keys),
        pa.array(surrogate + 7_000_000_000),
        numbered("SKU-", numbers, digits=9),
        pc.binary_join_element_wise(*name, space),
        picked(words.CATEGORIES, noun % len(words.CATEGORIES)),
        picked(words.BRANDS, _skewed(draws, len(words.BRANDS), rows)),
        picked(words.VENDORS, draws.integers(0, len(words.VENDORS), rows)),
        money(np.exp(draws.normal(7.6, 1.1, rows)).astype(np.int64) + 19),
        some_null(pa.array(np.exp(draws.normal(-0.7, 1.0, rows)).round(3)), draws.random(rows) < 0.03),
        pa.array(listed).cast(pa.date32()),
        moments(updated),
        pa.array(draws.random(rows) < 0.97),
        picked(words.DESCRIPTIONS, draws.integers(0, len(words.DESCRIPTIONS), rows)),
    ]
    return pa.record_batch(columns, schema=PRODUCTS)


def _skewed(draws: np.random.Generator, choices: int, rows: int) -> Int64s:
    """Choices of which the first are frequent and the last rare."""
    return (draws.random(rows) ** 2 * choices).astype(np.int64)


def _resent(draws: np.random.Generator, share: float) -> Int64s:
    """Which order to send at each place of a block: its own, or once more one of the 50 new ones before it."""
    again: npt.NDArray[np.bool_] = draws.random(BLOCK_ROWS) < share
    again[0] = False
    new = np.flatnonzero(~again)
    back = np.where(again, draws.integers(0, 50, BLOCK_ROWS), 0)
    sent: Int64s = new[np.maximum(np.cumsum(~again) - 1 - back, 0)]
    return sent


def _blocks_of(pieces: Iterator[Int64s]) -> Iterator[Int64s]:
    """The same numbers, `BLOCK_ROWS` at a time."""
    rest = np.empty(0, np.int64)
    for piece in pieces:
        rest = np.concatenate([rest, piece])
        while len(rest) >= BLOCK_ROWS:
            yield rest[:BLOCK_ROWS]
            rest = rest[BLOCK_ROWS:]
