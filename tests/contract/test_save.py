"""The contract of `save` and `resume`: a join that was cut off anywhere goes on as if nothing had happened."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import semistream as ss
from tests.cases import SQL_KEYS, SQL_PAYLOADS, Case, Item, cases, cut, master_table, stream_table
from tests.contract.harness import ALGORITHMS, PAIRS, TIMES, as_sqlite_keeps, check_counts, in_smallest, opened_master
from tests.contract.small_cases import crowded_case, drifting_case, plain_case
from tests.reference import plain_rows, same_multiset

every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)
every_pair = pytest.mark.parametrize(("algorithm", "kind"), PAIRS)


class Saving:
    """A join that is saved before every item of its stream, and at its end."""

    def __init__(self, master: Any, case: Case, algorithm: str, memory: int) -> None:
        self._master, self._memory = master, memory
        self._options = {"on": case.on, "algorithm": algorithm} | case.join_options()
        self.items, self.batches, self.states = case.items, [], []
        join = self._join()
        for batch in join(self._stream(join)):
            self.batches.append(batch)
        self.report = join.report()

    def _join(self) -> ss.Join:
        return ss.Join(self._master, memory=self._memory, **self._options)

    def _stream(self, join: ss.Join) -> Iterator[Item]:
        for item in self.items:
            self.states.append((len(self.batches), join.save()))
            yield item
        self.states.append((len(self.batches), join.save()))

    def before(self, place: int) -> list[pa.RecordBatch]:
        """What had come out when the join was saved before this item."""
        return self.batches[: self.states[place][0]]

    def resumed(self, place: int) -> tuple[list[pa.RecordBatch], dict[str, Any]]:
        """What comes out after that, in a join of its own, and its report."""
        join = self._join()
        return list(join(iter(self.items[place:]), resume=self.states[place][1])), join.report()

    def check(self, place: int) -> None:
        """Batch by batch and counter by counter the same as without a cut."""
        batches, report = self.resumed(place)
        assert [plain_rows(batch) for batch in batches] == [
            plain_rows(batch) for batch in self.batches[self.states[place][0] :]
        ]
        assert {name: (report[name], was) for name, was in self.report.items() if name not in TIMES} == {
            name: (was, was) for name, was in self.report.items() if name not in TIMES
        }


@every_pair
def test_a_resumed_join_goes_on_as_if_nothing_had_happened(kind, algorithm):
    case = plain_case(90, 120, [1, 40, None, 0, 30], 150, how="left", match_column="found")
    case = as_sqlite_keeps(case) if kind == "sqlite" else case
    with opened_master(kind, case.master, case.master_key) as master:
        saving = Saving(master, case, algorithm, 1 << 18)
        same_multiset(saving.batches, case.expected())
        for place in (0, 1, 2, 2, 3, 6):  # from one state any number of times
            saving.check(place)


@pytest.mark.compiled
@every_pair
def test_what_is_cached_and_half_scanned_goes_on(kind, algorithm):
    case = drifting_case(how="left")
    case = replace(case, items=cut(case.stream, [900, 300, None, 300]))
    case = as_sqlite_keeps(case) if kind == "sqlite" else case
    with opened_master(kind, case.master, case.master_key) as master:
        Saving(master, case, algorithm, 1 << 18).check(2)


@every_algorithm
def test_what_waits_for_its_turn_goes_on(algorithm):
    case = crowded_case(how="left", ordered=True)
    with opened_master("key", case.master, case.master_key) as master:
        saving = Saving(master, case, algorithm, 1 << 18)
        for place in range(len(saving.states)):
            saving.check(place)


@every_pair
@settings(max_examples=max(1, settings().max_examples // 20))
@given(data=st.data())
def test_any_join_can_be_cut_anywhere(kind, algorithm, data):
    case = data.draw(cases(SQL_KEYS, SQL_PAYLOADS).map(as_sqlite_keeps) if kind == "sqlite" else cases())
    place = data.draw(st.integers(0, len(case.items)))
    with opened_master(kind, case.master, case.master_key, case.page_bytes) as master:
        saving, _ = in_smallest(1 << 18, lambda memory: Saving(master, case, algorithm, memory))
        batches, report = saving.resumed(place)
    whole = saving.before(place) + batches
    same_multiset(whole, case.expected())
    if any(item is not None for item in case.items):
        check_counts(report, case.items, whole)
    if case.options.get("ordered"):
        order = [row for batch in whole for row in batch["s_row"].to_pylist()]
        assert order == sorted(order)


@pytest.mark.compiled
@pytest.mark.parametrize(
    "algorithm", [name for name, record in ALGORITHMS.items() if record.capabilities["threads"] > 1]
)
def test_several_threads_go_on(algorithm):
    asked = [number * number * 31 % 2900 if number % 3 else number % 40 for number in range(9000)]
    table = master_table({"key0": pa.array(range(3000), pa.int64())}, ["string"])
    stream = stream_table({"key0": pa.array(asked, pa.int64())}, ["string"])
    options = {"how": "left", "threads": ALGORITHMS[algorithm].capabilities["threads"]}
    case = Case({}, stream, cut(stream, [4500, None, 10]), table, "key0", ["key0"], options=options)
    with opened_master("key", table, ["key0"]) as master:
        saving = Saving(master, case, algorithm, 1 << 20)
        for place in range(len(saving.states)):
            same_multiset(saving.before(place) + saving.resumed(place)[0], case.expected())


def test_a_saved_join_goes_on_in_another_process(tmp_path):
    case = plain_case(300, 400, [150], 300, how="left")
    with opened_master("key", case.master, case.master_key) as master:
        saving = Saving(master, case, "adaptive", 1 << 18)
        (tmp_path / "state").write_bytes(saving.states[1][1])
        with pa.OSFile(str(tmp_path / "stream"), "wb") as file, pa.ipc.new_file(file, case.stream.schema) as stream:
            stream.write_batch(case.items[1])
        program = f"""
import pyarrow as pa, semistream as ss
from pathlib import Path
join = ss.Join(ss.open_master({str(master.folder)!r}), on="key0", memory={1 << 18}, how="left")
stream = pa.ipc.open_file(Path("stream").read_bytes())
rest = list(join([stream.get_batch(0)], resume=Path("state").read_bytes()))
with pa.OSFile("rest", "wb") as file, pa.ipc.new_file(file, rest[0].schema) as out:
    for batch in rest:
        out.write_batch(batch)
"""
        subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    rest = pa.ipc.open_file((tmp_path / "rest").read_bytes()).read_all()
    assert saving.before(1) != saving.batches
    same_multiset(saving.before(1) + rest.to_batches(), case.expected())
