"""SQLite columns get the Arrow type of their declaration, and a value that does not fit it is an error that names it."""

from __future__ import annotations

import datetime as dt
import sqlite3
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from semistream.errors import SourceError
from semistream.masters.sources import open_source

UTC = dt.UTC
COLUMNS: list[tuple[str, list[Any], pa.DataType, list[Any]]] = [
    ("INTEGER", [1, None, -(2**63)], pa.int64(), [1, None, -(2**63)]),
    ("BIGINT", [2**63 - 1], pa.int64(), [2**63 - 1]),
    ("VARCHAR(20)", ["a", "", None], pa.string(), ["a", "", None]),
    ("BLOB", [b"\x00", b""], pa.binary(), [b"\x00", b""]),
    ("BOOLEAN", [1, 0, None], pa.bool_(), [True, False, None]),
    ("REAL", [1, 0.5], pa.float64(), [1.0, 0.5]),
    ("NUMERIC", [1, 0.5], pa.float64(), [1.0, 0.5]),
    ("DECIMAL(10, 2)", ["1.25", 3, 0.1], pa.decimal128(10, 2), [Decimal("1.25"), Decimal("3.00"), Decimal("0.10")]),
    ("NUMERIC(40,0)", ["7"], pa.decimal256(40, 0), [Decimal(7)]),
    ("DATE", ["2024-02-29"], pa.date32(), [dt.date(2024, 2, 29)]),
    ("TIME", ["01:02:03.5"], pa.time64("us"), [dt.time(1, 2, 3, 500_000)]),
    (
        "TIMESTAMP",
        ["2024-01-01 10:00:00", 60],
        pa.timestamp("us"),
        [dt.datetime.fromisoformat("2024-01-01T10:00"), dt.datetime.fromisoformat("1970-01-01T00:01")],
    ),
    ("TIMESTAMPTZ", ["2024-01-01T10:00+02:00"], pa.timestamp("us", "UTC"), [dt.datetime(2024, 1, 1, 8, tzinfo=UTC)]),
    ("", [1, 2], pa.int64(), [1, 2]),
    ("", [1, 0.5], pa.float64(), [1.0, 0.5]),
    ("", ["x"], pa.string(), ["x"]),
    ("", [None], pa.null(), [None]),
]


def _table(tmp_path: Path, declared: str, values: list[Any]) -> str:
    with sqlite3.connect(tmp_path / "s.db") as link:
        link.execute(f"CREATE TABLE t (v {declared})")
        link.executemany("INSERT INTO t VALUES (?)", [(value,) for value in values])
    return f"sqlite:///{tmp_path}/s.db?table=t"


@pytest.mark.parametrize(("declared", "stored", "kind", "wanted"), COLUMNS)
def test_declared_types_decide(tmp_path: Path, declared: str, stored: list[Any], kind: pa.DataType, wanted: list[Any]):
    source = open_source(_table(tmp_path, declared, stored))
    assert source.schema.field("v").type == kind
    assert [value for batch in source.batches() for value in batch.column("v").to_pylist()] == wanted


MISFITS: list[tuple[str, Any]] = [
    ("INTEGER", "many"),
    ("INTEGER", 1.5),
    ("TEXT", b"\xff"),
    ("BLOB", "text"),
    ("BOOLEAN", 2),
    ("REAL", "x"),
    ("NUMERIC", 2**53 + 1),
    ("DECIMAL(10,2)", "1.234"),
    ("DECIMAL(4,2)", "100"),
    ("DECIMAL(4,2)", "dear"),
    ("DATE", "29.2.2024"),
    ("TIMESTAMP", 0.5),
    ("TIMESTAMP", "yesterday"),
]


@pytest.mark.parametrize(("declared", "value"), MISFITS)
def test_a_value_that_does_not_fit_is_named(tmp_path: Path, declared: str, value: Any):
    url = _table(tmp_path, declared, [None, value])
    with pytest.raises(SourceError, match=r"column v .* holds .* in row 2, which does not fit"):
        list(open_source(url).batches())


def test_a_column_of_no_type_with_mixed_values_is_an_error(tmp_path: Path):
    with pytest.raises(SourceError, match=r"column v has no declared type and holds integer and text values"):
        open_source(_table(tmp_path, "", [1, "x"]))


def test_awkward_names_are_quoted(tmp_path: Path):
    with sqlite3.connect(tmp_path / "s.db") as link:
        link.execute('CREATE TABLE "or""der" ("se lect" INTEGER)')
        link.execute('INSERT INTO "or""der" VALUES (5)')
    source = open_source(f'sqlite:///{tmp_path}/s.db?table=or"der')
    assert [batch.to_pydict() for batch in source.batches()] == [{"se lect": [5]}]


def test_reading_is_one_snapshot(tmp_path: Path):
    url = _table(tmp_path, "INTEGER", list(range(20_000)))
    writer = sqlite3.connect(tmp_path / "s.db")
    writer.execute("PRAGMA journal_mode = WAL")
    batches = open_source(url).batches()
    rows = next(batches).num_rows
    writer.execute("DELETE FROM t")
    writer.commit()
    assert rows + sum(batch.num_rows for batch in batches) == 20_000
    writer.close()


def test_an_unread_source_blocks_no_writer(tmp_path: Path):
    source = open_source(_table(tmp_path, "INTEGER", [1]))
    with sqlite3.connect(tmp_path / "s.db", timeout=0) as writer:
        writer.execute("INSERT INTO t VALUES (2)")
    assert sum(batch.num_rows for batch in source.batches()) == 2
