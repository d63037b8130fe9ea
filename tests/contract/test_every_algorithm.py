"""The contract: what every algorithm must do, over every kind of master.

Algorithms are found through `ss.algorithms()`: a new recipe is tested by all of this without a word added here, but for
the bound on waiting it declares, if that is a new one.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import re
import sqlite3
import threading
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import semistream as ss
from semistream import crew, keys
from semistream.errors import CapabilityError, KeyTypeError
from semistream.settle import Settler
from tests.cases import (
    COMPOSITE,
    PAYLOADS,
    SINGLE,
    SQL_KEYS,
    SQL_PAYLOADS,
    Case,
    cases,
    cut,
    master_table,
    stream_table,
)
from tests.contract.harness import (
    ALGORITHMS,
    MASTERS,
    PAIRS,
    TIMES,
    as_sqlite_keeps,
    check_case,
    digest,
    opened_master,
    run,
    run_case,
    smallest_bytes,
)
from tests.contract.small_cases import crowded_case, drifting_case, full_case, plain_case
from tests.key_kinds import KEY_KINDS, pools, taken
from tests.reference import plain_rows, reference_join, same_multiset

HOWS = ("inner", "left", "left_semi", "left_anti")
SCANS = [name for name, record in ALGORITHMS.items() if not record.capabilities["index"]]
HASHED = ("string", "large_binary", "decimal(38,10)", "decimal256(60,5)")

every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)
every_pair = pytest.mark.parametrize(("algorithm", "kind"), PAIRS)  # with every kind of master it can join


def cases_for(kind: str) -> st.SearchStrategy[Case]:
    """Cases that a master of this kind can hold."""
    return cases(SQL_KEYS, SQL_PAYLOADS).map(as_sqlite_keeps) if kind == "sqlite" else cases()


@pytest.fixture(autouse=True)
def _a_master_it_can_join(request):
    """What needs rows in word order is refused elsewhere, which has a test of its own."""
    told = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    ordered = "algorithm" in told and ALGORITHMS[told["algorithm"]].capabilities["word_order"]
    if ordered and told.get("kind", "key") != "key" and "refused" not in request.node.name:
        pytest.skip("needs rows in the order of their words")


def open_files() -> int:
    """Files this process has open (Linux)."""
    return len(list(Path("/proc/self/fd").iterdir()))


# ------------------------------------------------------------------------------------------------------- right answers


@every_pair
@settings(max_examples=max(3, settings().max_examples // 5))  # for every algorithm and every kind of master
@given(data=st.data())
def test_gives_the_rows_of_the_double_loop(kind, algorithm, data):
    case = data.draw(cases_for(kind))
    with opened_master(kind, case.master, case.master_key, case.page_bytes) as master:
        check_case(master, case, algorithm)


@every_algorithm
@pytest.mark.parametrize("kinds", [*SINGLE, *COMPOSITE], ids="+".join)
def test_every_key_type_in_every_join_type(kinds, algorithm):
    case = full_case(kinds)
    with opened_master("key", case.master, case.master_key) as master:
        for how in HOWS:
            for null_safe in (False, True):
                check_case(master, full_case(kinds, how=how, null_safe=null_safe), algorithm, memory=1 << 18)


@pytest.mark.parametrize(("algorithm", "kind"), [pair for pair in PAIRS if pair[1] in ("heap", "sqlite")])
def test_every_key_type_of_the_other_masters(kind, algorithm):
    for kinds in SQL_KEYS:
        case = full_case(kinds, how="left", null_safe=True)
        case = as_sqlite_keeps(case) if kind == "sqlite" else case
        with opened_master(kind, case.master, case.master_key) as master:
            check_case(master, case, algorithm, memory=1 << 18)


def test_two_key_types_are_compared_rightly_or_refused_by_name():
    kinds = {name: kind for name, kind in KEY_KINDS.items() if kind.stream == kind.master}
    accepted = 0
    for theirs, their_kind in kinds.items():
        master_rows = master_table({"key": taken(pools(theirs)[1], [None, *range(16)])})
        with opened_master("key", master_rows, ["key"]) as master:
            for ours, our_kind in kinds.items():
                stream = stream_table({"key": taken(pools(ours)[0], [None, *range(16)])})
                refusal = ""
                try:
                    batches = list(ss.Join(master, on="key", memory=1 << 18)(iter(stream.to_batches())))
                except KeyTypeError as error:
                    refusal = str(error)
                if refusal:
                    assert ours != theirs
                    assert f" {our_kind.stream} " in refusal
                    assert f" {their_kind.master}" in refusal
                else:
                    accepted += 1
                    same_multiset(batches, reference_join(stream, master_rows, "key"))
    assert accepted > len(kinds)


@pytest.mark.compiled
@every_algorithm
def test_every_payload_type_passes_through(algorithm):
    names = list(PAYLOADS)
    key = pa.array([number % 20 for number in range(60)], pa.int64())
    stream, master_rows = stream_table({"key0": key}, names), master_table({"key0": key}, names)
    case = Case({}, stream, cut(stream, [5, 50, 0, 1]), master_rows, "key0", ["key0"], options={"how": "left"})
    with opened_master("key", master_rows, ["key0"], 8192) as master:
        check_case(master, case, algorithm)
        check_case(master, replace(case, options={"ordered": True}), algorithm)


@every_pair
@pytest.mark.parametrize(("stream_rows", "master_rows"), [(0, 0), (0, 3), (3, 0)])
def test_an_empty_stream_or_master_is_legal(stream_rows, master_rows, kind, algorithm):
    stream = stream_table({"key0": pa.array(range(stream_rows), pa.int64())})
    table = master_table({"key0": pa.array(range(master_rows), pa.int64())})
    with opened_master(kind, table, ["key0"]) as master:
        for items in ([], [None], cut(stream, [None, 0, None])):
            held = stream if any(item is not None for item in items) else stream.slice(0, 0)
            for how in HOWS:
                case = Case({}, held, items, table, "key0", ["key0"], options={"how": how})
                check_case(master, case, algorithm, memory=1 << 18)


@every_pair
@pytest.mark.parametrize("max_wait", [None, 100])
def test_a_stream_may_change_its_favourites(max_wait, kind, algorithm):
    case = drifting_case(how="left", max_wait=max_wait)
    case = as_sqlite_keeps(case) if kind == "sqlite" else case
    with opened_master(kind, case.master, case.master_key) as master:
        for memory in (1 << 17, 1 << 18):
            assert check_case(master, case, algorithm, memory).report["bytes_used"] < case.master.nbytes


@every_pair
def test_any_cutting_into_batches_gives_the_same_rows(kind, algorithm):
    case = plain_case(300, 400, [], 300, how="left", match_column="found")
    case = as_sqlite_keeps(case) if kind == "sqlite" else case
    expected = case.expected()
    cuttings = ([], [1] * 300, [None, *[7, None, 0] * 40], [299, 1], [0, 0, None, 150], [64] * 4)
    with opened_master(kind, case.master, case.master_key) as master:
        for sizes in cuttings:
            outcome = run_case(master, replace(case, items=cut(case.stream, sizes)), algorithm)
            same_multiset(outcome.batches, expected)


@every_algorithm
@pytest.mark.parametrize("weak", [lambda word: 0, lambda word: -(word & 3)], ids=["one", "four"])
def test_a_weak_hash_costs_time_and_never_an_answer(weak, algorithm, monkeypatch):
    strong = keys.hash_bytes

    def weakened(starts, data):
        words = strong(starts, data)
        words[:] = [weak(int(word)) for word in words]
        return words

    monkeypatch.setattr(keys, "hash_bytes", weakened)
    for kinds in [*((kind,) for kind in HASHED), *COMPOSITE]:
        for how, null_safe in (("inner", False), ("left", True), ("left_anti", False)):
            case = full_case(kinds, how=how, null_safe=null_safe)
            with opened_master("key", case.master, case.master_key) as master:
                check_case(master, case, algorithm, memory=1 << 18)


@pytest.mark.parametrize("kind", ["heap", "sqlite"])
@every_algorithm
def test_a_weak_hash_costs_no_answer_with_the_other_masters_either(kind, algorithm, monkeypatch):
    """Where look-ups are by key, or rows of a word lie strewn, what was found for one key says nothing of another with its word."""
    strong = keys.hash_bytes

    monkeypatch.setattr(keys, "hash_bytes", lambda starts, data: strong(starts, data) & 255)
    table = master_table({"key0": pa.array([f"{number:0>50}" for number in range(3000)])}, ["string"])
    asked = pa.array([f"{number // 24 * 53:0>50}" for number in range(24 * 80)])
    stream = stream_table({"key0": asked})
    case = Case({}, stream, cut(stream, [24, None] * 80), table, "key0", ["key0"], options={"how": "left"})
    case = as_sqlite_keeps(case) if kind == "sqlite" else case
    with opened_master(kind, case.master, case.master_key) as master:
        check_case(master, case, algorithm, memory=1 << 18)


@every_pair
def test_keys_that_come_again_and_again_are_answered_as_the_first_time(kind, algorithm):
    """Whatever was learnt of a key, that it has many rows or none, must hold for the next tuple: a few keys, a thousand times."""
    keys_ = [0, 1, 2, 2, 3, 3, 3, *([4] * 300), *range(10, 400)]
    table = master_table(
        {"key0": pa.array([keys_[(7 * at) % len(keys_)] for at in range(len(keys_))], pa.int64())}, ["string"]
    )
    asked = pa.array([(0, 1, 2, 3, 5, 6, 11, 4 if at % 7 == 0 else 2)[at % 8] for at in range(1000)], pa.int64())
    stream = stream_table({"key0": asked})
    items = cut(stream, [40, 20, None, None, 180, *([None] * 30), 300, None])
    case = Case({}, stream, items, table, "key0", ["key0"], options={"how": "left"})
    case = as_sqlite_keeps(case) if kind == "sqlite" else case
    with opened_master(kind, case.master, case.master_key) as master:
        for memory in (None, 1 << 18, 1 << 20):
            check_case(master, case, algorithm, memory=memory)


# --------------------------------------------------------------------------------------------------- bounds and budget


@pytest.mark.compiled
@every_pair
@pytest.mark.parametrize("ordered", [False, True])
def test_the_smallest_budget_works_for_a_master_five_times_larger(kind, algorithm, ordered):
    rows, asked = 15_000, 400
    wide = pa.array([f"{number:0>60}" for number in range(rows)])
    table = pa.table({"key0": pa.array(range(0, 2 * rows, 2), pa.int64()), "m_text": wide})
    stream = stream_table(
        {"key0": pa.array([(number * 7919) % (2 * rows) for number in range(asked)], pa.int64())}, ["string"]
    )
    case = Case({}, stream, cut(stream, [1, 250]), table, "key0", ["key0"], options={"how": "left", "ordered": ordered})
    with opened_master(kind, table, ["key0"]) as master:
        outcome = check_case(master, case, algorithm)
        assert 5 * outcome.report["memory_bytes"] <= table.nbytes


@pytest.mark.compiled
@every_algorithm
def test_memory_that_python_and_arrow_hand_out_stays_within_the_budget(algorithm):
    memory = 4 << 20
    with opened_master("key", *wide_master(20_000)) as master:
        join = ss.Join(master, on="key0", algorithm=algorithm, memory=memory)
        batches = busy_stream(40_000, 20_000)
        list(join(iter(batches[:1])))  # kernels are compiled, lazily imported modules are there
        gc.collect()
        arrow_before, arrow_most = pa.total_allocated_bytes(), 0
        tracemalloc.start()
        for batch in join(iter(batches)):
            del batch
            arrow_most = max(arrow_most, pa.total_allocated_bytes() - arrow_before)
        python_most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    slab = sum(size for part, size in join.report()["bytes_by_part"].items() if part not in ("input", "output"))
    assert python_most + arrow_most <= memory - slab + memory // 10 + (1 << 20)


@pytest.mark.compiled
@every_algorithm
def test_the_process_grows_by_no_more_than_the_budget(algorithm):
    memory = 16 << 20
    with opened_master("key", *wide_master(20_000)) as master:
        join = ss.Join(master, on="key0", algorithm=algorithm, memory=memory)
        batches = busy_stream(60_000, 20_000)
        list(join(iter(batches[:1])))
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")  # the kernel forgets the highest resident size so far
        before = resident_most()
        for batch in join(iter(batches)):
            del batch
        assert resident_most() - before <= 1.1 * memory + (8 << 20)


def wide_master(rows: int) -> tuple[pa.Table, list[str], int]:
    """Rows of 700 bytes, their key, the page size."""
    text = pa.array([f"{number:0>700}" for number in range(rows)])
    return pa.table({"key0": pa.array(range(rows), pa.int64()), "m_text": text}), ["key0"], 16384


def busy_stream(rows: int, distinct: int) -> list[pa.RecordBatch]:
    """Keys all over the master, in batches of 5000."""
    keys_ = pa.array([(number * 7919) % distinct for number in range(rows)], pa.int64())
    return stream_table({"key0": keys_}).to_batches(max_chunksize=5000)


def resident_most() -> int:
    """The highest resident size of this process since the kernel was told to forget (Linux)."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.search(r"VmHWM:\s*(\d+) kB", status)[1]) * 1024


