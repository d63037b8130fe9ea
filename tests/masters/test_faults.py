"""What goes wrong with files, disks and processes: each is one clear error, and the last good version stays in use."""

from __future__ import annotations

import gc
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import semistream as ss
from semistream.errors import BuildFailed, MasterBusy, MasterCorrupt, MasterFormat, MasterNotFound, SemistreamError

ROOT = Path(__file__).parents[2]
ROWS = 3000
PAGE = 4096


def products(rows: int = ROWS) -> pa.Table:
    return pa.table({"id": range(rows), "name": [f"product {i}" for i in range(rows)]})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    ss.build_master(tmp_path / "p.master", products(), key="id", page_bytes=PAGE).close()
    return tmp_path / "p.master"


def join_all(path: Path) -> int:
    join = ss.Join(ss.open_master(path), on="id", memory="1MB")
    return sum(batch.num_rows for batch in join(products().select(["id"]).to_batches(max_chunksize=500)))


def versions(path: Path) -> set[str]:
    return {entry.name for entry in path.iterdir()} - {"_pins", "lock"}


# ------------------------------------------------------------------------------------------------------ damaged bytes


@pytest.mark.parametrize("layout", ["key", "heap"])
@pytest.mark.parametrize("place", [0, 5, 9, 17, 33, 100, 4000, 4095])
def test_a_changed_byte_of_a_page_is_found_and_named(tmp_path: Path, layout: str, place: int):
    master = ss.build_master(tmp_path / "p.master", products(), key="id", layout=layout, page_bytes=PAGE)
    flip(master.version / "pages.bin", 3 * PAGE + place)
    named = r"pages\.bin: page 3 \(byte 12288\) does not have the checksum"
    for use in (master.verify, lambda: list(master.batches()), lambda: master.export(tmp_path / "out.parquet")):
        with pytest.raises(MasterCorrupt, match=named):
            use()
    with pytest.raises(MasterCorrupt, match=named):
        join_all(tmp_path / "p.master")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["p.master"]


def flip(file: Path, place: int) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 0x10
    file.write_bytes(content)


@pytest.mark.parametrize("file", ["index.bin", "dense.bin"])
def test_a_changed_byte_of_an_index_is_found(tmp_path: Path, file: str):
    master = ss.build_master(tmp_path / "p.master", products(), key="id", layout="heap")
    flip(master.version / file, 60)
    with pytest.raises(MasterCorrupt, match=file.replace(".", r"\.")):
        master.verify()


def test_pages_in_another_order_are_found(path: Path):
    pages = path / "v-1" / "pages.bin"
    content = pages.read_bytes()
    pages.write_bytes(content[PAGE : 2 * PAGE] + content[:PAGE] + content[2 * PAGE :])
    with pytest.raises(MasterCorrupt, match=r"pages\.bin"):
        ss.open_master(path).verify()


DAMAGES: dict[str, tuple[Callable[[Path], Any], type[Exception], str]] = {
    "truncated pages": (lambda v: os.truncate(v / "pages.bin", 5 * PAGE + 100), MasterCorrupt, "pages.bin"),
    "truncated by a page": (lambda v: os.truncate(v / "pages.bin", 5 * PAGE), MasterCorrupt, "pages.bin"),
    "longer pages": (
        lambda v: (v / "pages.bin").write_bytes((v / "pages.bin").read_bytes() + b"x" * PAGE),
        MasterCorrupt,
        "pages.bin",
    ),
    "no pages": (lambda v: (v / "pages.bin").unlink(), MasterNotFound, "pages.bin"),
    "truncated index": (lambda v: os.truncate(v / "index.bin", 50), MasterCorrupt, "index.bin"),
    "empty index": (lambda v: os.truncate(v / "index.bin", 0), MasterCorrupt, "index.bin"),
    "no index": (lambda v: (v / "index.bin").unlink(), MasterNotFound, "index.bin"),
    "no manifest": (lambda v: (v / "manifest.json").unlink(), MasterNotFound, "manifest.json"),
    "cut manifest": (lambda v: os.truncate(v / "manifest.json", 100), MasterCorrupt, "manifest.json"),
    "changed manifest": (lambda v: edit(v, rows=1), MasterCorrupt, "manifest.json"),
    "newer format": (lambda v: edit(v, format_version=2), MasterFormat, "upgrade semistream"),
    "no version": (shutil.rmtree, MasterNotFound, "v-1"),
    "no CURRENT": (lambda v: (v.parent / "CURRENT").unlink(), MasterNotFound, "unfinished build"),
    "only a draft": (
        lambda v: ((v.parent / "CURRENT").unlink(), v.rename(v.parent / "tmp-v-1")),
        MasterNotFound,
        "unfinished",
    ),
}


