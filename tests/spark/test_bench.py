"""Every system of `bench spark` gives the right answer, and a wrong one has no rate."""

from __future__ import annotations

import pytest

from semistream.bench.data import Answers
from semistream.bench.spark import _task
from semistream.bench.spark_cases import SYSTEMS, spark_preset
from semistream.bench.spark_run import measured

SMOKE = spark_preset("smoke")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tmp_path_factory.mktemp("bench")


@pytest.fixture
def session(spark):
    """A session with settings of its own, since some systems change them."""
    return spark.newSession()


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_answers_a_frame_rightly(session, data, system):
    case = SMOKE.case("frame10m")
    found = measured(session, _task(SMOKE, case, system, data))
    assert found["error"] is None
    assert found["rows_per_s"] == pytest.approx(case.counted_rows / found["batch_ms_median"] * 1000)
    assert found["checksum"].startswith(f"{case.counted_rows}:")


def test_micro_batches_are_timed_one_by_one(session, data):
    found = measured(session, _task(SMOKE, SMOKE.case("batch1000"), "enrich", data))
    assert found["error"] is None
    assert len(found["batch_ms"]) == 6
    assert found["rows"] == 4 * 200  # the first third is the warm-up


def test_a_wrong_answer_has_no_rate(session, data, tmp_path):
    task = _task(SMOKE, SMOKE.case("frame10m"), "spark_default", data)
    answers = Answers.load(task["answers"])
    answers.batches[0] = answers.batches[1]
    answers.save(tmp_path / "wrong.json")
    found = measured(session, task | {"answers": str(tmp_path / "wrong.json")})
    assert found["error"].startswith("wrong answer: checksum")
    assert found["rows_per_s"] is None
