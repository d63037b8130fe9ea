"""What every check of the contract stands on: masters of every kind, the smallest budget, and a run that watches itself.

`run` is the only way the contract calls a join. Whatever a test is about, it also proves that the inputs were not
touched, that batches already given away never change, that every batch has the schema announced before, that the ledger
holds at every moment, and that the counters add up.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

import semistream as ss
from semistream.errors import BudgetError
from tests.cases import Case, Item
from tests.reference import same_multiset

ALGORITHMS = {record.name: record for record in ss.algorithms()}
T = TypeVar("T")
MASTERS = ("key", "heap", "frequency", "sqlite")
IN_WORD_ORDER = ("key",)
PAIRS = [  # what can be joined; the others must be refused
    (name, kind)
    for name, record in ALGORITHMS.items()
    for kind in MASTERS
    if kind in IN_WORD_ORDER or not record.capabilities["word_order"]
]
QUICK_FOLDER = (
    "/dev/shm" if Path("/dev/shm").is_dir() else None
)  # thousands of masters: waiting for the disk to sync takes minutes
TIMES = ("busy_s", "rows_per_s")  # what a report says that depends on the clock


# ------------------------------------------------------------------------------------------------------------ masters


@contextlib.contextmanager
def opened_master(kind: str, table: pa.Table, key: Sequence[str], page_bytes: int = 4096) -> Iterator[Any]:
    """A master of this kind that holds the table, on disk in a temporary folder."""
    with tempfile.TemporaryDirectory(dir=QUICK_FOLDER) as folder, contextlib.ExitStack() as stack:
        path, frequency = Path(folder) / "products.master", table.column_names[0] if kind == "frequency" else None
        if kind == "sqlite":
            master = ss.open_master(sqlite_master(path, table, key))
        else:
            master = ss.build_master(
                path, table, key=list(key), layout=kind, frequency=frequency, page_bytes=page_bytes
            )
        stack.callback(master.close)
        yield master


def sqlite_master(path: Path, table: pa.Table, key: Sequence[str]) -> str:
    """Write the table into a SQLite file with an index on the key; returns the URL."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        _fill(database, table)
        database.execute(f"CREATE INDEX by_key ON master ({', '.join(key)})")
        database.commit()
    return f"sqlite:///{path}?table=master&key={','.join(key)}"


def as_sqlite_keeps(case: Case) -> Case:
    """The case with the master that SQLite makes of it: it has no NaN, for example, and keeps NULL instead."""
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        _fill(database, case.master)
        rows = database.execute("SELECT * FROM master").fetchall()
    columns = zip(*rows, strict=True) if rows else [[] for _ in case.master.schema]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, case.master.schema, strict=True)]
    return replace(case, master=pa.Table.from_arrays(arrays, names=case.master.column_names))


def _fill(database: sqlite3.Connection, table: pa.Table) -> None:
    words = {pa.int64(): "INTEGER", pa.float64(): "REAL", pa.string(): "TEXT", pa.binary(): "BLOB"}
    columns = ", ".join(f'"{field.name}" {words[field.type]}' for field in table.schema)
    database.execute(f"CREATE TABLE master ({columns})")
    places = ", ".join("?" * table.num_columns)
    database.executemany(f"INSERT INTO master VALUES ({places})", zip(*table.to_pydict().values(), strict=True))


# --------------------------------------------------------------------------------------------------------------- runs


@dataclass
class Run:
    """What came out of one run of a join."""

    batches: list[pa.RecordBatch]
    report: dict[str, Any]

    def column(self, name: str) -> list[Any]:
        """All values of one output column, in the order they came."""
        return [value for batch in self.batches for value in batch[name].to_pylist()]


def digest(batch: Item) -> bytes:
    """A checksum over every byte a batch points to."""
    total = hashlib.blake2b(digest_size=16)
    for column in [] if batch is None else batch.columns:
        for buffer in column.buffers():
            total.update(b"-" if buffer is None else buffer)
    return total.digest()


