"""The two phases of P-CACHEJOIN and OP-CACHEJOIN in real threads; that their answers are right is the contract's business as well."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pyarrow as pa
import pytest

import semistream as ss
from semistream.errors import MasterCorrupt, NoProgress
from semistream.intermediate import IntermediateBuffer
from semistream.masters.page_buffer import PageBuffer
from semistream.pending import Pending

BOTH = pytest.mark.parametrize("algorithm", ["p_cachejoin", "op_cachejoin"])
ROWS, MEMORY, LONG = 5000, 1 << 19, 30
SCHEMA = pa.schema([("key", pa.int64()), ("number", pa.int64()), ("note", pa.string())])


@pytest.fixture(scope="module")
def master(tmp_path_factory):
    table = pa.table({"key": pa.array(range(ROWS), pa.int64()), "text": [f"{key:0>80}" for key in range(ROWS)]})
    with ss.build_master(tmp_path_factory.mktemp("m") / "rows.master", table, key="key") as opened:
        yield opened


@pytest.fixture(autouse=True)
def _no_thread_is_left():
    before = threading.active_count()
    yield
    gc.collect()
    assert threading.active_count() == before


def join_of(master, algorithm, **options):
    return ss.Join(master, on="key", algorithm=algorithm, **{"memory": MEMORY, "how": "left", "threads": 2} | options)


def batches(count, rows=300, keys=ROWS, note=0):
    """Batches of tuples; every third has one of fifty keys, one in ten has none of the master's."""
    dice = np.random.default_rng(7)
    for number in range(count):
        hot = dice.random(rows) < 1 / 3
        asked = np.where(hot, dice.integers(0, 50, rows) * 37 % keys, dice.integers(0, keys * 10 // 9, rows))
        numbers = np.arange(number * rows, (number + 1) * rows)
        yield pa.record_batch([asked, numbers, ["n" * (note * (n % 7)) for n in numbers]], schema=SCHEMA)


def check(output, count, rows=300):
    """All tuples came, each once, with the row of its key."""
    table = pa.Table.from_batches(output)
    assert sorted(table["number"].to_pylist()) == list(range(count * rows))
    for key, text in zip(table["key"].to_pylist(), table["text"].to_pylist(), strict=True):
        assert text == (f"{key:0>80}" if key < ROWS else None)


@BOTH
@pytest.mark.parametrize("note", [0, 9])
def test_phases_in_threads_give_every_tuple_its_row(algorithm, note, master):
    join = join_of(master, algorithm)
    check(list(join(batches(30, note=note))), 30)
    report = join.report()
    assert (report["waiting"], report["tuples_in"]) == (0, 9000)
    assert report["steps"] > 0
    assert report["bytes_by_part"]["intermediate buffer"] <= MEMORY / 50 + 4096


@BOTH
def test_a_row_too_wide_for_the_intermediate_buffer_is_answered_too(algorithm, master):
    wide = pa.record_batch([[1, 2, 3], [0, 1, 2], ["", "w" * 20_000, ""]], schema=SCHEMA)
    join = join_of(master, algorithm, memory=2 * MEMORY)
    output = pa.Table.from_batches(join([*batches(3, note=9), wide, *batches(3, note=9)]))
    assert output.num_rows == 1803
    assert join.report()["bytes_by_part"]["intermediate buffer"] < 21_000
    assert max(len(note) for note in output["note"].to_pylist()) == 20_000


@BOTH
@pytest.mark.parametrize("where", ["disk phase", "loader"])
def test_an_error_in_another_thread_reaches_the_caller_once(algorithm, where, master, monkeypatch):
    raised = []

    def broken(*_):
        if threading.current_thread() is not threading.main_thread():
            raised.append(threading.current_thread().name)
            raise MasterCorrupt("page 3 is damaged")
        return iter(())

    if where == "loader":
        monkeypatch.setattr(PageBuffer, "read", broken)
    else:
        monkeypatch.setattr(Pending, "claim", broken)
    output = join_of(master, algorithm)(batches(10))
    with pytest.raises(MasterCorrupt, match="page 3"):
        list(output)
    assert raised
    assert list(output) == []


@BOTH
def test_a_disk_phase_that_lets_nobody_go_says_so_instead_of_going_on_for_ever(algorithm, master, monkeypatch):
    for verb in ("claim", "probe_word", "leave_word"):
        monkeypatch.setattr(Pending, verb, lambda *_: iter(()))
    with pytest.raises(NoProgress):
        list(join_of(master, algorithm)(batches(10)))


@BOTH
@pytest.mark.parametrize("taken", [1, 4])
def test_whoever_stops_early_ends_all_threads(algorithm, taken, master):
    output = join_of(master, algorithm)(batches(100))
    for _ in range(taken):
        next(output)
    output.close()
    del output  # the fixture counts threads
    check(list(join_of(master, algorithm)(batches(2))), 2)


def held(monkeypatch, verb="claim"):
    """Make the disk phase stand still at its first page, until it is released."""
    reached, release, plain = threading.Event(), threading.Event(), getattr(Pending, verb)

    def standing(self, load):
        reached.set()
        assert release.wait(LONG)
        return plain(self, load)

    monkeypatch.setattr(Pending, verb, standing)
    return reached, release


@BOTH
def test_the_stream_phase_goes_on_while_the_disk_phase_reads_until_the_buffer_is_full(algorithm, master, monkeypatch):
    """The disk phase stands still in the middle of its first page; only a full buffer lets it go on."""
    reached, release, claim, append = threading.Event(), threading.Event(), Pending.claim, IntermediateBuffer.append
    filled = []

    def standing(self, load):
        reached.set()
        assert release.wait(LONG)
        return claim(self, load)

    def watched(self, block):
        taken = append(self, block)
        if taken < block.picks.size and not release.is_set():
            filled.append(self.waiting == self.slots)
            release.set()
        return taken

    def stream():
        yield from batches(1, rows=10)
        assert reached.wait(LONG), "the disk phase does not begin by itself"
        yield from batches(20)

    monkeypatch.setattr(Pending, "claim", standing)
    monkeypatch.setattr(IntermediateBuffer, "append", watched)
    assert sum(batch.num_rows for batch in join_of(master, algorithm)(stream())) == 6010
    assert filled == [True]


@BOTH
def test_the_disk_phase_rests_only_when_buffer_and_table_are_empty(algorithm, master):
    """A stream that pauses: nobody asks for anything, and all who wait are served by themselves."""
    join, emptied = join_of(master, algorithm), []

    def stream():
        yield next(batches(1))
        for _ in range(LONG * 100):
            if not join.report()["waiting"]:
                break
            threading.Event().wait(0.01)
        emptied.append((join.report()["waiting"], join.report()["steps"]))
        yield None
        emptied.append((join.report()["waiting"], join.report()["steps"]))

    check(list(join(stream())), 1)
    assert emptied[0] == emptied[1], "steps were made for nobody"
    assert emptied[0][0] == 0


@BOTH
def test_a_bound_on_waiting_holds_with_threads(algorithm, master):
    join = join_of(master, algorithm, max_wait=50)
    check(list(join(batches(20, rows=30))), 20, rows=30)
    assert join.report()["wait_tuples_max"] <= 50 + 30


@BOTH
def test_hot_keys_are_handed_to_the_stream_phase(algorithm, master):
    """Without sleep or luck: while nobody waits, both phases stand still and the trays are where they should be."""
    join, hot = join_of(master, algorithm), pa.record_batch([[7] * 200, range(200), [""] * 200], schema=SCHEMA)
    loads = []

    def stream():
        for _ in range(6):
            yield hot
            while join.report()["waiting"]:
                yield None
            loads.append(join.report()["steps"])

    assert sum(batch.num_rows for batch in join(stream())) == 1200
    assert loads[0] >= 1
    assert loads[-1] == loads[2], "a key that was asked for so often is read again and again"


def test_two_buffers_are_charged_and_read_by_threads_of_their_own(master, monkeypatch):
    readers, read = set(), PageBuffer.read

    def watched(self, first, stop):
        before = self.loads
        load = read(self, first, stop)
        if self.loads > before:
            readers.add(threading.current_thread().name.rpartition("_")[0])
        return load

    monkeypatch.setattr(PageBuffer, "read", watched)
    join = join_of(master, "op_cachejoin")
    check(list(join(batches(10))), 10)
    parts = join.report()["bytes_by_part"]
    assert parts["second disk buffer"] >= 0.8 * parts["disk buffer"]
    assert readers == {"semistream-loader"}
