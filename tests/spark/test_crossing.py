"""The fast way of rows into Python: taken where it is safe, said, bounded, and left alone when told so."""

from __future__ import annotations

import logging
import subprocess
import sys

import pyarrow as pa
import pytest

import semistream as ss
from semistream.errors import UsageError
from semistream.spark import SharedMemory, enrich
from semistream.spark.crossing import BATCH_BYTES, BYTES, MARK, ROWS, UNCHECKED
from tests.spark.conftest import MEMORY


@pytest.fixture(scope="module")
def master(tmp_path_factory):
    path = tmp_path_factory.mktemp("masters") / "m.master"
    ss.build_master(path, pa.table({"id": range(100), "v": range(100)}), key="id").close()
    return path


@pytest.fixture
def session(spark):
    """A session of its own, with Spark's defaults."""
    return spark.newSession()


def settings(session) -> tuple[int, int]:
    return int(session.conf.get(BYTES).rstrip("b")), int(session.conf.get(ROWS))


SLOW = (64 << 20, 10_000)


def batch_rows(frame) -> set[int]:
    """Rows of the batches in which the frame comes into Python."""

    def count(batches):
        for batch in batches:
            yield pa.record_batch({"n": [batch.num_rows]})

    return {row["n"] for row in frame.mapInArrow(count, "n long").collect()}


def test_narrow_rows_take_the_fast_way_and_it_is_said_once(session, master, caplog):
    assert settings(session) == SLOW
    with caplog.at_level(logging.WARNING, "semistream.spark"):
        for _ in range(2):
            assert enrich(session.range(1000), master, on="id", memory=MEMORY).count() == 100
    assert settings(session) == (UNCHECKED, 10_000)
    (said,) = [record.getMessage() for record in caplog.records]
    assert f"{BYTES}={UNCHECKED}" in said
    assert "crossing='as_set'" in said


def test_wide_rows_come_in_batches_of_fewer_rows(session, master):
    row_bytes = 1 << 14
    enrich(session.range(10), master, on="id", memory=MEMORY, row_bytes=row_bytes)
    assert settings(session) == (UNCHECKED, BATCH_BYTES // row_bytes)
    assert max(batch_rows(session.range(0, 2000, 1, 1))) == BATCH_BYTES // row_bytes


def test_rows_without_a_widest_size_are_measured_also_after_narrow_ones(session, master):
    texts = session.range(10).selectExpr("id", "repeat('x', 100) as text")
    enrich(texts, master, on="id", memory=MEMORY)
    assert settings(session) == SLOW
    enrich(session.range(10), master, on="id", memory=MEMORY, row_bytes="4kB")
    assert settings(session) == (UNCHECKED, 2048)
    enrich(texts, master, on="id", memory=MEMORY)
    assert settings(session) == SLOW
    assert session.conf.get(MARK, "") == ""


@pytest.mark.parametrize(("name", "value"), [(BYTES, str(1 << 20)), (ROWS, "500")])
def test_what_somebody_chose_is_not_made_larger(session, master, name, value):
    session.conf.set(name, value)
    enrich(session.range(10), master, on="id", memory=MEMORY)
    assert session.conf.get(name).rstrip("b") == value


def test_an_unbounded_number_of_rows_becomes_a_bounded_one(session, master):
    session.conf.set(ROWS, "0")
    enrich(session.range(10), master, on="id", memory=MEMORY)
    assert settings(session) == (UNCHECKED, BATCH_BYTES // 18)  # two columns come out


def test_what_somebody_chose_afterwards_stays_too(session, master, tmp_path):
    enrich(session.range(10), master, on="id", memory=MEMORY)
    session.conf.set(BYTES, str(1 << 20))
    session.conf.set(ROWS, "500")
    texts = session.range(10).selectExpr("id", "repeat('x', 100) as text")
    for frame in (session.range(10), texts):
        enrich(frame, master, on="id", memory=MEMORY)
        assert settings(session) == (1 << 20, 500)


def test_text_that_the_join_adds_is_measured_where_it_comes_into_python_again(session, tmp_path):
    ss.build_master(tmp_path / "t.master", pa.table({"id": range(9), "text": ["x" * 100] * 9}), key="id").close()
    enrich(session.range(10), tmp_path / "t.master", on="id", memory=MEMORY)
    assert settings(session) == SLOW


def test_other_sessions_stay_as_they_are(session, master):
    other = session.newSession()
    enrich(session.range(10), master, on="id", memory=MEMORY)
    assert settings(other) == SLOW


def test_a_wrong_call_changes_nothing(session, master):
    for options in ({"crossing": "slow"}, {"row_bytes": "wide"}, {"row_bytes": 0}, {"columns": ["nothing"]}):
        with pytest.raises(UsageError):
            enrich(session.range(10), master, on="id", memory=MEMORY, **options)
    assert settings(session) == SLOW


def test_a_chain_of_joins_shares_one_budget(session, master):
    memory = SharedMemory(MEMORY, joins=2)
    with pytest.raises(UsageError, match="nothing"):
        enrich(session.range(10), master, on="id", memory=memory, columns=["nothing"])
    once = enrich(session.range(10), master, on="id", memory=memory, columns=[("v", "one")])
    twice = enrich(once, master, on={"one": "id"}, memory=memory, columns=[("v", "two")])
    assert [tuple(row) for row in twice.orderBy("id").collect()] == [(n, n, n) for n in range(10)]
    with pytest.raises(UsageError, match="joins=2, and here is one more"):
        enrich(twice, master, on={"two": "id"}, memory=memory, columns=[("v", "three")])
    enrich(session.range(10), master, on="id", memory=memory, columns=[("v", "one")])  # as in the next micro-batch
    with pytest.raises(UsageError, match="joins=0"):
        SharedMemory(MEMORY, joins=0)


@pytest.mark.parametrize("algorithm", ["meshjoin", "r_meshjoin", "cmeshjoin", "ssbj"])
def test_an_algorithm_that_scans_warns(session, master, algorithm):
    with pytest.warns(UserWarning, match=f"{algorithm}.* reads all of master"):
        enrich(session.range(10), master, on="id", memory=MEMORY, algorithm=algorithm)


CLUSTER = """
import os, sys
import pyarrow as pa, semistream as ss
from semistream.errors import MasterNotFound
from semistream.spark import enrich
from semistream.spark.java import prepare_environment
prepare_environment()
from pyspark.sql import SparkSession
os.chdir(sys.argv[1])
ss.build_master("m.master", pa.table({"id": range(1000), "v": range(1000)}), key="id").close()
spark = (SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false").config("spark.log.level", "ERROR")
         .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1").getOrCreate())
stream = spark.range(0, 2000, 1, 4)
try:
    enrich(stream, "/proc/self/cwd/m.master", on="id", memory="32MB")  # the folder that this process works in, and executors do not
except MasterNotFound as error:
    print("refused:", error)
rows = enrich(stream, "m.master", on="id", memory="32MB", how="left").collect()
print("rows:", sorted((row["id"], row["v"]) for row in rows) == [(n, n if n < 1000 else None) for n in range(2000)])
spark.stop()
"""


@pytest.mark.spark
def test_a_master_that_executors_cannot_see_is_refused_and_one_that_they_see_is_joined(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", CLUSTER, str(tmp_path)], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    refused, rows = done.stdout.splitlines()
    assert refused.startswith("refused: enrich: the driver sees the master, an executor does not")
    assert rows == "rows: True"