def exactly_k(algorithm: str) -> None:
    """A tuple stays for exactly one round of the master, wherever the round began."""
    case = plain_case(40, 10_000, [], 3000, how="left")
    with opened_master("key", case.master, case.master_key) as master:
        memory = smallest_bytes(master, case.items[0], on="key0", algorithm=algorithm)
        join = ss.Join(master, on="key0", algorithm=algorithm, memory=memory, how="left_anti")
        absent = [
            case.items[0].slice(number, 1) for number in range(40) if int(case.stream["key0"][number].as_py()) % 5 == 3
        ]
        list(join(iter(absent[:1])))
        rounds = join.report()["loads"]
        assert rounds >= 5
        steps = []

        def one_by_one():
            for batch in absent[:7]:
                yield batch
                steps.append(join.report()["steps"])
                yield from [None] * (2 * rounds)

        left = [join.report()["steps"] for _ in join(one_by_one())]
        assert [after - before for before, after in zip(steps, left, strict=True)] == [rounds] * 7


def exactly_k_times_l(algorithm: str) -> None:
    """A tuple stays for exactly one round of all segments, and a round reads every partition once."""
    case = plain_case(40, 10_000, [], 3000, how="left")
    absent = [case.items[0].slice(number, 1) for number in range(40) if case.stream["key0"][number].as_py() % 5 == 3]
    with opened_master("key", case.master, case.master_key) as master:
        join = ss.Join(master, on="key0", algorithm=algorithm, memory=1 << 18, how="left_anti")
        list(join(iter(absent[:1])))
        rounds, loads, steps = join.report()["steps"], join.report()["loads"], []
        assert loads >= 3
        assert rounds % loads == 0
        assert rounds > loads, "a partition has several segments"

        def one_by_one():
            for batch in absent[:7]:
                yield batch
                steps.append((join.report()["steps"], join.report()["loads"]))
                yield from [None] * (2 * rounds + 1)  # the next one does not find the scan where this one did

        left = [(join.report()["steps"], join.report()["loads"]) for _ in join(one_by_one())]
        assert [after[0] - before[0] for before, after in zip(steps, left, strict=True)] == [rounds] * 7
        assert all(after[1] - before[1] in (loads, loads + 1) for before, after in zip(steps, left, strict=True))


