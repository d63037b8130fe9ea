"""What is wrong with a call of `enrich` is said by that call: one error, before any task runs."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.cloudpickle import cloudpickle

import semistream as ss
from semistream.errors import BudgetError, ColumnError, KeyTypeError, MasterNotFound, UsageError
from semistream.spark import JoinTotals, enrich
from semistream.spark.slots import slots_from
from semistream.spark.task import JoinTask


@pytest.fixture(scope="module")
def master(tmp_path_factory):
    path = tmp_path_factory.mktemp("masters") / "products.master"
    nanoseconds = pa.array([1, 2, 3], pa.timestamp("ns"))
    ss.build_master(path, pa.table({"id": [1, 2, 3], "price": [1.0, 2.0, 3.0], "seen": nanoseconds}), key="id")
    return path


@pytest.fixture
def orders(spark):
    return spark.range(10).selectExpr("id", "cast(id as string) as text", "id * 2 as price_sum")


@pytest.mark.parametrize("how", ["right", "right_outer", "full", "outer", "fullouter"])
def test_outer_joins_of_the_master_are_refused_with_the_reason(orders, master, how):
    with pytest.raises(UsageError, match="stream does not end"):
        enrich(orders, master, on="id", how=how)


def test_a_missing_key_column_is_named(orders, master):
    with pytest.raises(ColumnError, match="order_id"):
        enrich(orders, master, on={"order_id": "id"})


def test_keys_that_cannot_be_compared_without_loss_are_refused_with_both_types(orders, master):
    with pytest.raises(KeyTypeError, match=r"string.*int64|int64.*string"):
        enrich(orders, master, on={"text": "id"}, columns=["price"])


def test_keys_with_a_collation_of_their_own_are_refused(spark, tmp_path):
    ss.build_master(tmp_path / "m", pa.table({"code": ["a"], "n": [1]}), key="code")
    stream = spark.sql("select collate('A', 'UTF8_LCASE') as code")
    with pytest.raises(KeyTypeError, match="UTF8_LCASE"):
        enrich(stream, tmp_path / "m", on="code")


def test_clashing_columns_are_refused(orders, master):
    with pytest.raises(ColumnError, match="price"):
        enrich(orders.withColumnRenamed("price_sum", "price"), master, on="id", columns=["price"])


def test_columns_that_spark_cannot_tell_apart_are_refused(spark, orders, master):
    stream = orders.withColumnRenamed("price_sum", "PRICE")
    with pytest.raises(ColumnError, match="PRICE"):
        enrich(stream, master, on="id", columns=["price"])
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        assert enrich(stream, master, on="id", columns=["price"]).columns == ["id", "text", "PRICE", "price"]
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_a_budget_that_is_too_small_says_what_all_tasks_together_need(orders, master):
    with pytest.raises(BudgetError, match="2 tasks") as failure:
        enrich(orders, master, on="id", columns=["price"], memory=1000)
    smallest = failure.value.smallest_bytes
    assert enrich(orders, master, on="id", columns=["price"], memory=smallest).count() == 3
    with pytest.raises(BudgetError):
        enrich(orders, master, on="id", columns=["price"], memory=smallest - 2)


def test_a_master_that_is_not_there_is_refused(orders, tmp_path):
    with pytest.raises(MasterNotFound, match="nowhere"):
        enrich(orders, tmp_path / "nowhere", on="id")


def test_a_master_column_that_spark_cannot_hold_is_refused_unless_left_out(orders, master):
    with pytest.raises(ColumnError, match=r"seen.*timestamp\[ns\]"):
        enrich(orders, master, on="id")
    assert enrich(orders, master, on="id", columns=["price"]).columns[-1] == "price"


def test_a_stream_column_that_cannot_cross_is_refused(spark, master):
    with pytest.raises(ColumnError, match="span"):
        enrich(spark.sql("select 1L as id, interval 1 month as span"), master, on="id", columns=["price"])


def test_an_unknown_algorithm_is_refused(orders, master):
    with pytest.raises(UsageError, match="nojoin"):
        enrich(orders, master, on="id", columns=["price"], algorithm="nojoin")


def test_a_number_of_slots_below_one_is_refused(orders, master):
    with pytest.raises(UsageError, match="task_slots=0"):
        enrich(orders, master, on="id", columns=["price"], task_slots=0)


@pytest.mark.parametrize(
    ("settings", "slots"),
    [
        (("local", None), 1),
        (("local[3]", 8), 3),
        (("local[2,4]", None), 2),
        (("local[*]", None, 1, lambda: 6), 6),
        (("local-cluster[2,3,1024]", None), 3),
        (("yarn", None), 1),
        (("k8s://https://host", 4, 2), 2),
        (("spark://host:7077", 5), 5),
        (("yarn", 1, 4), 1),
    ],
)
def test_task_slots_follow_from_the_settings(settings, slots):
    assert slots_from(*settings) == slots


def test_a_standalone_cluster_without_a_number_of_cores_must_be_told(orders, master):
    with pytest.raises(UsageError, match="task_slots="):
        slots_from("spark://host:7077", None)


def test_tasks_are_sent_as_a_name_and_a_few_fields(orders, master, monkeypatch):
    sent = []
    monkeypatch.setattr(type(orders), "mapInArrow", lambda self, task, schema: sent.append(task))
    enrich(orders, master, on="id", columns=["price"], totals=JoinTotals(orders.sparkSession))
    (task,) = sent
    assert isinstance(task, JoinTask)
    wire = cloudpickle.dumps(task)
    assert b"semistream.spark.task" in wire
    assert b"num_rows" not in wire, "the code of the task travels with it"
    assert len(wire) < 4096


def test_settings_of_the_session_stay_as_they_are_when_told_so(spark, orders, master):
    before = {name: spark.conf.get(name) for name in SETTINGS}
    enrich(orders, master, on="id", columns=["price"], crossing="as_set").count()
    assert {name: spark.conf.get(name) for name in SETTINGS} == before


SETTINGS = ["spark.sql.execution.arrow.maxBytesPerBatch", "spark.sql.execution.arrow.maxRecordsPerBatch"]
