"""Pins of micro-batches: whoever comes first chooses, everybody else reads the choice, and vacuum leaves what was chosen."""

from __future__ import annotations

import multiprocessing
import os
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import semistream as ss
from semistream.errors import MasterCorrupt, UsageError
from semistream.masters.batch_pins import BatchPins, Choice, check_writable

CHOICE = Choice("v-1", "query q, micro-batch 7", "on this", "sum")


@pytest.fixture
def pins(tmp_path: Path) -> BatchPins:
    return BatchPins(tmp_path / "pins" / "q" / "operator")


def build(path: Path) -> None:
    ss.build_master(path, pa.table({"id": [1, 2], "v": [1, 2]}), key="id").close()


def test_the_first_choice_stays(pins):
    assert pins.read(7) is None
    assert pins.put(7, CHOICE) == CHOICE
    assert pins.put(7, replace(CHOICE, version="v-2")) == CHOICE
    assert pins.read(7) == CHOICE


def race(pins: BatchPins, number: int, told: multiprocessing.Queue) -> None:
    for batch in range(40):
        told.put((batch, pins.put(batch, replace(CHOICE, version=f"v-{number}")).version))


def test_processes_that_choose_at_the_same_time_agree(pins):
    context = multiprocessing.get_context("fork")
    told = context.Queue()
    racing = [context.Process(target=race, args=(pins, number, told)) for number in range(1, 5)]
    for process in racing:
        process.start()
    found = [told.get(timeout=60) for _ in range(160)]
    for process in racing:
        process.join()
    chosen = dict(found)
    assert set(found) == set(chosen.items())
    assert sorted(path.name for path in pins.folder.iterdir()) == sorted(str(batch) for batch in range(40))


def test_old_pins_and_what_killed_writers_left_are_forgotten(pins):
    for batch in (7, 8, 10):
        pins.put(batch, CHOICE)
    fresh, old = pins.folder / "draft-9-ab", pins.folder / "draft-8-cd"
    for draft in (fresh, old):
        draft.touch()
    os.utime(old, (0, time.time() - 4000))
    pins.forget(before=9)
    assert {path.name for path in pins.folder.iterdir()} == {"10", "draft-9-ab"}
    assert pins.before(10) is None
    assert pins.before(11) == CHOICE


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "no text"])
def test_a_corrupt_pin_is_one_clear_error(pins, damage):
    pins.put(7, CHOICE)
    path = pins.folder / "7"
    text = path.read_bytes()
    path.write_bytes(
        {"cut": text[:-3], "changed": text.replace(b"v-1", b"v-2"), "empty": b"", "no text": b"\xff\xfe"}[damage]
    )
    with pytest.raises(MasterCorrupt, match=r"operator/7: is not a whole pin.*remove the file"):
        pins.read(7)


def test_a_place_in_which_no_pin_can_be_made_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="give pins= another one"):
        check_writable(tmp_path / "file" / "pins")
    with pytest.raises(UsageError, match="give pins= another one"):
        BatchPins(tmp_path / "file" / "pins").put(1, CHOICE)


def test_vacuum_leaves_a_version_that_a_micro_batch_may_be_replayed_with(tmp_path):
    path = tmp_path / "m"
    build(path)
    pins = BatchPins(path / "_pins" / "q" / "operator")
    pins.put(7, CHOICE)
    build(path)
    (pins.folder / "draft-8-ab").write_text("half a p")
    with ss.open_master(path) as master:
        assert master.vacuum(older_than=0).kept["v-1"] == "pinned by query q, micro-batch 7"
        pins.forget(before=8)
        assert master.vacuum(older_than=0).removed == ["v-1"]


def test_vacuum_looks_where_it_is_told_that_pins_are(tmp_path):
    path, place = tmp_path / "m", tmp_path / "elsewhere"
    build(path)
    BatchPins(place / "q" / "operator").put(7, CHOICE)
    build(path)
    with ss.open_master(path) as master:
        with pytest.raises(UsageError, match=r"nowhere is not a folder"):
            master.vacuum(older_than=0, pins=[tmp_path / "nowhere"])
        assert "v-1" in master.vacuum(older_than=0, pins=[place]).kept
        assert master.vacuum(older_than=0).removed == ["v-1"]


def test_vacuum_removes_nothing_while_it_cannot_read_a_pin(tmp_path):
    path = tmp_path / "m"
    build(path)
    broken = path / "_pins" / "q" / "operator" / "7"
    broken.parent.mkdir(parents=True)
    broken.write_text("?")
    build(path)
    with ss.open_master(path) as master, pytest.raises(MasterCorrupt, match="operator/7"):
        master.vacuum(older_than=0)
    assert (path / "v-1").is_dir()