def one_look_up(algorithm: str) -> None:
    """Whoever waits when a step begins has left when it ends."""
    case, sizes = plain_case(40, 10_000, [], 3000), (1, 7, 20, 12)
    pieces = cut(case.stream, sizes)
    with opened_master("key", case.master, case.master_key) as master:
        for preset in ALGORITHMS[algorithm].capabilities["presets"]:
            join = ss.Join(master, on="key0", algorithm=algorithm, memory=1 << 18, how="left", preset=preset)
            arrived = []

            def paused(join=join, arrived=arrived):
                for piece in pieces:
                    yield piece
                    arrived.append(join.report()["waiting"] + join.report()["rows_out"])
                    yield None
                    assert join.report()["waiting"] == 0

            left = sum(batch.num_rows for batch in join(paused()))
            assert arrived == [1, 8, 28, 40]
            assert left == 40
            assert join.report()["steps"] == (40 if preset == "published" else len(sizes))


def eight_tables_of_arrivals(algorithm: str) -> None:
    """A tuple nobody comes after leaves too, although all others are answered without it."""
    rare, hot = 2999, [number % 40 for number in range(30_000)]
    stream = stream_table({"key0": pa.array([rare, *hot], pa.int64())})
    with opened_master("key", plain_case(1, 1, [], 3000).master, ["key0"]) as master:
        for preset in ALGORITHMS[algorithm].capabilities["presets"]:
            join = ss.Join(master, on="key0", algorithm=algorithm, memory=1 << 18, how="left", preset=preset)
            out = [
                (join.report()["tuples_in"], 0 in batch["s_row"].to_pylist())
                for batch in join(iter(stream.to_batches(max_chunksize=200)))
            ]
            slots = join.report()["stream_slots"]
            assert [arrived <= 8 * slots + 200 for arrived, is_rare in out if is_rare] == [True]
            assert join.report()["wait_tuples_max"] <= 8 * slots + 200


