"""`enrich` on batch DataFrames gives what the double loop gives."""

from __future__ import annotations

import datetime as dt
import decimal
import sqlite3

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import semistream as ss
from semistream.spark import JoinTotals, enrich
from semistream.units import parse_bytes
from tests.cases import WHERES, master_table, stream_table
from tests.key_kinds import pools, taken
from tests.spark.conftest import MEMORY, frame_of

pytestmark = pytest.mark.filterwarnings("ignore:algorithm=.meshjoin. reads all of master")

HOWS = ["inner", "left", "left_semi", "left_anti"]
RECIPES = ["meshjoin", "hybridjoin"]
# what Spark can hold without a cast, on both sides
KEYS = ["int8", "int16", "int32", "int64", "string", "binary", "bool", "date32", "timestamp[us]", "timestamp[us, zone]",
        "decimal(9,2)", "decimal(38,10)", "float32", "float64"]  # fmt: skip
PAYLOAD = ["int64", "float64", "string", "binary", "int8", "float32", "bool", "decimal", "long decimal", "date", "instant",
           "list", "struct", "map", "list of structs", "wide"]  # fmt: skip


def keys_of(kind: str, stream_places: list[int | None], master_places: list[int | None]):
    streams, masters, _ = pools(kind)
    return {"key": taken(streams, stream_places)}, {"key": taken(masters, master_places)}


def tables(kind: str = "int64", payload: tuple[str, ...] = ("string", "decimal")):
    """A stream of 200 rows, some of which match no row, one row or several; both sides have null keys."""
    stream, master = keys_of(kind, [*range(150), *range(48), None, None], [*range(20, 120), *range(20, 40), 30, None])
    return stream_table(stream, ["date"]), master_table(master, payload)


@pytest.mark.parametrize("algorithm", RECIPES)
@pytest.mark.parametrize("how", HOWS)
def test_every_join_type_gives_the_rows_of_the_double_loop(checked, how, algorithm):
    checked(*tables(), on="key", how=how, algorithm=algorithm)


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_every_type_that_spark_has_match_as_in_spark(checked, kind):
    checked(*tables(kind), on="key", how="left")


def test_composite_and_renamed_keys_are_matched_column_by_column(checked):
    stream = {"s_id": pa.array([1, 1, 2, None, 3] * 20), "s_code": pa.array(["a", "b", "a", "a", None] * 20)}
    master = {"id": pa.array([1, 2, 3, 1]), "code": pa.array(["a", "a", None, "c"])}
    on = {"s_code": "code", "s_id": "id"}
    checked(stream_table(stream), master_table(master), on=on, key=["id", "code"], how="left")


def test_null_safe_lets_null_keys_match_each_other(checked):
    checked(*tables(), on="key", null_safe=True)


@pytest.mark.parametrize("columns", [["m_decimal", ("m_row", "number")], {"m_string": "text"}, []], ids=str)
def test_columns_choose_and_rename_what_the_master_adds(checked, columns):
    checked(*tables(), on="key", how="left", columns=columns)


def test_a_filter_on_the_master_travels_to_the_tasks(checked):
    checked(*tables(), on="key", how="left", where=WHERES["both"])


def test_the_match_column_says_who_matched(checked):
    enriched = checked(*tables(), on="key", how="left", match_column="found")
    assert {row.found for row in enriched.select("found").collect()} == {True, False}


def test_every_type_that_spark_can_hold_comes_through_on_both_sides(checked):
    stream, master = keys_of("int64", list(range(60)), list(range(30, 90)))
    ntz = pa.array([-(10**15), None, 10**15] * 20, pa.timestamp("us"))
    span = pa.array([dt.timedelta(days=-1), None, dt.timedelta(microseconds=1)] * 20, pa.duration("us"))
    stream, master = stream_table(stream, PAYLOAD), master_table(master, PAYLOAD)
    both = [
        table.append_column(f"{side}_ntz", ntz).append_column(f"{side}_span", span)
        for table, side in ((stream, "s"), (master, "m"))
    ]
    checked(*both, on="key", how="left")


