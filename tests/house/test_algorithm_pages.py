"""The pages about algorithms are made from the recipes, and are what the recipes say now."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import semistream as ss

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def rendered(*words):
    command = [sys.executable, BENCHMARKS / "render_algorithms.py", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module("render_algorithms")
    for name in ("render_algorithms", "render"):
        sys.modules.pop(name, None)


def test_the_pages_are_up_to_date():
    done = rendered("--check")
    assert done.returncode == 0, done.stderr


def test_a_page_that_is_wrong_missing_or_left_over_is_noticed_and_put_right(tmp_path):
    folder = tmp_path / "pages"
    assert rendered(folder).returncode == 0
    assert rendered(folder, "--check").returncode == 0
    names = {path.name for path in folder.iterdir()}
    assert names == {"index.md", *(f"{one.name}.md" for one in ss.algorithms())}
    (folder / "meshjoin.md").write_text("# Another algorithm\n")
    (folder / "hybridjoin.md").unlink()
    (folder / "gone.md").write_text("# An algorithm that was removed\n")
    done = rendered(folder, "--check")
    assert done.returncode != 0
    assert "gone.md, hybridjoin.md, meshjoin.md" in done.stderr
    assert rendered(folder).returncode == 0
    assert {path.name for path in folder.iterdir()} == names
    assert rendered(folder, "--check").returncode == 0


def row(system, case, rows_per_s, error=None):
    return {
        "system": system,
        "case": case,
        "rows_per_s": rows_per_s,
        "ci95": None if error else [rows_per_s - 1e5, rows_per_s + 1e5],
        "error": error,
        "memory_budget_bytes": 50 << 20,
        "peak_growth_bytes": 51 << 20,
        "pages_read": 25,
        "rows_joined": 10_000,
    }


def test_gains_losses_and_failures_are_all_shown(script):
    meta = {"preset": "quick", "machine": "two-cores", "versions": {"numpy": "2.0"}}
    found = {
        "meta": meta,
        "rows": [
            row("meshjoin", script.HEADLINE, 2e6),
            row("duckdb", script.HEADLINE, 4e6),
            row("polars", script.HEADLINE, 8e6),
            row("meshjoin", "fixed-zipf0-direct", None, "died"),
        ],
    }
    path = BENCHMARKS / "results" / "2026-01-31" / "two-cores.json"
    old = {"meta": meta, "rows": [row("meshjoin", script.HEADLINE, 1e6), row("hybridjoin", script.HEADLINE, 3e6)]}
    kept = [(path.with_name("old.json"), old), (path, found)]
    text = script.measured("meshjoin", kept)
    assert "`results/2026-01-31/two-cores.json`" in text
    assert f"| {script.HEADLINE} | 2.00 | 1.90 - 2.10 | 0.25 | 50.0 MB | 51.0 MB | 2.5 |" in text
    assert "| fixed-zipf0-direct | failed | failed | failed | 50.0 MB | 51.0 MB | failed |" in text
    assert "old.json" in script.measured("hybridjoin", kept)
    assert "No results are kept yet" in script.measured("ssbj", kept)
    assert (script.rate("meshjoin", kept), script.rate("hybridjoin", kept), script.rate("ssbj", kept)) == (
        "2.00",
        "3.00",
        "-",
    )


def test_a_docstring_becomes_text_drawings_and_an_example(script):
    text = script.prose("NAME: idea.\n\n    a -> b\n\n    c\n\nDepartures from the print. None.\n\n>>> 1\n1\n")
    assert text == (
        "NAME: idea.\n\n```text\n    a -> b\n\n    c\n```\n\n## Departures from the print\n\nNone.\n\n## Example\n\n```pycon\n>>> 1\n1\n```"
    )
