"""What the tasks of every micro-batch did comes back to the driver, by accumulators and, where there are none, by observed rows."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import semistream as ss
from semistream.spark import JoinMetrics, enrich
from semistream.spark.history import KEPT_BATCHES, add
from semistream.spark.observing import Observed
from semistream.units import parse_bytes
from tests.spark.conftest import MEMORY


@pytest.fixture
def place(tmp_path: Path) -> Path:
    ss.build_master(tmp_path / "m.master", pa.table({"id": range(0, 100, 2), "name": ["x"] * 50}), key="id").close()
    (tmp_path / "in").mkdir()
    return tmp_path


@pytest.fixture(params=["accumulated", "observed"])
def metrics(spark, request) -> JoinMetrics:
    found = JoinMetrics(spark)
    if request.param == "observed":  # as with Spark Connect
        found._way = Observed(spark)
    return found


def arrive(place: Path, number: int, rows: range) -> None:
    pq.write_table(pa.table({"id": pa.array(rows, pa.int64())}), place / f".{number}")
    os.utime(place / f".{number}", (number, number))  # Spark takes files by age
    (place / f".{number}").rename(place / "in" / f"{number}.parquet")


def told(metrics: JoinMetrics, batches: int) -> list[dict]:
    """The micro-batches, as soon as Spark's listeners have heard of so many."""
    for _ in range(600):
        if len(metrics.batches) >= batches:
            break
        time.sleep(0.1)
    return metrics.batches


def run(spark, place: Path, metrics: JoinMetrics, how: str = "inner") -> list[tuple]:
    stream = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(str(place / "in"))
    enriched = enrich(stream, place / "m.master", on="id", how=how, memory=MEMORY, metrics=metrics)
    sink = enriched.writeStream.format("parquet").option("path", str(place / "out"))
    query = sink.option("checkpointLocation", str(place / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    return sorted(tuple(row) for row in spark.read.schema(enriched.schema).parquet(str(place / "out")).collect())


def test_every_micro_batch_is_told_even_one_that_gives_no_rows(spark, place, metrics):
    for number, rows in enumerate([range(10), range(1, 2), range(0)]):
        arrive(place, number, rows)
    assert run(spark, place, metrics) == [(number, "x") for number in range(0, 10, 2)]
    names = ("batch", "tasks", "tasks_empty", "tuples_in", "matched", "unmatched", "rows_out")
    assert [tuple(batch[name] for name in names) for batch in told(metrics, 3)] == [
        (0, 1, 0, 10, 5, 5, 5),
        (1, 1, 0, 1, 0, 1, 0),
        (2, 1, 1, 0, 0, 0, 0),
    ]
    first = metrics.batches[0]
    assert (first["version"], first["join"]) == ("v-1", "m.master on id")
    assert 0 <= first["staleness_s"] < 3600
    assert first["pages_read"] > 0
    assert first["bytes_read"] > 0
    assert first["memory_bytes"] == parse_bytes(MEMORY) // 2
    assert 0 < first["budget_use"] <= 1
    assert 0 <= first["hit_share"] <= 1
    assert metrics.latest["batch"] == 2
    (total,) = metrics.totals
    assert (total["tuples_in"], total["matched"], total["tasks"]) == (11, 5, 3)


def test_the_rows_are_the_same_and_no_column_is_added(spark, place, metrics):
    arrive(place, 0, range(5))
    assert run(spark, place, metrics, how="left") == [(0, "x"), (1, None), (2, "x"), (3, None), (4, "x")]


def test_batch_frames_are_told_as_one(spark, place):
    metrics = JoinMetrics(spark)
    assert enrich(spark.range(0, 10, 1, 4), place / "m.master", on="id", memory=MEMORY, metrics=metrics).count() == 5
    (total,) = metrics.totals
    assert (total["query"], total["batch"], total["tasks"], total["tuples_in"]) == ("", None, 4, 10)
    assert metrics.latest == {}


def test_prometheus_reads_totals_and_the_latest_micro_batch(spark, place):
    metrics = JoinMetrics(spark)
    assert metrics.prometheus() == ""
    for number in range(2):
        arrive(place, number, range(4))
    run(spark, place, metrics)
    text = metrics.prometheus()
    query = metrics.latest["query"]
    who = f'query="{query}",join="m.master on id"'
    assert f"semistream_rows_total{{{who}}} 8\n" in text
    assert f"semistream_batch_rows{{{who}}} 4\n" in text
    assert f'semistream_batch_version{{{who},version="v-1"}} 1\n' in text
    sample = re.compile(
        r"semistream_\w+\{[^{}]+\} [-+.e\d]+|# (HELP semistream_\w+ .+\.|TYPE semistream_\w+ (counter|gauge))"
    )
    assert [line for line in text.splitlines() if not sample.fullmatch(line)] == []
    kinds = re.findall(r"# TYPE (\w+)", text)
    assert len(kinds) == len(set(kinds))


def test_only_the_last_micro_batches_are_kept_and_totals_keep_all():
    reports = {}
    for number in range(KEPT_BATCHES + 5):
        reports = add(reports, {"query": "q", "join": "j", "batch": number, "tasks": 1, "tuples_in": 2})
    track = reports["q", "j"]
    assert (min(track.batches), len(track.batches)) == (5, KEPT_BATCHES)
    assert track.total["tuples_in"] == 2 * (KEPT_BATCHES + 5)
