"""Versions appear whole or not at all, one builder works at a time, and vacuum leaves what somebody reads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from semistream.errors import BuildFailed, MasterBusy, MasterCorrupt, MasterFormat, MasterNotFound, UsageError
from semistream.masters import claims
from semistream.masters.folder import current_version, new_version, pin_current, seal, vacuum, versions
from semistream.masters.manifest import MANIFEST, Manifest, parse_manifest, read_manifest

NOW = timedelta(0)


def a_manifest(**changes: object) -> Manifest:
    fields = {
        "schema": pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())]),
        "key": ("id",),
        "layout": "key",
        "page_bytes": 4096,
        "rows": 3,
        "pages": 1,
        "key_mode": "exact",
        "distinct_words": 3,
        "max_multiplicity": 1,
        "null_key_rows": 0,
        "row_bytes": 16,
        "created": "2024-01-01T00:00:00+00:00",
        "details": {"first_words": [1, 2]},
    }
    return Manifest(**{**fields, **changes})


def build(folder: Path, text: str = "rows") -> str:
    with new_version(folder) as draft:
        (draft / "pages.bin").write_text(text)
        seal(draft, a_manifest())
    return current_version(folder)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@contextmanager
def running(code: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """A process of its own that has come as far as the test wants, and goes on when the block ends."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.communicate("go on\n" if process.poll() is None else None, timeout=60)


def killed(process: subprocess.Popen[str], number: int = signal.SIGKILL) -> None:
    process.send_signal(number)
    process.wait(timeout=60)


