"""`semistream calibrate` and `semistream explain`."""

from __future__ import annotations

import json

import pytest

import semistream as ss
from semistream.machine import machine
from semistream.models import EXAMPLE
from semistream.tuning.calibration import Calibration


@pytest.fixture
def costs(tmp_path, monkeypatch):
    path = tmp_path / "costs.toml"
    monkeypatch.setenv("SEMISTREAM_CALIBRATION", str(path))
    return Calibration(machine(), ss.__version__, "buffered", "2026-01-31", 14.2, EXAMPLE).save(path)


def test_algorithms_are_ranked_for_a_memory(semistream, as_json, costs):
    said = semistream(
        "explain products.master orders.parquet --memory 1MB --algorithm hybridjoin --algorithm sscj"
    ).stdout
    assert "predicted in 1.0 MB" in said
    found = as_json("explain products.master --exponent 1 --memory 1MB --algorithm meshjoin")
    assert [line["algorithm"] for line in found["algorithms"]] == ["meshjoin"]
    assert found["algorithms"][0]["terms"]["probe"] > 0


def test_a_run_is_put_beside_its_prediction(semistream, as_json, costs, tmp_path):
    done = as_json(
        f"join orders.parquet products.master {tmp_path}/out.csv --on product_id --algorithm hybridjoin --memory 1MB"
    )
    (tmp_path / "run.json").write_text(json.dumps(done))
    said = semistream("explain products.master orders.parquet --memory 1MB --report", tmp_path / "run.json").stdout
    assert "deviation" in said
    (tmp_path / "run.json").write_text("[]")
    failed = semistream("explain products.master --exponent 1 --memory 1MB --report", tmp_path / "run.json", code=2)
    assert "is no JSON object" in failed.stderr


def test_without_unit_costs_it_says_how_to_get_them(semistream, tmp_path, monkeypatch):
    monkeypatch.setenv("SEMISTREAM_CALIBRATION", str(tmp_path / "none.toml"))
    failed = semistream("explain products.master --exponent 1 --memory 1MB", code=1)
    assert failed.stderr.startswith("error: ")
    assert "run `semistream calibrate`" in failed.stderr


def test_calibrate_prints_what_it_measured(semistream, as_json, monkeypatch, tmp_path):
    kept = Calibration(machine(), ss.__version__, "buffered", "2026-01-31", 14.2, EXAMPLE)
    monkeypatch.setattr("semistream.tuning.calibrate.calibrate", lambda *_, **__: kept)
    said = semistream("calibrate --output", tmp_path / "costs.toml").stdout
    assert "probe      100.0 ns" in said
    assert as_json("calibrate")["costs"]["probe_s"] == 1e-7