def test_types_that_spark_lacks_come_out_in_the_next_wider_one(spark, tmp_path):
    master = pa.table(
        {
            "key": pa.array([1, 2]),
            "u8": pa.array([255, None], pa.uint8()),
            "u64": pa.array([2**64 - 1, 0], pa.uint64()),
            "seconds": pa.array([1, 2], pa.timestamp("s", tz="Asia/Tokyo")),
            "coded": pa.array(["x", "y"]).dictionary_encode(),
            "letters": pa.array(["x", "y"], pa.large_string()),
            "octets": pa.array([b"ab", b"cd"], pa.binary(2)),
            "items": pa.array([[1], [2, 3]], pa.list_(pa.uint32())),
        }
    )
    ss.build_master(tmp_path / "m", master, key="key")
    enriched = enrich(spark.range(1, 3).toDF("key"), tmp_path / "m", on="key", memory=MEMORY)
    assert [field.dataType.simpleString() for field in enriched.schema[1:]] == [
        "smallint", "decimal(20,0)", "timestamp", "string", "string", "binary", "array<bigint>",
    ]  # fmt: skip
    rows = {row.key: row for row in enriched.collect()}
    assert (rows[1].u8, rows[1].u64, rows[2].u8) == (255, decimal.Decimal(2**64 - 1), None)
    assert rows[1].seconds.timestamp() == 1
    assert (rows[2].coded, rows[2].letters, bytes(rows[2].octets), rows[2]["items"]) == ("y", "y", b"cd", [2, 3])


def test_instants_stay_instants_in_any_session_time_zone(spark, checked):
    moments = pa.array([0, 10**15, -(10**15)] * 5, pa.timestamp("us", tz="UTC"))
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        checked(
            pa.table({"key": moments, "n": pa.array(range(15))}),
            pa.table({"key": moments[:2], "at": moments[1:3]}),
            on="key",
        )
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_an_empty_frame_and_an_empty_master_are_legal(spark, checked):
    stream, master = tables()
    for how in HOWS:
        assert checked(stream.slice(0, 0), master, on="key", how=how).count() == 0


def test_an_empty_master_matches_nothing(checked):
    stream, master = tables()
    checked(stream, master.slice(0, 0), on="key", how="left")


def test_the_schema_is_known_before_any_row_is_read(spark, tmp_path):
    stream, master = tables()
    ss.build_master(tmp_path / "m", master, key="key")
    broken = frame_of(spark, stream).withColumn("key", F.raise_error(F.lit("a row was read")).cast("bigint"))
    enriched = enrich(broken, tmp_path / "m", on="key", how="left", memory=MEMORY, match_column="found")
    assert enriched.columns == ["s_row", "key", "s_date", "m_row", "m_small", "m_string", "m_decimal", "found"]


def test_two_enrichments_follow_each_other(spark, tmp_path):
    ss.build_master(tmp_path / "a", pa.table({"id": [1, 2], "b_id": [10, 20]}), key="id")
    ss.build_master(tmp_path / "b", pa.table({"id": [10, 20], "name": ["x", "y"]}), key="id")
    first = enrich(spark.range(1, 4), tmp_path / "a", on="id", memory=MEMORY)
    second = enrich(first, tmp_path / "b", on={"b_id": "id"}, memory=MEMORY)
    assert sorted((row.id, row.name) for row in second.collect()) == [(1, "x"), (2, "y")]


def test_totals_add_up_over_tasks(spark, tmp_path):
    ss.build_master(tmp_path / "m", pa.table({"id": range(50), "v": range(50)}), key="id")
    totals = JoinTotals(spark)
    enriched = enrich(spark.range(0, 100, 1, 5), tmp_path / "m", on="id", memory=MEMORY, totals=totals)
    assert totals.value == {}
    assert enriched.count() == 50
    counts = totals.value
    assert (counts["tasks"], counts["tuples_in"], counts["matched"], counts["unmatched"]) == (5, 100, 50, 50)
    assert 0 < counts["bytes_used"] <= counts["memory_bytes"] == parse_bytes(MEMORY) // 2
    assert sum(counts["bytes_by_part"].values()) == counts["bytes_used"]


def test_a_table_in_place_is_a_master_too(spark, tmp_path):
    with sqlite3.connect(tmp_path / "shop.db") as db:
        db.execute("create table products (id integer primary key, name text)")
        db.executemany("insert into products values (?, ?)", [(n, f"product {n}") for n in range(100)])
    db.close()
    enriched = enrich(
        spark.range(95, 105), f"sqlite:///{tmp_path}/shop.db?table=products", on="id", how="left", memory=MEMORY
    )
    names = {row.id: row.name for row in enriched.collect()}
    assert names == {n: f"product {n}" if n < 100 else None for n in range(95, 105)}


def test_an_opened_master_may_be_closed_after_the_call(spark, tmp_path):
    with ss.build_master(tmp_path / "m", pa.table({"id": [1, 2], "v": [10, 20]}), key="id") as master:
        enriched = enrich(spark.range(3), master, on="id", memory=MEMORY)
    ss.build_master(tmp_path / "m", pa.table({"id": [1], "v": [11]}), key="id").vacuum(older_than=dt.timedelta(0))
    assert sorted((row.id, row.v) for row in enriched.collect()) == [(1, 10), (2, 20)]
