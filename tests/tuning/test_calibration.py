"""Unit costs: measured, kept with the machine they belong to, and refused elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

import semistream as ss
from semistream.machine import machine
from semistream.models import EXAMPLE
from semistream.tuning import experiments
from semistream.tuning.calibration import Calibration, default_path, load_calibration, parse

KEPT = Calibration(
    machine=machine(),
    version=ss.__version__,
    io="buffered",
    measured="2026-01-31T12:00:00+00:00",
    seconds=14.2,
    costs=replace(EXAMPLE, hit_s=2e-8),
    reads={"random": {"16384": 1e-5}, "scan": {"16384": 5e-6}},
)


@pytest.mark.compiled
def test_every_cost_is_measured_and_saved_with_the_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(experiments, "ROWS", 30_000)
    monkeypatch.setattr(experiments, "_REPEATED", 1)
    steps = []
    found = ss.calibrate(tmp_path / "costs.toml", folder=tmp_path, progress=lambda *step: steps.append(step))
    assert load_calibration(tmp_path / "costs.toml").machine == found.machine == machine()
    measured = found.to_dict()["costs"]
    assert all(seconds >= 0 for seconds in measured.values())
    # what is measured by itself takes time; the others are what is left of a measurement, and in so small a one may drown in noise
    assert all(measured[name] > 0 for name in ("take_s", "probe_s", "look_up_s", "keep_s", "hand_over_s"))
    assert measured["read_s"] + measured["read_byte_s"] > 0
    assert {name: sorted(by_size) for name, by_size in found.reads.items()}["scan"][0] == "1048576"
    assert [done for done, _, _ in steps] == list(range(steps[0][1]))
    assert [path.name for path in tmp_path.iterdir()] == ["costs.toml"]  # the master it was measured with is gone


def test_what_is_saved_is_read_again(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert KEPT.save() == default_path()
    read = load_calibration()
    assert read.costs == KEPT.costs
    assert (read.machine, read.io, read.reads) == (KEPT.machine, KEPT.io, KEPT.reads)


def test_a_chosen_place_goes_before_the_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("SEMISTREAM_CALIBRATION", str(tmp_path / "mine.toml"))
    assert KEPT.save() == tmp_path / "mine.toml"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [({"machine": "a-toaster"}, "measured on machine 'a-toaster'"), ({"version": "0.0.1"}, "with semistream '0.0.1'")],
)
def test_costs_of_another_machine_or_version_are_refused(wrong, told, tmp_path):
    path = replace(KEPT, **wrong).save(tmp_path / "costs.toml")
    with pytest.raises(
        ss.CalibrationError, match=f"costs.toml: was {told if 'measured' in told else 'measured ' + told}"
    ):
        load_calibration(path)


def test_no_costs_at_all_is_one_clear_error(tmp_path):
    with pytest.raises(
        ss.CalibrationError, match="there are no unit costs of this machine yet; run `semistream calibrate`"
    ):
        load_calibration(tmp_path / "none.toml")


@pytest.mark.parametrize(
    "text",
    [
        "not toml",
        "format = 9\n",
        "format = 1\n",
        KEPT.to_toml().replace("probe_s = 1e-07", "probe_s = -1.0"),
        "format = 1\ncosts = 3\n",
    ],
)
def test_a_damaged_file_is_one_clear_error(text):
    with pytest.raises(ss.CalibrationError, match="run `semistream calibrate`"):
        parse(text, "costs.toml")


def test_bad_arguments_are_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ss.UsageError, match='io=\'sideways\': need "buffered" or "direct"'):
        ss.calibrate(tmp_path / "costs.toml", io="sideways")
    with pytest.raises(ss.UsageError, match="there is no such folder"):
        ss.calibrate(tmp_path / "costs.toml", folder=tmp_path / "nowhere")
    assert not any(tmp_path.iterdir())