def run(join: ss.Join, stream: pa.Schema, items: Sequence[Item], memory: int | None = None) -> Run:
    """Run the join and check everything that must hold in every run."""
    schema = join.output_schema(stream)
    before = [digest(item) for item in items]
    batches: list[pa.RecordBatch] = []
    sums: list[bytes] = []
    for batch in join(iter(items)):
        assert batch.schema.equals(schema), f"announced {schema}, came {batch.schema}"
        assert batch.num_rows, "an empty batch came out"
        batch.validate(full=True)
        batches.append(batch)
        sums.append(digest(batch))
        check_ledger(join.report(), memory)
    assert [digest(batch) for batch in batches] == sums, "a batch changed after it was given away"
    assert [digest(item) for item in items] == before, "an input batch was written to"
    if any(item is not None for item in items):
        check_ledger(join.report(), memory)
        check_counts(join.report(), items, batches)
    return Run(batches, join.report())


def check_ledger(report: dict[str, Any], memory: int | None) -> None:
    """Never over budget, at any moment."""
    assert memory is None or report["memory_bytes"] == memory
    assert sum(report["bytes_by_part"].values()) == report["bytes_used"] <= report["memory_bytes"]
    assert 0 <= report["waiting"] <= report["stream_slots"]
    assert report["matched"] + report["unmatched"] <= report["tuples_in"]


def check_counts(report: dict[str, Any], items: Sequence[Item], batches: Sequence[pa.RecordBatch]) -> None:
    """What came in is what was finished, and what was finished is what came out."""
    arrived = sum(item.num_rows for item in items if item is not None)
    assert report["tuples_in"] == arrived
    assert report["matched"] + report["unmatched"] == arrived
    assert report["waiting"] == 0
    assert report["rows_out"] == sum(batch.num_rows for batch in batches)
    assert report["loads"] <= report["pages_read"]
    assert report["wait_tuples_p50"] <= report["wait_tuples_p99"]
    assert report["wait_tuples_max"] <= max(0, arrived)


def smallest_bytes(master: Any, stream: pa.RecordBatch, **options: Any) -> int:
    """The smallest budget that works, as the errors of smaller ones tell it."""
    return in_smallest(1, lambda memory: list(ss.Join(master, memory=memory, **options)(iter([stream]))))[1]


def in_smallest(memory: int, attempt: Callable[[int], T]) -> tuple[T, int]:
    """Try with this budget, and when it is refused with the one that is said to work; the answer and the budget."""
    for _attempt in range(
        4
    ):  # without the schema of the stream, with it, with a row wider than the first ones, and then it must do
        try:
            return attempt(memory), memory
        except BudgetError as error:
            said = error.smallest_bytes
        assert said > memory, f"{memory} bytes were refused, and {said} said to be enough"
        memory = said
    msg = f"{memory} bytes were said to be enough and were refused"
    raise AssertionError(msg)


def run_case(master: Any, case: Case, algorithm: str, memory: int | None = None) -> Run:
    """Run a case, by default in the smallest budget that works for it plus what the case spares."""
    options = {"on": case.on, "algorithm": algorithm} | case.join_options()
    if memory is None:
        first = next(
            (item for item in case.items if item is not None), pa.RecordBatch.from_pylist([], schema=case.stream.schema)
        )
        memory = smallest_bytes(master, first, **options) + case.spare_bytes

    def attempt(memory: int) -> Run:
        return run(ss.Join(master, memory=memory, **options), case.stream.schema, case.items, memory)

    return in_smallest(memory, attempt)[0]  # a row wider than those of the first batch may need more


def check_case(master: Any, case: Case, algorithm: str, memory: int | None = None) -> Run:
    """Run a case and compare the answer with the oracle's."""
    outcome = run_case(master, case, algorithm, memory)
    same_multiset(outcome.batches, case.expected())
    if case.options.get("ordered"):
        order = outcome.column("s_row")
        assert order == sorted(order), "ordered=True, and rows left out of order"
    wait = case.options.get("max_wait")
    if isinstance(wait, int):
        largest = max((item.num_rows for item in case.items if item is not None), default=0)
        assert outcome.report["wait_tuples_max"] <= wait + largest
    return outcome
