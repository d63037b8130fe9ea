"""What is in the tables: row sizes, duplicates, retail columns, weather stations."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from semistream.workloads import Constant, Domain, Duplicates, Fixed, Popularity, Retail, Weather, Zipf
from semistream.workloads.columns import money, numbered, row_bytes
from semistream.workloads.retail import OPENED, PIECES
from semistream.workloads.weather import LONGITUDES
from tests.workloads.statistics import LIMIT, chi_square, share_off


def column(reader, name):
    return reader.read_all()[name].to_numpy()


def test_rows_have_the_sizes_of_the_papers():
    assert row_bytes(Fixed.master_schema) == 120
    assert row_bytes(Fixed.stream_schema) == 20
    assert row_bytes(Weather.master_schema) == row_bytes(Weather.stream_schema) == 128
    schemas = [Fixed.master_schema, Fixed.stream_schema, Weather.master_schema, Weather.stream_schema]
    assert not any(field.nullable for schema in schemas for field in schema)
    assert Fixed(1000).master().read_all().nbytes == 120_000


@pytest.mark.parametrize("gap", [1, 9])
@pytest.mark.parametrize("shuffled", [False, True])
def test_a_fixed_master_has_every_key_once(gap, shuffled):
    keys = column(Fixed(70_000, gap=gap, shuffled=shuffled).master(seed=2), "key")
    assert np.sort(keys).tolist() == Domain(70_000, gap).keys(np.arange(1, 70_001)).tolist()
    assert (np.diff(keys) > 0).all() != shuffled


def test_the_fixed_stream_is_zipf_over_the_keys_of_the_master():
    tables = Fixed(5000, Popularity(exponent=0.8), gap=3)
    keys = column(tables.stream(300_000, seed=6), "key")
    hottest_first = tables.domain.keys(tables.popularity.hottest(5000, 5000))
    values, times = np.unique(keys, return_counts=True)
    counted = np.zeros(5000)
    order = np.argsort(hottest_first)
    counted[order[np.searchsorted(hottest_first[order], values)]] = times
    assert chi_square(counted, 300_000 * Zipf(5000, 0.8).probability(np.arange(1, 5001))) < LIMIT


def test_tuples_of_the_fixed_stream_are_numbered():
    assert column(Fixed(10).stream(100_000), "tuple_no").tolist() == list(range(100_000))


def test_a_hundred_million_rows_are_never_held():
    before = pa.total_allocated_bytes()
    reader = Fixed(100_000_000).master(batch_rows=10_000)
    batches = [reader.read_next_batch().num_rows for _ in range(20)]
    assert batches == [10_000] * 20
    assert pa.total_allocated_bytes() - before < 64 << 20


@pytest.mark.parametrize("distinct_keys", [None, 20_000])
def test_keys_of_the_duplicates_master_repeat_by_the_poisson_law(distinct_keys):
    rows = 100_000
    tables = Duplicates(rows, distinct_keys=distinct_keys)
    domain = tables.domain.size
    times = np.bincount(np.bincount(column(tables.master(seed=5), "key"), minlength=domain + 1)[1:])
    mean = rows / domain
    law = np.array([math.exp(-mean + k * math.log(mean) - math.lgamma(k + 1)) for k in range(60)])
    counted = np.append(times, np.zeros(60 - len(times)))
    assert chi_square(counted, domain * law / law.sum()) < LIMIT
    if distinct_keys is None:
        assert abs(times[0] / domain - 0.37) < 0.01


def test_every_key_of_the_duplicates_master_is_equally_likely():
    keys = column(Duplicates(30_000, distinct_keys=7).master(seed=1), "key")
    assert chi_square(np.bincount(keys, minlength=8)[1:], np.full(7, 30_000 / 7)) < LIMIT


def test_the_duplicates_stream_asks_for_keys_with_none_one_and_several_rows():
    tables = Duplicates(10_000)
    rows_of = np.bincount(column(tables.master(), "key"), minlength=10_001)
    matches = rows_of[column(tables.stream(50_000), "key")]
    assert {0, 1, 2, 3} <= set(matches.tolist())


def test_products_have_unique_keys_surrogates_and_skus():
    products = Retail(70_000, shuffled=True).master(seed=1).read_all()
    for name in ("product_id", "product_sk", "sku"):
        assert pc.count_distinct(products[name]).as_py() == 70_000
    assert not pc.equal(products["product_id"], pc.subtract(products["product_sk"], 7_000_000_000)).to_numpy().all()


def test_products_look_like_a_product_master():
    products = Retail(20_000).master(seed=1).read_all()
    assert pc.count_distinct(products["category"]).as_py() == 12
    assert pc.count_distinct(products["brand"]).as_py() == 320
    assert pc.count_distinct(products["vendor"]).as_py() > 900
    assert 15 < pc.mean(pc.utf8_length(products["name"])).as_py() < 30
    assert max(name.encode().__len__() - len(name) for name in products["name"].to_pylist()) > 0  # not only ASCII
    assert pc.min(products["price"]).as_py() > 0
    assert pc.max(products["updated_ts"].cast(pa.int64())).as_py() <= OPENED * 1_000_000
    assert abs(share_off(products["weight_kg"].null_count, 20_000, 0.03)) < LIMIT
    assert abs(share_off(products["description"].null_count, 20_000, 12 / 42)) < LIMIT
    assert abs(share_off(pc.sum(products["active"]).as_py(), 20_000, 0.97)) < LIMIT


def test_orders_are_resent_as_often_as_asked_and_unchanged():
    orders = Retail(1000, resent_share=0.05).stream(60_000, seed=2).read_all()
    distinct = orders.group_by(orders.column_names).aggregate([]).num_rows
    assert distinct == pc.count_distinct(orders["order_id"]).as_py()
    assert abs(share_off(60_000 - distinct, 60_000, 0.05)) < LIMIT
    once = Retail(1000, resent_share=0.0).stream(60_000, seed=2).read_all()
    assert pc.count_distinct(once["order_id"]).as_py() == 60_000


def test_an_order_is_new_before_it_is_sent_again():
    orders = Retail(1000, resent_share=1.0).stream(1000).read_all()["order_id"]
    assert pc.unique(orders).to_pylist() == [1_000_000_000]


def test_new_orders_come_in_the_order_of_their_time_and_at_the_rate_asked():
    tables = Retail(1000, arrivals=Constant(rate_per_s=500), resent_share=0.0)
    moments = tables.stream(200_000).read_all()["order_ts"].cast(pa.int64()).to_numpy()
    assert (np.diff(moments) == 2000).all()
    assert moments[0] == OPENED * 1_000_000


def test_orders_look_like_orders():
    orders = Retail(1000, Popularity(absent_share=0.02), customers=50).stream(50_000, seed=3).read_all()
    assert set(orders["unit"].to_pylist()) == set(PIECES)
    assert set(orders["channel"].to_pylist()) == {"web", "app", "store", "phone", None}
    assert pc.min_max(orders["customer_id"]).as_py() == {"min": 1, "max": 50}
    assert pc.min(orders["quantity"]).as_py() == 1
    unknown = pc.sum(pc.greater(orders["product_id"], 1000)).as_py()
    assert abs(share_off(unknown, 50_000, 0.02)) < 1.5 * LIMIT  # resent orders come in twos


@pytest.mark.parametrize("table", ["master", "stream"])
def test_longitudes_follow_the_stations_and_ships(table):
    weather = Weather(200_000)
    reader = weather.master(seed=4) if table == "master" else weather.stream(200_000, seed=4)
    longitudes = column(reader, "longitude")
    assert chi_square(np.bincount(longitudes, minlength=LONGITUDES), 200_000 * weather.longitude_shares()) < LIMIT


def test_stations_stand_still_report_unevenly_and_share_longitudes():
    reports = Weather(200_000).master(seed=1).read_all()
    by_station = reports.filter(pc.greater(reports["station"], 0)).group_by("station")
    per_station = by_station.aggregate(
        [("longitude", "count_distinct"), ("latitude", "count_distinct"), ([], "count_all")]
    )
    assert pc.max(per_station["longitude_count_distinct"]).as_py() == 1
    assert pc.max(per_station["latitude_count_distinct"]).as_py() == 1
    assert 4000 < per_station.num_rows <= 5388
    often = np.sort(per_station["count_all"].to_numpy())
    tenth = len(often) // 10
    assert often[-tenth:].sum() > 5 * often[:tenth].sum()
    ships = pc.sum(pc.equal(reports["station"], 0)).as_py()
    assert abs(share_off(ships, 200_000, 0.12)) < LIMIT


def test_the_weather_join_is_many_to_many():
    weather = Weather(100_000)
    rows_of = np.bincount(column(weather.master(), "longitude"), minlength=LONGITUDES)
    asked = column(weather.stream(30_000), "longitude")
    assert np.median(rows_of[asked]) > 5
    assert np.median(np.bincount(asked)[asked]) > 2


def test_the_master_is_april_and_august_and_the_stream_december():
    weather = Weather(10_000)
    months = pc.month(weather.master().read_all()["reported"]).to_numpy()
    assert months.tolist() == [4] * 5000 + [8] * 5000
    december = weather.stream(3000).read_all()["dec_reported"]
    assert set(pc.month(december).to_pylist()) == {12}
    assert (np.diff(december.cast(pa.int64()).to_numpy()) >= 0).all()
    assert pc.count_distinct(december).as_py() == 31 * 8


def test_money_and_numbered_texts_are_written_digit_by_digit():
    assert [str(value) for value in money(np.array([0, 5, -5, 123456, -(10**9)])).to_pylist()] == [
        "0.00",
        "0.05",
        "-0.05",
        "1234.56",
        "-10000000.00",
    ]
    assert numbered("Ä", np.array([0, 42]), 3).to_pylist() == ["Ä000", "Ä042"]
