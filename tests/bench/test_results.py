"""Kept results are whole: what failed is null and says why, nothing is absent, and the page shows the newest."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from semistream.bench.results import FIELDS

ROOT = Path(__file__).parents[2]
KEPT = sorted((ROOT / "benchmarks" / "results").rglob("*"))
FILES = [path for path in KEPT if path.is_file()]


def test_there_are_results():
    assert FILES


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_file_of_results_is_whole(path):
    assert re.fullmatch(
        r"\d{4}-\d{2}-\d{2}/[a-z0-9.-]+\.json", path.relative_to(ROOT / "benchmarks" / "results").as_posix()
    )
    found = json.loads(path.read_text())
    assert set(found) == {"meta", "rows"}
    names = [(row["system"], row["case"]) for row in found["rows"]]
    assert len(names) == len(set(names)) > 0
    for row in found["rows"]:
        assert set(row) >= {*FIELDS, "versions", "git_id", "machine", "seed"}
        measured = row.get("seconds") or row["rows_per_s"]
        assert (measured is None) == (row["error"] is not None)


def test_the_page_shows_the_newest_results():
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "render.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