def one_leaves_a_load(algorithm: str) -> None:
    """Whoever chose the page leaves with it: there are never more steps than tuples."""
    for distinct in (1, 50, 10_000):
        case = plain_case(600, distinct, [1, 7, 200], 3000, how="left")
        with opened_master("key", case.master, case.master_key) as master:
            outcome = check_case(master, case, algorithm)
        assert outcome.report["steps"] <= 600
        assert outcome.report["loads"] <= 600


def due_pages_come_between(algorithm: str) -> None:
    """A load answers somebody, or strikes off pages that were noted when they answered two."""
    for distinct in (1, 50, 10_000):
        case = plain_case(600, distinct, [1, 7, 200], 3000, how="left")
        with opened_master("key", case.master, case.master_key) as master:
            outcome = check_case(master, case, algorithm)
        assert outcome.report["loads"] <= 600 * 3 / 2


def the_old_come_first(algorithm: str) -> None:
    """Whoever chose the page leaves with it, and a tuple that nobody's page helps does not wait for ever while hot keys come."""
    one_leaves_a_load(algorithm)
    rows = 40_000
    cold = [number * 211 % 3000 for number in range(40)]
    keys_ = pa.array(cold + [3000 + number * 7919 % 60 for number in range(rows - len(cold))], pa.int64())
    stream = stream_table({"key0": keys_})
    master_rows = master_table({"key0": pa.array(range(3060), pa.int64())}, ["string", "float64"])
    case = Case({}, stream, cut(stream, [40, 200]), master_rows, "key0", ["key0"], options={"how": "left"})
    with opened_master("key", master_rows, ["key0"]) as master:
        report = check_case(master, case, algorithm).report
    assert rows > 60 * report["stream_slots"]  # else nobody could have waited for too long
    assert report["wait_tuples_max"] <= 40 * report["stream_slots"]


