"""Every micro-batch uses one version of the master, the same one whenever it is tried again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import semistream as ss
from semistream.errors import UsageError
from semistream.spark import enrich, enriching
from tests.spark.conftest import MEMORY


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    publish(tmp_path, "first")
    return tmp_path


def publish(place: Path, name: str, **columns: object) -> None:
    """A new version of the master, in which every product has this name."""
    table = pa.table({"id": range(100), "name": [name] * 100, **columns})
    ss.build_master(place / "m.master", table, key="id").close()


def arrive(place: Path, first: int) -> None:
    pq.write_table(pa.table({"id": range(first, first + 10)}), place / f".{first}")
    (place / f".{first}").rename(place / "in" / f"{first:03}.parquet")


def stream_of(spark, place: Path) -> DataFrame:
    return spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(str(place / "in"))


def start(place: Path, frame: DataFrame):
    sink = frame.writeStream.format("parquet").option("path", str(place / "out"))
    return sink.option("checkpointLocation", str(place / "checkpoint"))


def finish(place: Path, frame: DataFrame) -> None:
    start(place, frame).trigger(availableNow=True).start().awaitTermination()


def run(spark, place: Path, dies: bool = False, **options: object) -> dict[int, str]:
    """Let a new query take what arrived; gives what was stored so far: id and name."""
    options = {"on": "id", "memory": MEMORY, **options}
    frame = enrich(stream_of(spark, place), options.pop("master", place / "m.master"), **options)
    if dies:  # when it has joined a row already
        fatal = F.when(F.col("name").isNotNull(), F.raise_error(F.lit("pulled the plug"))).otherwise(F.col("name"))
        frame = frame.withColumn("name", fatal.cast("string"))
    finish(place, frame)
    return stored(spark, place)


def stored(spark, place: Path) -> dict[int, str]:
    return {
        row["id"]: row["name"]
        for row in spark.read.schema("id long, name string").parquet(str(place / "out")).collect()
    }


def pins(place: Path) -> list[Path]:
    return sorted(path for path in place.rglob("_pins/*/*/*") if path.is_file() and path.parent.parent.name != "_pins")


def test_a_running_query_sees_a_new_version_with_its_next_micro_batch(spark, place):
    query = start(place, enrich(stream_of(spark, place), place / "m.master", on="id", memory=MEMORY)).start()
    try:
        for first, name in [(0, "first"), (10, "second"), (20, "third")]:
            if first:
                publish(place, name)
            arrive(place, first)
            query.processAllAvailable()
    finally:
        query.stop()
    found = stored(spark, place)
    assert [found[number] for number in (0, 9, 10, 19, 20, 29)] == ["first"] * 2 + ["second"] * 2 + ["third"] * 2
    assert [pin.read_text().split()[0] for pin in pins(place)] == ["v-1", "v-2", "v-3"]


def test_a_micro_batch_that_is_replayed_uses_the_version_of_its_first_try(spark, place):
    arrive(place, 0)
    with pytest.raises(Exception, match="pulled the plug"):
        run(spark, place, dies=True)
    publish(place, "second")
    with ss.open_master(place / "m.master") as master:
        assert "micro-batch 0" in master.vacuum(older_than=0).kept["v-1"]
    arrive(place, 10)
    found = run(spark, place)
    assert (found[5], found[15]) == ("first", "second")


def test_an_opened_master_is_one_version_and_stays_the_same_for_replays(spark, place):
    arrive(place, 0)
    with ss.open_master(place / "m.master") as old:
        publish(place, "second")
        assert run(spark, place, master=old)[5] == "first"
    arrive(place, 10)
    assert run(spark, place)[15] == "second"


def test_pins_go_where_they_are_told_for_a_master_that_cannot_be_written(spark, place):
    arrive(place, 0)
    run(spark, place, pins=place / "_pins", operator="names")
    assert [path.parent.name for path in pins(place)] == ["names"]
    assert {path.name for path in (place / "m.master" / "_pins").iterdir()} <= {"readers"}


def test_pins_are_kept_as_long_as_spark_can_replay(spark, place):
    for first in range(0, 50, 10):
        arrive(place, first)
    spark.conf.set("spark.sql.streaming.minBatchesToRetain", "2")
    try:
        run(spark, place)
    finally:
        spark.conf.unset("spark.sql.streaming.minBatchesToRetain")
    assert [path.name for path in pins(place)] == ["2", "3", "4"]


def test_a_frame_inside_of_a_micro_batch_is_pinned_with_it(spark, place):
    arrive(place, 0)
    names = []

    def write(batch: DataFrame, number: int) -> None:
        enriched = enrich(batch, place / "m.master", on="id", memory=MEMORY)
        names.extend(row["name"] for row in enriched.collect())
        if len(names) == 10:
            raise RuntimeError("pulled the plug")

    def foreach():
        sink = stream_of(spark, place).writeStream.foreachBatch(write).trigger(availableNow=True)
        return sink.option("checkpointLocation", str(place / "checkpoint")).start().awaitTermination()

    with pytest.raises(Exception, match="pulled the plug"):
        foreach()
    publish(place, "second")
    foreach()
    assert names == ["first"] * 20
    held = [version for version in enriching._HELD if version.is_relative_to(place)]
    assert not held, "versions that only micro-batches use stay for the life of the driver"


def test_a_corrupt_pin_stops_the_query_with_one_clear_error(spark, place):
    arrive(place, 0)
    with pytest.raises(Exception, match="pulled the plug"):
        run(spark, place, dies=True)
    (pin,) = pins(place)
    pin.write_bytes(pin.read_bytes()[:20])
    with pytest.raises(Exception, match=r"MasterCorrupt: .*/0: is not a whole pin"):
        run(spark, place)


def test_the_checkpoint_of_another_join_is_refused(spark, place):
    arrive(place, 0)
    run(spark, place)
    arrive(place, 10)
    renamed = enrich(stream_of(spark, place).withColumnRenamed("id", "number"), place / "m.master", on={"number": "id"})
    with pytest.raises(Exception, match=r"StateError: .*belongs to a join of .*operator="):
        finish(place, renamed.withColumnRenamed("number", "id"))


def test_a_version_that_does_not_fit_stops_the_query_until_one_that_fits_is_published(spark, place):
    arrive(place, 0)
    frame = enrich(stream_of(spark, place), place / "m.master", on="id", memory=MEMORY)
    ss.build_master(place / "m.master", pa.table({"id": range(100), "name": range(100)}), key="id").close()
    with pytest.raises(Exception, match=r"version v-2 does not fit .*name is int64 and was string"):
        finish(place, frame)
    publish(place, "third", more=range(100))  # a further column does no harm
    finish(place, frame)
    assert stored(spark, place)[5] == "third"


def test_a_master_that_is_deleted_under_a_query_stops_it(spark, place):
    arrive(place, 0)
    frame = enrich(stream_of(spark, place), place / "m.master", on="id", memory=MEMORY)
    shutil.rmtree(place / "m.master")
    with pytest.raises(Exception, match=r"MasterNotFound: .*does not exist"):
        finish(place, frame)
    assert not (place / "m.master").exists()


def test_a_version_that_is_gone_or_was_replaced_stops_the_query(spark, place):
    arrive(place, 0)
    with pytest.raises(Exception, match="pulled the plug"):
        run(spark, place, dies=True, pins=place / "_pins")
    shutil.rmtree(place / "m.master")
    publish(place, "another table")
    with pytest.raises(Exception, match=r"StateError: .*v-1, which is another table now"):
        run(spark, place, pins=place / "_pins")
    publish(place, "second")
    with ss.open_master(place / "m.master") as master:
        assert master.vacuum(older_than=0).removed == ["v-1"]
    with pytest.raises(Exception, match=r"MasterNotFound: .*micro-batch 0 uses v-1, which is gone"):
        run(spark, place, pins=place / "_pins")


def test_a_failed_refresh_is_loud_and_the_old_version_stays_in_use(spark, place):
    with pytest.raises(ss.SemistreamError):
        ss.build_master(place / "m.master", place / "no-such-file.parquet", key="id")
    arrive(place, 0)
    assert run(spark, place)[5] == "first"


def test_a_place_where_no_pin_can_be_made_and_a_name_that_is_no_file_name_are_refused(spark, place):
    (place / "file").touch()
    with pytest.raises(UsageError, match="give pins="):
        enrich(stream_of(spark, place), place / "m.master", on="id", pins=place / "file" / "pins")
    with pytest.raises(UsageError, match="operator="):
        enrich(stream_of(spark, place), place / "m.master", on="id", operator="../x")
