"""Set-up: one command each, locked, and the same for everybody."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
LOCK = (ROOT / "requirements" / "dev.lock").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
TARGETS = re.findall(r"^\.PHONY: ([\w-]+)$", MAKEFILE, re.MULTILINE)


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_targets_people_know_are_there():
    assert {"setup", "check", "test", "demo", "bench", "soak", "docs"} <= set(TARGETS)


def test_make_help_lists_every_target():
    said = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"^  make ([\w-]+) ", said, re.MULTILINE) == TARGETS


@pytest.mark.parametrize("target", [target for target in TARGETS if target not in {"help", "clean", "test"}])
def test_every_target_works_alone_because_it_sets_up_first(target):
    needs = re.search(rf"^{target}: ([^#]*)##", MAKEFILE, re.MULTILINE)
    assert "$(STAMP)" in needs[1]


def test_continuous_integration_runs_make_test_and_nothing_else():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    commands = [line for line in script.read_text().splitlines() if line and not line.startswith("#")]
    assert commands == ["set -euo pipefail", 'cd "$(dirname "$0")/.."', "exec make test"]


def test_the_lock_names_every_dependency_that_the_project_asks_for():
    asked = [
        *PROJECT["project"]["dependencies"],
        *chain.from_iterable(PROJECT["project"]["optional-dependencies"].values()),
        *chain.from_iterable(PROJECT["dependency-groups"].values()),
    ]
    locked = {normal(name) for name in re.findall(r"^([\w.-]+)==", LOCK, re.MULTILINE)}
    assert {normal(re.match(r"[\w.-]+", line)[0]) for line in asked} - locked == set()


@pytest.mark.parametrize("name", ["dev.lock", "uv.lock"])
def test_everything_locked_has_a_version_and_a_hash_and_no_place(name):
    text = (ROOT / "requirements" / name).read_text()
    entries = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]
    assert entries
    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []
    assert "://" not in text
    assert "--index-url" not in text
