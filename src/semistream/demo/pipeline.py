"""The transformation phase of a near-real-time warehouse, as Spark code: what a user of `enrich` would write.

    orders -> [duplicates out] -> [units to pieces] -> [enrich: price, vendor, surrogate key] -+-> sales      (known products)
                                                                                               +-> unmatched  (unknown products)

Exactly once: Spark's checkpoint replays a batch that was not finished, with the same rows under the same number, and a batch writes into
folders that carry its number, replacing whatever an earlier attempt left there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from semistream.spark import JoinTotals, enrich
from semistream.workloads.retail import PIECES

JOINED = ["product_sk", "vendor", "price"]  # what the master adds
LATENESS = "10 minutes"  # an order may be sent again for so long


def clean(orders: DataFrame) -> DataFrame:
    """Each order once, its quantity in pieces."""
    once = orders.withWatermark("order_ts", LATENESS).dropDuplicatesWithinWatermark(["order_id"])
    return once.withColumn("pieces", F.col("quantity") * _looked_up("unit", PIECES)).drop("quantity", "unit")


def _looked_up(name: str, table: Mapping[str, int]) -> Column:
    pairs = [F.lit(item) for pair in table.items() for item in pair]
    return F.element_at(F.create_map(*pairs), F.col(name))


def with_products(orders: DataFrame, master: Path, memory: str, totals: JoinTotals) -> DataFrame:
    """Every order, with what the warehouse knows about its product, or nulls and `known` = false."""
    return enrich(
        orders,
        master,
        on="product_id",
        how="left",
        columns=JOINED,
        match_column="known",
        memory=memory,
        totals=totals,
    )


def sales(enriched: DataFrame) -> DataFrame:
    """Rows of the warehouse: the surrogate key instead of the source's, and the derived total."""
    total = (F.col("pieces") * F.col("price")).cast("decimal(18,2)").alias("total")
    return enriched.where("known").select(
        "order_id", "order_ts", "customer_id", "channel", "product_sk", "vendor", "pieces", "price", total
    )


def unmatched(enriched: DataFrame) -> DataFrame:
    """Orders of products that nobody knows, kept for whoever repairs the master."""
    return enriched.where("not known").select("order_id", "order_ts", "customer_id", "channel", "product_id", "pieces")


def writer(warehouse: Path) -> Callable[[DataFrame, int], None]:
    """What to do with each micro-batch: both tables, one folder per batch, the join computed once."""

    def write(batch: DataFrame, batch_id: int) -> None:
        batch.persist()
        try:
            for table, rows in (("sales", sales(batch)), ("unmatched", unmatched(batch))):
                rows.write.mode("overwrite").parquet(str(warehouse / table / f"batch_id={batch_id}"))
        finally:
            batch.unpersist()

    return write