BOUNDS = {
    "exactly k iterations, k = partitions of the master": exactly_k,
    "exactly k * l iterations, k = partitions of the master, l = segments of one": exactly_k_times_l,
    "one look-up": one_look_up,
    "eight tables full of arrivals": eight_tables_of_arrivals,
    "at most as many loads as tuples wait": one_leaves_a_load,
    "at most as many loads as tuples wait, and one more for every two that leave": due_pages_come_between,
    "once the age limit is reached, at most as many loads as tuples wait": the_old_come_first,
}


@pytest.mark.compiled
@every_algorithm
def test_the_declared_bound_on_waiting_holds(algorithm):
    BOUNDS[ALGORITHMS[algorithm].capabilities["bound"]](algorithm)


@every_pair
def test_nothing_new_lets_the_waiting_leave(kind, algorithm):
    case = plain_case(40, 50, [], 300, how="left")
    case = as_sqlite_keeps(case) if kind == "sqlite" else case
    done = 0
    with opened_master(kind, case.master, case.master_key) as master:
        join = ss.Join(master, on="key0", algorithm=algorithm, memory=1 << 18, how="left")

        def trickle():
            for start in range(0, 40, 10):
                yield case.items[0].slice(start, 10)
                for _rest in range(200):
                    yield None
                assert done == start + 10, "tuples still wait after 200 rests"

        for batch in join(trickle()):
            done += batch.num_rows
    assert done == 40


@pytest.mark.compiled
@every_algorithm
@pytest.mark.parametrize("max_wait", [0, 1, 10, 100])
def test_max_wait_in_tuples_bounds_the_wait(max_wait, algorithm):
    case = plain_case(500, 5000, [3] * 167, 3000, how="left", max_wait=max_wait)
    with opened_master("key", case.master, case.master_key) as master:
        unbounded = plain_case(500, 5000, [3] * 167, 3000, how="left")
        assert check_case(master, unbounded, algorithm, memory=1 << 18).report["wait_tuples_max"] > 103
        assert check_case(master, case, algorithm, memory=1 << 18).report["wait_tuples_max"] <= max_wait + 3


