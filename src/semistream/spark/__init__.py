"""Spark: `enrich` joins a streaming or batch DataFrame with a master table on disk, within a byte budget.

    from semistream.spark import enrich
    enriched = enrich(orders, "products.master", on="product_id", memory="256MB", how="left")

This package is the only part of semistream that imports pyspark.
"""

from __future__ import annotations

from semistream.errors import UsageError

try:
    import pyspark  # noqa: F401 - only to say what is missing before anything else does
except ModuleNotFoundError as exc:
    raise UsageError("semistream.spark: need pyspark, which is not installed; pip install 'semistream[spark]'") from exc

from semistream.spark.enriching import enrich
from semistream.spark.metrics import JoinMetrics
from semistream.spark.session import local_session
from semistream.spark.shared_memory import SharedMemory
from semistream.spark.totals import JoinTotals

__all__ = ["JoinMetrics", "JoinTotals", "SharedMemory", "enrich", "local_session"]
