"""One Spark session for all tests here, and the shortest way from two tables to a checked answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import semistream as ss
from semistream.spark import enrich, local_session
from semistream.spark.types import spark_schema
from tests.reference import Expected, reference_join, same_multiset

MEMORY = "32MB"
_KNOWN = ("how", "columns", "null_safe", "match_column")


@pytest.fixture(scope="session")
def spark():
    session = local_session(2, app="semistream tests")
    yield session
    session.stop()


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The table as a DataFrame; Spark by itself would take a timestamp without a zone for one in its own zone."""
    return spark.createDataFrame(table, schema=spark_schema(table.schema))


def expected(
    spark: SparkSession, stream: pa.Table, master: pa.Table, on: Any, where: Any = None, **options: Any
) -> Expected:
    """The oracle's answer over the tables as Spark itself holds them, which is how Spark will give them back."""
    sides = [frame_of(spark, side).toArrow() for side in (stream, master)]
    return reference_join(*sides, on, where=where, **{name: options[name] for name in _KNOWN if name in options})


@pytest.fixture
def checked(spark: SparkSession, tmp_path: Path) -> Callable[..., DataFrame]:
    """Enrich a stream table from a master table as a batch DataFrame, and compare with the oracle."""

    def check(
        stream: pa.Table, master: pa.Table, on: Any, key: Any = None, where: Any = (None, None), **options: Any
    ) -> DataFrame:
        folder = tmp_path / "m.master"
        if not folder.exists():
            ss.build_master(folder, master, key=on if key is None else key)
        frame = frame_of(spark, stream).repartition(3)
        enriched = enrich(frame, folder, on=on, memory=MEMORY, where=where[0], **options)
        same_multiset(enriched.toArrow().to_batches(), expected(spark, stream, master, on, where=where[1], **options))
        return enriched

    return check