@every_algorithm
def test_max_wait_in_seconds_lets_everybody_leave_at_the_next_sign_of_life(algorithm):
    case = plain_case(60, 5000, [], 3000)
    seen = 0
    with opened_master("key", case.master, case.master_key) as master:
        join = ss.Join(master, on="key0", algorithm=algorithm, memory=1 << 20, how="left", max_wait="1ms")

        def paused():
            yield case.items[0]
            time.sleep(0.005)
            yield None
            assert seen == 60

        for batch in join(paused()):
            seen += batch.num_rows


# -------------------------------------------------------------------------------------------------------- order, seeds


@pytest.mark.compiled
@every_pair
@pytest.mark.parametrize("how", HOWS)
def test_ordered_output_follows_the_stream(how, kind, algorithm):
    for case in (plain_case(300, 400, [1, 7, None, 64], 300), crowded_case()):
        case = replace(case, options={"how": how, "ordered": True, "match_column": "found"})
        case = as_sqlite_keeps(case) if kind == "sqlite" else case
        with opened_master(kind, case.master, case.master_key) as master:
            check_case(master, case, algorithm)


@every_pair
def test_the_same_input_gives_the_same_output_and_counters(kind, algorithm):
    case = plain_case(700, 900, [13] * 30 + [None, 0], 600, how="left")
    case = as_sqlite_keeps(case) if kind == "sqlite" else case
    seen = []
    with opened_master(kind, case.master, case.master_key) as master:
        once = ss.Join(master, on="key0", algorithm=algorithm, memory=1 << 18, how="left")
        again = ss.Join(master, on="key0", algorithm=algorithm, memory=1 << 18, how="left")
        for join in (once, once, again):
            outcome = run(join, case.stream.schema, case.items)
            counters = {name: value for name, value in outcome.report.items() if name not in TIMES}
            seen.append(([plain_rows(batch) for batch in outcome.batches], counters))
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.compiled
@pytest.mark.parametrize(
    "algorithm", [name for name, record in ALGORITHMS.items() if record.capabilities["threads"] > 1]
)
@pytest.mark.parametrize("how", HOWS)
def test_several_threads_give_the_rows_that_one_gives(how, algorithm, monkeypatch):
    """With blocks, tables and bins in which there is work for all of them."""
    monkeypatch.setattr(crew, "_PART_ROWS", 32)
    names, settle = set(), Settler.settle

    def watched(self, found):
        names.add(threading.current_thread().name)
        yield from settle(self, found)

    monkeypatch.setattr(Settler, "settle", watched)
    asked = [number * number * 31 % 2900 if number % 3 else number % 40 for number in range(9000)]
    table = master_table({"key0": pa.array(sorted([*range(3000), *range(0, 3000, 3)]), pa.int64())}, ["string"])
    stream = stream_table({"key0": pa.array(asked, pa.int64())}, ["string"])
    case = Case({}, stream, cut(stream, [1, 700, None, 3000, None]), table, "key0", ["key0"])
    with opened_master("key", table, ["key0"]) as master:
        for threads in (1, ALGORITHMS[algorithm].capabilities["threads"]):
            names.clear()
            for memory in (None, 1 << 19):
                options = {"how": how, "threads": threads, "match_column": "found"}
                check_case(master, replace(case, options=options), algorithm, memory)
            assert len(names) == threads


# ------------------------------------------------------------------------------------------------------- good manners


@pytest.mark.compiled
@every_pair
def test_closing_early_releases_everything(kind, algorithm):
    case = plain_case(1500, 5000, [], 1500, how="left")
    case = as_sqlite_keeps(case) if kind == "sqlite" else case
    closed = []

    def stream():
        try:
            yield from case.stream.to_batches(max_chunksize=100)
        finally:
            closed.append(True)

    with opened_master(kind, case.master, case.master_key) as master:
        join = ss.Join(master, on="key0", algorithm=algorithm, memory=1 << 18, how="left")
        open_before = open_files()
        threads_before = threading.active_count()
        output = join(stream())
        first = next(output)
        before = digest(first)
        output.close()
        gc.collect()
        assert closed == [True], "the stream's own iterator was left open"
        assert open_files() == open_before
        assert threading.active_count() == threads_before
        assert digest(first) == before
        assert join.report()["tuples_in"] >= first.num_rows
        same_multiset(
            run(join, case.stream.schema, case.items).batches,
            reference_join(case.stream, case.master, "key0", how="left"),
        )


