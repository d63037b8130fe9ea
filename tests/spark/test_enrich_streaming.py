"""`enrich` on streaming DataFrames: exact per micro-batch, exactly once over restarts."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import semistream as ss
from semistream.spark import enrich
from semistream.spark.types import spark_schema
from tests.cases import master_table, stream_table
from tests.reference import same_multiset
from tests.spark.conftest import MEMORY, expected

pytestmark = pytest.mark.filterwarnings("ignore:algorithm=.meshjoin. reads all of master")

STREAM = stream_table({"key": pa.array([*range(150), *range(50), None], pa.int64())}, ["string"])
MASTER = master_table({"key": pa.array([*range(20, 120), *range(20, 40), None], pa.int64())}, ["decimal"])


@pytest.fixture
def place(tmp_path: Path) -> Path:
    ss.build_master(tmp_path / "m.master", MASTER, key="key")
    (tmp_path / "in").mkdir()
    return tmp_path


def arrive(place: Path, rows: pa.Table, name: str) -> None:
    pq.write_table(rows, place / f".{name}")
    (place / f".{name}").rename(place / "in" / f"{name}.parquet")


def stream_of(spark, place: Path) -> DataFrame:
    reader = spark.readStream.schema(spark_schema(STREAM.schema)).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(place / "in"))


def run(enriched: DataFrame, place: Path) -> list[int]:
    """Let a query take everything that arrived; gives the rows of its micro-batches."""
    sink = enriched.writeStream.format("parquet").option("path", str(place / "out"))
    query = sink.option("checkpointLocation", str(place / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    return [report["numInputRows"] for report in query.recentProgress]


def stored(spark, place: Path) -> list[pa.RecordBatch]:
    return spark.read.parquet(str(place / "out")).toArrow().to_batches()


@pytest.mark.parametrize(
    ("how", "algorithm"),
    [("inner", "meshjoin"), ("left", "hybridjoin"), ("left_semi", "hybridjoin"), ("left_anti", "meshjoin")],
)
def test_every_join_type_gives_the_rows_of_the_double_loop(spark, place, how, algorithm):
    for number in range(3):
        arrive(place, STREAM.slice(67 * number, 67), str(number))
    enriched = enrich(
        stream_of(spark, place), place / "m.master", on="key", how=how, algorithm=algorithm, memory=MEMORY
    )
    assert enriched.isStreaming
    assert run(enriched, place) == [67, 67, 67]
    same_multiset(stored(spark, place), expected(spark, STREAM, MASTER, "key", how=how))


def test_micro_batches_without_rows_are_nothing_special(spark, place):
    for number, rows in enumerate([STREAM.slice(0, 0), STREAM, STREAM.slice(0, 0)]):
        arrive(place, rows, str(number))
    run(enrich(stream_of(spark, place), place / "m.master", on="key", how="left", memory=MEMORY), place)
    same_multiset(stored(spark, place), expected(spark, STREAM, MASTER, "key", how="left"))


def test_a_restart_from_the_checkpoint_loses_and_doubles_nothing(spark, place):
    """The second query dies in the middle of a micro-batch; the third one does that batch again."""
    arrive(place, STREAM.slice(0, 100), "0")
    master = place / "m.master"
    run(enrich(stream_of(spark, place), master, on="key", how="left", memory=MEMORY), place)
    arrive(place, STREAM.slice(100), "1")
    dying = enrich(stream_of(spark, place), master, on="key", how="left", memory=MEMORY)
    fatal = F.when(F.col("s_row") == 150, F.raise_error(F.lit("pulled the plug"))).otherwise(F.col("s_string"))
    with pytest.raises(Exception, match="pulled the plug"):
        run(dying.withColumn("s_string", fatal.cast("string")), place)
    same_multiset(stored(spark, place), expected(spark, STREAM.slice(0, 100), MASTER, "key", how="left"))
    run(enrich(stream_of(spark, place), master, on="key", how="left", memory=MEMORY), place)
    same_multiset(stored(spark, place), expected(spark, STREAM, MASTER, "key", how="left"))


def test_a_watermark_survives_so_windows_after_the_join_close(spark, place):
    seconds = pa.array([0, 1, 2, 600], pa.timestamp("s", tz="UTC")).cast(pa.timestamp("us", tz="UTC"))
    orders = pa.table({"key": pa.array([30, 31, 30, 31]), "at": seconds})
    for number in range(4):
        pq.write_table(orders.slice(number, 1), place / "in" / f"{number}.parquet")
        os.utime(place / "in" / f"{number}.parquet", (number, number))  # Spark takes files by age
    stream = (
        spark.readStream.schema(spark_schema(orders.schema)).option("maxFilesPerTrigger", 1).parquet(str(place / "in"))
    )
    enriched = enrich(
        stream.withWatermark("at", "10 seconds"), place / "m.master", on="key", columns=["m_row"], memory=MEMORY
    )
    run(enriched.groupBy(F.window("at", "1 minute")).count().select("count"), place)
    matches = sum(MASTER["key"].to_pylist().count(key) for key in (30, 31, 30))
    assert [row["count"] for row in spark.read.parquet(str(place / "out")).collect()] == [matches]
