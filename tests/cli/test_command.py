"""The command as a whole: what it lists, where it writes, and how it ends, also as a real process."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import semistream as ss

PROGRAM = str(Path(sys.executable).with_name("semistream"))


def test_help_lists_every_command(semistream):
    said = semistream("--help").stdout
    assert all(
        f"\n  {name} " in said for name in ("algorithms", "bench", "calibrate", "demo", "explain", "join", "master")
    )


def test_algorithms_are_those_of_the_library(semistream, as_json):
    names = [one.name for one in ss.algorithms()]
    assert [one["name"] for one in as_json("algorithms")] == names
    assert all(name in semistream("algorithms").stdout for name in names)


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        "join",
        "master build",
        "master build a b",
        "join a b c.csv --on x --io sideways",
        "bench core --preset endless",
        "bench core --system x",
    ],
)
def test_wrong_usage_leaves_with_two(semistream, line):
    done = semistream(line, code=2)
    assert done.stdout == ""
    assert "error: " in done.stderr.lower()


def test_a_failing_disk_is_one_line_too(semistream, shop, monkeypatch, tmp_path):
    def no_space(*_):
        raise OSError(errno.ENOSPC, "No space left on device", "out.parquet")

    monkeypatch.setattr(Path, "replace", no_space)
    done = semistream(f"join orders.parquet products.master {tmp_path}/out.parquet --on product_id", code=1)
    last = done.stderr.splitlines()[-1]  # a first run says before that it compiles
    assert last == f"error: {tmp_path}/out.parquet: cannot be written: No space left on device"
    assert not any(tmp_path.iterdir())


def test_as_a_process_results_go_to_stdout_and_nothing_else_does(shop, tmp_path):
    command = [
        PROGRAM,
        "join",
        shop / "orders.parquet",
        shop / "products.master",
        tmp_path / "out.csv",
        "--on",
        "product_id",
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows_in"] == 1_000
    assert "joining" not in done.stderr
    done = subprocess.run(
        [*command[:-1], "--memory", "1KB", "--overwrite"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def read_all(terminal: int) -> str:
    """Everything a process writes to a terminal, until it ends (Linux then reports an input error)."""
    shown = b""
    with contextlib.suppress(OSError):
        while part := os.read(terminal, 1 << 16):
            shown += part
    os.close(terminal)
    return shown.decode()


def test_on_a_terminal_a_bar_moves(shop, tmp_path):
    ours, theirs = pty.openpty()
    command = [
        PROGRAM,
        "join",
        shop / "orders.parquet",
        shop / "products.master",
        tmp_path / "out.csv",
        "--on",
        "product_id",
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=theirs, env=os.environ | {"TERM": "xterm"}, text=True
    ) as process:
        os.close(theirs)
        shown = read_all(ours)
        said = process.stdout.read()
    assert process.returncode == 0, shown
    assert "joining" in shown
    assert "joining" not in said


def test_a_reader_that_goes_away_is_no_error(shop):
    command = f"{PROGRAM} master info {shop / 'products.master'} --json | true"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