@every_algorithm
def test_an_error_of_the_stream_releases_everything(algorithm):
    case = plain_case(300, 500, [], 300)

    def broken():
        yield case.items[0]
        raise OSError("the network is gone")

    with opened_master("key", case.master, case.master_key) as master:
        join = ss.Join(master, on="key0", algorithm=algorithm, memory=1 << 18)
        open_before = open_files()
        with pytest.raises(OSError, match="the network is gone"):
            list(join(broken()))
        gc.collect()
        assert open_files() == open_before


@every_algorithm
def test_two_streams_at_once_do_not_mix(algorithm):
    case = plain_case(600, 900, [], 600)
    expected = case.expected()
    with opened_master("key", case.master, case.master_key) as master:
        joins = [ss.Join(master, on="key0", algorithm=algorithm, memory=1 << 18) for _ in range(2)]
        outputs = [join(iter(case.stream.to_batches(max_chunksize=50))) for join in joins]
        turns = list(itertools.zip_longest(*outputs))
    for batches in zip(*turns, strict=True):
        same_multiset([batch for batch in batches if batch is not None], expected)


def test_an_algorithm_that_needs_an_index_is_refused_without_one(tmp_path):
    path = tmp_path / "plain.db"
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE t (id INTEGER, v TEXT)")
        database.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        database.commit()
    master = ss.open_master(f"sqlite:///{path}?table=t&key=id")
    stream = pa.table({"id": [2, 3]})
    for algorithm, record in ALGORITHMS.items():
        if record.capabilities["index"]:
            with pytest.raises(CapabilityError) as error:
                ss.Join(master, on="id", algorithm=algorithm)
            assert (error.value.algorithm, error.value.capability) == (algorithm, "index")
            assert all(scan in str(error.value) for scan in SCANS)
        else:
            batches = list(ss.Join(master, on="id", algorithm=algorithm)(iter(stream.to_batches())))
            assert [batch.to_pylist() for batch in batches] == [[{"id": 2, "v": "b"}]]


@every_algorithm
def test_an_algorithm_that_needs_word_order_is_refused_without_it(algorithm):
    case = plain_case(1, 1, [], 5)
    for kind in MASTERS:
        with opened_master(kind, case.master, case.master_key) as master:
            if (algorithm, kind) in PAIRS:
                ss.Join(master, on="key0", algorithm=algorithm)
                continue
            with pytest.raises(CapabilityError) as error:
                ss.Join(master, on="key0", algorithm=algorithm)
            assert (error.value.algorithm, error.value.capability) == (algorithm, "word_order")
            others = [name for name, record in ALGORITHMS.items() if not record.capabilities["word_order"]]
            assert all(other in str(error.value) for other in others)


@every_algorithm
def test_a_preset_that_does_not_exist_is_refused(algorithm):
    case = plain_case(1, 1, [], 5)
    with opened_master("key", case.master, case.master_key) as master:
        for preset in ALGORITHMS[algorithm].capabilities["presets"]:
            ss.Join(master, on="key0", algorithm=algorithm, preset=preset)
        with pytest.raises(CapabilityError) as error:
            ss.Join(master, on="key0", algorithm=algorithm, preset="fastest")
    assert (error.value.algorithm, error.value.capability) == (algorithm, "preset")


@pytest.mark.compiled
@every_pair
def test_every_preset_gives_the_same_rows(kind, algorithm):
    cases_ = (
        plain_case(120, 400, [1, 7, None, 64], 300, how="left"),
        plain_case(1500, 900, [1, 7, 200], 1500, how="left"),
        crowded_case(how="left"),
    )
    for case in cases_:
        case = as_sqlite_keeps(case) if kind == "sqlite" else case
        with opened_master(kind, case.master, case.master_key) as master:
            for preset in ALGORITHMS[algorithm].capabilities["presets"]:
                for memory in (None, 1 << 19):
                    check_case(master, replace(case, options=case.options | {"preset": preset}), algorithm, memory)
