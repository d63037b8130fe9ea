"""A measurement runs in a process of its own; whatever happens to it, there is a result."""

from __future__ import annotations

import os

import pytest

from semistream.bench.launch import run_python, run_task


def test_a_program_prints_what_it_prints():
    done = run_python(["-c", "print('out'); import sys; print('err', file=sys.stderr)"], threads=1, timeout_s=60)
    assert (done["out"], done["err"], done["error"]) == ("out\n", "err\n", None)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="cores cannot be chosen here")
def test_a_program_runs_on_the_cores_it_was_given_and_this_one_keeps_its_own():
    before = os.sched_getaffinity(0)
    done = run_python(["-c", "import os; print(len(os.sched_getaffinity(0)))"], threads=1, timeout_s=60)
    assert done["out"] == "1\n"
    assert os.sched_getaffinity(0) == before


def test_a_program_that_fails_says_why():
    assert "exit code 3" in run_python(["-c", "raise SystemExit(3)"], threads=1, timeout_s=60)["error"]
    assert "ZeroDivisionError" in run_python(["-c", "1 / 0"], threads=1, timeout_s=60)["error"]


def test_a_program_that_takes_too_long_is_ended():
    assert (
        run_python(["-c", "input = __import__('time').sleep(600)"], threads=1, timeout_s=0.5)["error"]
        == "took longer than 0.5 s"
    )


def test_a_task_that_fails_is_a_result_with_an_error():
    found = run_task({"task": "build", "system": "build_master", "rows": "/nowhere.parquet"}, threads=1, timeout_s=60)
    assert "FileNotFoundError" in found["error"]