def edit(version: Path, **changes: Any) -> None:
    body = json.loads((version / "manifest.json").read_text())
    (version / "manifest.json").write_text(json.dumps(body | changes))


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_master_is_one_clear_error(path: Path, damage: str):
    harm, error, text = DAMAGES[damage]
    harm(path / "v-1")
    with pytest.raises(error, match=re.escape(text)):
        join_all(path)
    gc.collect()  # the error's traceback holds the master
    assert not list((path / "_pins" / "readers").glob("*")), "the failed reader left a pin"


@pytest.mark.parametrize(
    "damage",
    [
        name
        for name in DAMAGES
        if "manifest" not in name
        and "format" not in name
        and "version" not in name
        and "CURRENT" not in name
        and "draft" not in name
    ],
)
def test_verify_finds_every_damage_of_files(path: Path, damage: str):
    master = ss.open_master(path)
    DAMAGES[damage][0](path / "v-1")
    with pytest.raises(MasterCorrupt, match=DAMAGES[damage][2].replace(".", r"\.")):
        master.verify()


def test_a_damaged_master_can_be_built_again(path: Path):
    (path / "v-1" / "manifest.json").unlink()
    ss.build_master(path, products(), key="id").verify()
    assert join_all(path) == ROWS


# -------------------------------------------------------------------------------------------------------------- disks


LIMITED = """
import resource, sys
import pyarrow as pa, semistream as ss
ss.build_master(sys.argv[1] + "-warm", pa.table({"id": [1]}), key="id", layout=sys.argv[2])  # kernels are compiled before
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    ss.build_master(sys.argv[1], pa.table({"id": range(100_000)}), key="id", layout=sys.argv[2])
except ss.SemistreamError as exc:
    print(type(exc).__name__, exc)
"""


@pytest.mark.parametrize("layout", ["key", "heap"])
def test_a_file_that_cannot_grow_fails_the_build_only(path: Path, layout: str):
    before = versions(path)
    text = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path), layout], check=True, capture_output=True, text=True
    ).stdout
    assert text.startswith(f"BuildFailed {path}: build stopped, the version before it is still in use: File too large")
    assert versions(path) == before
    assert join_all(path) == ROWS


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A file system of so many bytes."""
    folder.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=False, capture_output=True
    ).returncode:
        pytest.skip("only root may mount a file system; the test before this one fills a limited file instead")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def wide(rows: int) -> Iterator[pa.RecordBatch]:
    for first in range(0, rows, 10_000):
        ids = np.arange(first, first + 10_000)
        yield pa.record_batch({f"c{i}": ids for i in range(15)} | {"id": ids})


@pytest.mark.parametrize("layout", ["key", "heap"])
def test_a_full_disk_leaves_the_old_version_in_use(tmp_path: Path, layout: str):
    with small_disk(tmp_path / "disk", "4m") as disk:
        ss.build_master(disk / "p.master", products(), key="id").close()
        before = versions(disk / "p.master")
        with pytest.raises(BuildFailed, match="the version before it is still in use: No space left on device"):
            ss.build_master(disk / "p.master", wide(100_000), key="id", layout=layout)
        assert versions(disk / "p.master") == before
        assert join_all(disk / "p.master") == ROWS
        ss.build_master(disk / "p.master", products(), key="id").close()


def test_a_full_disk_at_the_first_build_leaves_nothing(tmp_path: Path):
    with small_disk(tmp_path / "disk", "1m") as disk:
        with pytest.raises(BuildFailed, match="nothing was left behind: No space left"):
            ss.build_master(disk / "p.master", wide(50_000), key="id")
        assert not list(disk.iterdir())


def test_a_disk_too_small_to_sort_on_leaves_nothing(tmp_path: Path):
    with small_disk(tmp_path / "disk", "8m") as disk:
        with pytest.raises(BuildFailed, match="free disk space there or give more memory"):
            ss.build_master(disk / "p.master", wide(1_500_000), key="id", memory="96MB")
        assert not list(disk.iterdir())


def test_a_full_disk_fails_an_export_only(tmp_path: Path, path: Path):
    with small_disk(tmp_path / "disk", "64k") as disk:
        with pytest.raises(ss.MasterError, match="No space left on device"):
            ss.open_master(path).export(disk / "out.arrow")
        assert not list(disk.iterdir())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_master_can_be_read(path: Path):
    for folder in [path, *path.rglob("*")]:
        folder.chmod(0o555 if folder.is_dir() else 0o444)
    try:
        assert join_all(path) == ROWS
        with pytest.raises(BuildFailed, match="Permission denied"):
            ss.build_master(path, products(), key="id")
    finally:
        for folder in [path, *path.rglob("*")]:
            folder.chmod(0o755)


def test_a_master_on_a_read_only_disk_can_be_read(tmp_path: Path):
    with small_disk(tmp_path / "disk", "4m") as disk:
        ss.build_master(disk / "p.master", products(), key="id").close()
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        assert join_all(disk / "p.master") == ROWS
        with pytest.raises(BuildFailed, match="Read-only file system"):
            ss.build_master(disk / "p.master", products(), key="id")


# ---------------------------------------------------------------------------------------------------------- processes


ENDLESS = """
import sys, time
import numpy as np, pyarrow as pa, semistream as ss
def rows():
    for first in range(0, 10**9, 10_000):
        ids = np.arange(first, first + 10_000)
        yield pa.record_batch({"id": ids, **{f"c{i}": ids for i in range(15)}})
        if first == 900_000:
            print("ready", flush=True)
        if first > 900_000:
            time.sleep(0.05)
