"""`import semistream` and `semistream --help` are quick because they load little."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"numba", "llvmlite", "pyarrow", "duckdb", "pandas", "polars", "pyspark", "numpy"}


def loaded_by(program: str) -> set[str]:
    report = "\nimport sys; print(*sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program + report], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "program",
    ["import semistream", "from semistream.cli import main; main(['--help'], standalone_mode=False)"],
    ids=["library", "command"],
)
def test_heavy_libraries_are_loaded_only_when_used(program):
    assert loaded_by(program) & HEAVY == set()


def test_the_core_never_loads_spark():
    assert "pyspark" not in loaded_by(
        "import semistream; semistream.Join; semistream.algorithms(); semistream.build_master"
    )
