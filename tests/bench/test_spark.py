"""A small run of `bench spark`; what every system answers is tested in tests/spark/test_bench.py."""

from __future__ import annotations

import json

import pytest

from semistream.bench import run_spark
from semistream.bench.spark_cases import SPARK_PRESETS, SYSTEMS
from semistream.errors import UsageError


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tmp_path_factory.mktemp("bench")


@pytest.mark.spark
def test_a_system_is_measured_and_its_answers_are_checked(data, capfd):
    capfd.readouterr()
    run_spark("smoke", json=True, systems=["enrich"], cases=["batch1000"], data=data)
    (row,) = json.loads(capfd.readouterr().out)["rows"]
    assert (row["system"], row["case"], row["error"]) == ("enrich", "batch1000", None)
    assert row["batch_ms_median"] > 0
    assert len(row["batch_ms"]) == 6
    assert row["rows_per_s"] == pytest.approx(200 / row["batch_ms_median"] * 1000)
    assert row["pages_read"] > 0
    assert row["checksum"].startswith("200:")


@pytest.mark.parametrize("wrong", [{"preset": "endless"}, {"cases": ["batch7"]}, {"systems": ["spark"]}], ids=str)
def test_wrong_names_are_refused_with_those_there_are(data, wrong):
    with pytest.raises(UsageError, match=r"need (one|some) of"):
        run_spark(**{"preset": "smoke", "data": data, **wrong})


def test_every_preset_has_the_same_cases():
    assert {tuple(case.name for case in preset.cases) for preset in SPARK_PRESETS.values()} == {
        ("batch1000", "batch1m", "frame10m")
    }
    assert SYSTEMS[0] == "enrich"