ss.build_master(sys.argv[1], rows(), key="id", layout=sys.argv[2], memory="96MB")
"""


@contextmanager
def endless_builder(path: Path, layout: str = "key") -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", ENDLESS, str(path), layout], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


def test_of_two_builders_at_once_one_is_refused(path: Path):
    with endless_builder(path) as process, pytest.raises(MasterBusy, match=f"process {process.pid} is building it"):
        ss.build_master(path, products(), key="id")
    assert join_all(path) == ROWS


@pytest.mark.parametrize("layout", ["key", "heap"])
def test_a_killed_builder_leaves_nothing_for_the_next(path: Path, layout: str):
    with endless_builder(path, layout) as process:
        assert any((path / "tmp-v-2").iterdir())
        assert join_all(path) == ROWS, "readers do not care for builders"
        process.kill()
        process.wait(timeout=60)
    assert "tmp-v-2" in versions(path)
    assert join_all(path) == ROWS
    master = ss.build_master(path, products(20), key="id")
    assert versions(path) == {"CURRENT", "v-1", "v-2"}
    assert master.rows == 20


def test_an_interrupted_builder_tidies_up(path: Path):
    with endless_builder(path) as process:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
    assert versions(path) == {"CURRENT", "v-1"}


def test_racing_builders_leave_whole_versions(tmp_path: Path):
    code = "import sys, pyarrow as pa, semistream as ss\n"
    code += "for _ in range(3):\n"
    code += "    try: ss.build_master(sys.argv[1], pa.table({'id': range(2000)}), key='id')\n"
    code += "    except ss.MasterBusy: pass\n"
    racers = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "p.master")]) for _ in range(2)]
    assert [racer.wait(timeout=120) for racer in racers] == [0, 0]
    master = ss.open_master(tmp_path / "p.master")
    master.verify()
    assert not any(name.startswith("tmp-") for name in versions(tmp_path / "p.master"))


def test_file_descriptors_are_given_back(path: Path):
    def opened() -> int:
        gc.collect()
        return len(list(Path("/proc/self/fd").iterdir()))

    join_all(path)
    before = opened()
    for _ in range(5):
        join_all(path)
        flip(path / "v-1" / "pages.bin", 10)
        with pytest.raises(SemistreamError):
            join_all(path)
        flip(path / "v-1" / "pages.bin", 10)
        ss.build_master(path, products(50), key="id", layout="heap").close()
        (path / "CURRENT").write_text("v-1")
    assert opened() <= before