BUILDER = """
import sys; from pathlib import Path; from semistream.masters.folder import new_version, seal
with new_version(Path(sys.argv[1])) as draft:
    (draft / "pages.bin").write_text("half")
    print("ready", flush=True)
    input()
"""
READER = """
import sys; from pathlib import Path; from semistream.masters.folder import pin_current
pin = pin_current(Path(sys.argv[1]))
print("ready", flush=True)
input()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "products.master"


def test_each_build_becomes_the_current_version(folder: Path):
    assert build(folder, "one") == "v-1"
    assert build(folder, "two") == "v-2"
    assert versions(folder) == ["v-1", "v-2"]
    assert (folder / "v-1" / "pages.bin").read_text() == "one"
    assert read_manifest(folder / "v-2").files["pages.bin"]["bytes"] == 3


def test_a_failing_build_leaves_the_version_before_it(folder: Path):
    build(folder)
    before = names(folder)
    with pytest.raises(ZeroDivisionError), new_version(folder) as draft:
        (draft / "pages.bin").write_text(f"half {1 // len(list(draft.iterdir()))}")
    assert names(folder) == before
    assert current_version(folder) == "v-1"
    assert build(folder) == "v-2"


def test_a_failing_first_build_leaves_nothing(folder: Path):
    with pytest.raises(ZeroDivisionError), new_version(folder) as draft:
        (draft / "pages.bin").write_text(str(1 // 0))
    assert not folder.exists()


def test_a_file_system_error_is_a_failed_build(folder: Path):
    build(folder)
    reason = "the version before it is still in use: No space left on device"
    with (
        pytest.raises(BuildFailed, match=reason),
        new_version(folder),
        Path("/dev/full").open("wb", buffering=0) as full,
    ):
        full.write(b"rows")
    assert current_version(folder) == "v-1"


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_builder_is_swept_by_the_next(folder: Path, signal_number: int):
    build(folder)
    with running(BUILDER, folder) as process:
        assert "tmp-v-2" in names(folder)
        killed(process, signal_number)
    assert current_version(folder) == "v-1"
    assert build(folder, "whole") == "v-2"
    assert names(folder) == {"CURRENT", "lock", "v-1", "v-2"}


def test_a_version_that_was_never_published_is_swept(folder: Path):
    build(folder)
    (folder / "v-1").rename(folder / "v-2")  # as after a crash between the two renames of a publication
    (folder / "v-1").mkdir()
    assert build(folder) == "v-2"
    assert (folder / "v-2" / MANIFEST).exists()


def test_two_builders_at_once_are_refused(folder: Path):
    with running(BUILDER, folder) as process:
        with pytest.raises(MasterBusy, match=f"process {process.pid} is building it") as caught:
            build(folder)
        assert caught.value.retry
        with pytest.raises(MasterNotFound, match="unfinished build"):
            current_version(folder)
    assert build(folder) == "v-2"


def test_the_fallback_without_flock_also_admits_one_builder(tmp_path: Path):
    path = tmp_path / "lock.pid"
    with (
        claims.lock_by_file(path),
        pytest.raises(MasterBusy, match=f"process {os.getpid()}"),
        claims.lock_by_file(path),
    ):
        pass
    assert not path.exists()


def test_the_fallback_without_flock_replaces_a_dead_builder(tmp_path: Path):
    code = "import sys; from pathlib import Path; from semistream.masters import claims\n"
    code += "with claims.lock_by_file(Path(sys.argv[1])): print('ready', flush=True); input()"
    with running(code, tmp_path / "lock.pid") as process:
        killed(process)
    assert (tmp_path / "lock.pid").exists()
    with claims.lock_by_file(tmp_path / "lock.pid"):
        pass


def test_vacuum_removes_what_nobody_reads(folder: Path):
    for _ in range(4):
        build(folder)
    report = vacuum(folder, keep=2, older_than=NOW)
    assert report.removed == ["v-1", "v-2"]
    assert report.freed_bytes > 0
    assert versions(folder) == ["v-3", "v-4"]
    assert vacuum(folder, older_than=NOW).removed == ["v-3"]
    assert vacuum(folder, older_than=NOW).removed == []


def test_vacuum_waits_for_readers_elsewhere(folder: Path):
    build(folder)
    build(folder)
    assert vacuum(folder).removed == []
    old = time.time() - timedelta(hours=2).total_seconds()
    os.utime(folder / "v-2" / MANIFEST, (old, old))
    assert vacuum(folder).removed == ["v-1"]


def test_vacuum_leaves_a_pinned_version(folder: Path):
    build(folder)
    pin = pin_current(folder)
    build(folder)
    report = vacuum(folder, older_than=NOW)
    assert report.removed == []
    assert f"process {os.getpid()}" in report.kept["v-1"]
    pin.release()
    pin.release()
    assert vacuum(folder, older_than=NOW).removed == ["v-1"]


def test_a_reader_in_another_process_holds_its_version_until_it_dies(folder: Path):
    build(folder)
    with running(READER, folder) as process:
        build(folder)
        assert vacuum(folder, older_than=NOW).removed == []
        killed(process)
    assert list((folder / "_pins" / "readers").iterdir())
    assert vacuum(folder, older_than=NOW).removed == ["v-1"]
    assert not list((folder / "_pins" / "readers").iterdir())


def test_a_pin_from_another_host_is_believed_for_its_lease(folder: Path):
    build(folder)
    pin = folder / "_pins" / "readers" / "v-1.elsewhere.1.abcd"
    pin.parent.mkdir(parents=True)
    pin.write_text("v-1\nelsewhere process 1")
    build(folder)
    assert "elsewhere" in vacuum(folder, older_than=NOW).kept["v-1"]
    old = time.time() - claims.LEASE_SECONDS - 1
    os.utime(pin, (old, old))
    assert vacuum(folder, older_than=NOW).removed == ["v-1"]


def test_a_query_that_wrote_down_its_version_holds_it(folder: Path):
    build(folder)
    choice = folder / "_pins" / "query-1" / "0" / "17"
    choice.parent.mkdir(parents=True)
    choice.write_text("v-1")
    build(folder)
    assert vacuum(folder, older_than=NOW).kept["v-1"] == "pinned by query-1/0/17"


def test_renewing_a_pin_shows_that_its_reader_lives(folder: Path):
    build(folder)
    pin = pin_current(folder)
    assert pin.path is not None
    os.utime(pin.path, (0, 0))
    pin.renew()
    assert pin.path.stat().st_mtime > time.time() - 60


def test_vacuum_keeps_at_least_the_current_version(folder: Path):
    build(folder)
    with pytest.raises(UsageError, match="give 1 or more"):
        vacuum(folder, keep=0)


def test_what_is_not_a_master_is_said_clearly(tmp_path: Path):
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    for name, reason in {"absent": "does not exist", "file": "is a file", "empty": "without a master in it"}.items():
        with pytest.raises(MasterNotFound, match=reason):
            current_version(tmp_path / name)


@pytest.mark.parametrize("text", ["", "v-", "../v-1", "v-1\nv-2", "\udcff"])
def test_a_damaged_current_is_corrupt(folder: Path, text: str):
    build(folder)
    (folder / "CURRENT").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(MasterCorrupt, match="CURRENT"):
        current_version(folder)


def test_a_current_that_names_nothing_is_not_a_master(folder: Path):
    build(folder)
    (folder / "CURRENT").write_text("v-9")
    with pytest.raises(MasterNotFound, match="v-9, which is missing"):
        current_version(folder)


def test_a_build_does_not_move_into_a_folder_of_other_things(tmp_path: Path):
    (tmp_path / "report.txt").touch()
    with pytest.raises(UsageError, match=r"holds other files \(report.txt\)"):
        build(tmp_path)
    with pytest.raises(UsageError, match="is a file"):
        build(tmp_path / "report.txt")
    assert names(tmp_path) == {"report.txt"}


def test_a_manifest_survives_its_file():
    manifest = a_manifest(watermark="2024-06-01", source="orders.parquet")
    assert parse_manifest(manifest.to_json(), "m") == manifest


def test_a_changed_manifest_is_noticed():
    text = a_manifest().to_json()
    for damaged in (text.replace('"rows": 3', '"rows": 4'), text[:-20], "[]", "null"):
        with pytest.raises(MasterCorrupt, match="build the master again"):
            parse_manifest(damaged, "m")


def test_a_newer_format_is_refused_before_anything_else_is_read():
    text = '{"format_version": 99, "semistream_version": "7.0", "unknown": 1}'
    with pytest.raises(MasterFormat, match=r"format 99, written by semistream 7.0; .* upgrade"):
        parse_manifest(text, "m")


def test_a_version_without_manifest_is_not_complete(folder: Path):
    build(folder)
    (folder / "v-1" / MANIFEST).unlink()
    with pytest.raises(MasterNotFound, match="not complete"):
        read_manifest(folder / "v-1")
