"""A SQLite table in place: pages follow its key index, every key is found, and what SQLite allows is never answered wrongly."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import semistream as ss
from semistream.budget import Slab
from semistream.errors import (
    CapabilityError,
    ColumnError,
    MasterBusy,
    MasterCorrupt,
    MasterNotFound,
    SourceError,
    UsageError,
)
from semistream.keys import NULL_WORD
from semistream.masters.page_scan import to_batch
from semistream.masters.sqlite import SqliteMaster
from semistream.masters.sqlite_buffer import SqliteBuffer
from semistream.masters.sqlite_reader import SqliteReader

BUFFER = 256 << 10


def database(tmp_path: Path, columns: str, rows: Sequence[tuple[Any, ...]], *more: str) -> str:
    """A file with table t; returns its URL."""
    with closing(sqlite3.connect(tmp_path / "m.db")) as link:
        for sql in [f"CREATE TABLE t ({columns})", *more]:
            link.execute(sql)
        if rows:
            link.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(rows[0]))})", rows)
        link.commit()
    return f"sqlite:///{tmp_path}/m.db?table=t"


def attached(master: SqliteMaster) -> tuple[SqliteReader, SqliteBuffer, Slab]:
    reader, slab = master.reader(), Slab(BUFFER + (4 << 20))
    reader.attach(slab)
    return reader, reader.buffer(slab, "disk buffer", BUFFER), slab


def rows_in(master: SqliteMaster, slab: Slab, load: Any) -> list[dict[str, Any]]:
    return to_batch(slab.memory, load.page_at, master.keys, master.codec, master.schema).to_pylist()


def pages_of(master: SqliteMaster) -> Iterator[list[dict[str, Any]]]:
    reader, buffer, slab = attached(master)
    for number in range(reader.pages):
        yield rows_in(master, slab, buffer.read(number, number + 1))


def bag(rows: Sequence[dict[str, Any]]) -> Counter[str]:
    return Counter(map(repr, rows))


HEAVY = [(n % 400 if n % 50 else None, f"name {n % 90}" if n % 70 else None, n) for n in range(6000)]
HEAVY += [(7, "heavy", n) for n in range(6000, 8000)] + [(NULL_WORD, "the key whose word a null has", 8000)]

KEYS: dict[str, tuple[str, str, list[str]]] = {
    "integer": ("id INTEGER, name TEXT, row INTEGER", "CREATE INDEX k ON t (id)", ["id"]),
    "descending": ("id INTEGER, name TEXT, row INTEGER", "CREATE INDEX k ON t (id DESC)", ["id"]),
    "text": ("id INTEGER, name TEXT, row INTEGER", "CREATE INDEX k ON t (name)", ["name"]),
    "real": ("id REAL, name TEXT, row INTEGER", "CREATE INDEX k ON t (id, row)", ["id"]),
    "row id": ("id INTEGER, name TEXT, row INTEGER PRIMARY KEY", "SELECT 1", ["row"]),
    "without row id": ("id INTEGER, name TEXT, row INTEGER PRIMARY KEY) WITHOUT ROWID --", "SELECT 1", ["row"]),
    "null key without row id": (
        "id INTEGER, name TEXT, row INTEGER PRIMARY KEY) WITHOUT ROWID --",
        "CREATE INDEX k ON t (id)",
        ["id"],
    ),
    "composite": ("id INTEGER, name TEXT, row INTEGER", "CREATE INDEX k ON t (id, name)", ["id", "name"]),
    "composite, other order": ("id INTEGER, name TEXT, row INTEGER", "CREATE INDEX k ON t (name, id)", ["id", "name"]),
}


def opened(tmp_path: Path, kind: str) -> SqliteMaster:
    columns, index, key = KEYS[kind]
    return ss.open_master(database(tmp_path, columns.replace("--", "-- "), HEAVY, index) + f"&key={','.join(key)}")


@pytest.mark.parametrize("kind", KEYS)
def test_all_pages_together_are_the_table_and_no_key_crosses_one(tmp_path: Path, kind: str):
    master = opened(tmp_path, kind)
    key = KEYS[kind][2]
    pages = list(pages_of(master))
    assert bag([row for page in pages for row in page]) == bag([row for b in master.batches() for row in b.to_pylist()])
    assert len(pages) > 10
    seen: dict[tuple[Any, ...], int] = {}
    for number, page in enumerate(pages):
        for row in page:
            value = tuple(row[name] for name in key)
            assert None in value or seen.setdefault(value, number) == number


@pytest.mark.parametrize("kind", KEYS)
def test_every_key_is_found_by_look_up_and_by_fetch(tmp_path: Path, kind: str):
    master, key = opened(tmp_path, kind), KEYS[kind][2]
    assert master.indexed
    wanted: dict[tuple[Any, ...], Counter[str]] = {}
    for batch in master.batches():
        for row in batch.to_pylist():
            wanted.setdefault(tuple(row[name] for name in key), Counter())[repr(row)] += 1
    reader, buffer, slab = attached(master)
    some = list(wanted)[:: max(1, len(wanted) // 60)]
    for value in some:
        found = [row for span in reader.look_up(0, [value]) for row in rows_in(master, slab, buffer.read(*span))]
        assert Counter(repr(row) for row in found if tuple(row[name] for name in key) == value) == wanted[value]
    fetched = [row for load in buffer.fetch(some) for row in rows_in(master, slab, load)]
    assert bag(fetched) == sum((wanted[value] for value in some), Counter())


def test_absent_keys_are_surely_absent_or_not_found(tmp_path: Path):
    master = opened(tmp_path, "integer")
    reader, buffer, slab = attached(master)
    assert reader.look_up(0, [(-5,)]) == []
    assert list(buffer.fetch([(-5,), (10**15,), (None,)])) != []  # the rows without a key
    assert [row for load in buffer.fetch([(-5,)]) for row in rows_in(master, slab, load)] == []
    assert reader.look_up(0, [(1,), (2,)]) == sorted({*reader.look_up(0, [(1,)]), *reader.look_up(0, [(2,)])})


def test_nan_is_looked_for_nowhere(tmp_path: Path):
    rows = [(n / 2, "x") for n in range(-9, 9)]
    master = ss.open_master(database(tmp_path, "id REAL PRIMARY KEY, x TEXT", [*rows, (None, "nobody")]))
    reader, buffer, slab = attached(master)
    nan, other = float("nan"), -float("nan")
    assert [row for load in buffer.fetch([(nan,), (other,)]) for row in rows_in(master, slab, load)] == []
    found = [row for load in buffer.fetch([(0.0,), (None,), (nan,), (-0.0,)]) for row in rows_in(master, slab, load)]
    assert sorted(row["x"] for row in found) == ["nobody", "x"], "every row comes once"
    assert reader.look_up(0, [(float("nan"),)]) == []
    assert reader.look_up(0, [(-0.0,)]) == reader.look_up(0, [(0.0,)]) != []


def test_many_keys_are_fetched_in_one_go(tmp_path: Path):
    master = opened(tmp_path, "row id")
    _reader, buffer, slab = attached(master)
    statements: list[str] = []
    master.link.set_trace_callback(statements.append)
    fetched = [row for load in buffer.fetch([(n,) for n in range(0, 8000, 5)]) for row in rows_in(master, slab, load)]
    assert sorted(row["row"] for row in fetched) == list(range(0, 8000, 5))
    assert len(statements) == 4
    assert "CROSS JOIN" in statements[0]


def test_several_pages_are_read_by_one_query(tmp_path: Path):
    master = opened(tmp_path, "row id")
    reader, buffer, slab = attached(master)
    statements: list[str] = []
    master.link.set_trace_callback(statements.append)
    stop = buffer.stop_of(3)
    assert stop > 5
    load = buffer.read(3, stop)
    assert len(rows_in(master, slab, load)) == (stop - 3) * 420
    assert len(statements) == 4  # about 2048 rows each
    again = buffer.read(3, stop)
    assert (again.page_at == load.page_at).all()
    assert reader.loads == 1
    assert reader.pages_read == stop - 3


def test_pages_never_exceed_what_was_announced(tmp_path: Path):
    rows = [(n, "ü" * (n % 300), bytes(n % 1000)) for n in range(2000)] + [(2000, "x" * 50_000, b"")]
    master = ss.open_master(database(tmp_path, "id INTEGER PRIMARY KEY, a TEXT, b BLOB", rows))
    reader, buffer, slab = attached(master)
    assert 50_000 < reader.largest_page_bytes < 150_000
    for number in range(reader.pages):
        load = buffer.read(number, number + 1)
        at = int(load.page_at[0])
        used = int(slab.memory.b4[(at >> 2) + 7])
        announced = int(reader._page_at[number + 1] - reader._page_at[number])
        assert used <= announced <= reader.largest_page_bytes


# ----------------------------------------------------------------------------------------------- which index is usable


UNINDEXED: dict[str, tuple[str, list[str]]] = {
    "none": ("id INTEGER, name TEXT", []),
    "another column": ("id INTEGER, name TEXT", ["CREATE INDEX k ON t (name)"]),
    "key behind another column": ("id INTEGER, name TEXT", ["CREATE INDEX k ON t (name, id)"]),
    "partial": ("id INTEGER, name TEXT", ["CREATE INDEX k ON t (id) WHERE id > 5"]),
    "of an expression": ("id INTEGER, name TEXT", ["CREATE INDEX k ON t (abs(id))"]),
    "not by bytes": ("id TEXT COLLATE NOCASE, name TEXT", ["CREATE INDEX k ON t (id)"]),
    "date as text": ("id DATE, name TEXT", ["CREATE INDEX k ON t (id)"]),
    "decimal": ("id DECIMAL(10,2), name TEXT", ["CREATE INDEX k ON t (id)"]),
}


@pytest.mark.parametrize("case", UNINDEXED)
def test_without_a_usable_index_the_table_can_only_be_scanned(tmp_path: Path, case: str):
    columns, more = UNINDEXED[case]
    values = {"DATE": "2024-01-{:02}", "DECIMAL": "{}.5", "TEXT": "k{}"}.get(
        columns.split()[1].partition("(")[0].rstrip(","), "{}"
    )
    rows = [(values.format(n % 28 + 1), f"n{n}") for n in range(1000)]
    master = ss.open_master(database(tmp_path, columns, rows, *more) + "&key=id")
    assert not master.indexed
    with pytest.raises(CapabilityError, match="no index on its key"):
        ss.Join(master, on="id", algorithm="hybridjoin")
    keys = pa.record_batch({"id": pa.concat_arrays([batch.column("id") for batch in master.batches()])})
    out = list(ss.Join(master, on="id", algorithm="meshjoin", memory="4MB")([keys.slice(0, 28)]))
    assert sum(batch.num_rows for batch in out) == 1000


def test_an_index_by_bytes_beside_a_column_that_compares_otherwise(tmp_path: Path):
    rows = [(text, n) for n, text in enumerate(["b", "B", "a", "A", "ß", "ss"] * 50)]
    more = ["CREATE INDEX loose ON t (id)", "CREATE INDEX exact ON t (id COLLATE BINARY)"]
    master = ss.open_master(database(tmp_path, "id TEXT COLLATE NOCASE, n INTEGER", rows, *more) + "&key=id")
    assert master.indexed
    join = ss.Join(master, on="id", memory="2MB")
    out = pa.Table.from_batches(join([pa.record_batch({"id": ["A", "ß", "s"]})]))
    assert Counter(out["id"].to_pylist()) == {"A": 50, "ß": 50}


def test_text_is_ordered_as_sqlite_orders_it(tmp_path: Path):
    texts = [chr(c) * (1 + c % 3) for c in (*range(1, 700), *range(0xFF00, 0xFFF0), *range(0x1F600, 0x1F680))]
    master = ss.open_master(database(tmp_path, "id TEXT PRIMARY KEY, pad TEXT", [(t, "x" * 500) for t in texts]))
    reader, buffer, slab = attached(master)
    assert reader.pages > 10
    for text in texts:
        (span,) = reader.look_up(0, [(text,)])
        assert text in [row["id"] for row in rows_in(master, slab, buffer.read(*span))]


# ----------------------------------------------------------------------------------------------------------- the join


@pytest.mark.parametrize("algorithm", ["hybridjoin", "meshjoin"])
@pytest.mark.parametrize("null_safe", [False, True])
@pytest.mark.parametrize("kind", ["integer", "text", "composite", "without row id"])
def test_a_join_finds_what_sql_finds(tmp_path: Path, kind: str, null_safe: bool, algorithm: str):
    master, key = opened(tmp_path, kind), KEYS[kind][2]
    stream = pa.table({"row": range(0, 8001, 97), "id": [HEAVY[n][0] for n in range(0, 8001, 97)]})
    stream = stream.append_column("name", pa.array([HEAVY[n][1] for n in range(0, 8001, 97)], pa.string()))
    stream = stream.select([*key]).append_column("number", pa.array(range(len(stream))))
    join = ss.Join(master, on=key, algorithm=algorithm, null_safe=null_safe, memory="4MB", columns=[])
    out = Counter(n for batch in join(stream.to_batches(max_chunksize=20)) for n in batch.column("number").to_pylist())
    have = Counter(tuple(row[i] for i in (["id", "name", "row"].index(name) for name in key)) for row in HEAVY)
    values = [tuple(row[name] for name in key) for row in stream.to_pylist()]
    assert out == Counter({n: have[v] for n, v in enumerate(values) if have[v] and (null_safe or None not in v)})


def test_readers_see_the_table_as_it_was_when_it_was_opened(tmp_path: Path):
    url = database(tmp_path, "id INTEGER PRIMARY KEY, x TEXT", [(n, "old") for n in range(1000)])
    with closing(sqlite3.connect(tmp_path / "m.db")) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        master = ss.open_master(url)
        writer.execute("UPDATE t SET x = 'new' WHERE id % 2")
        writer.execute("DELETE FROM t WHERE id < 500")
        writer.commit()
        join = ss.Join(master, on="id", memory="1MB")
        out = pa.Table.from_batches(join([pa.record_batch({"id": range(1000)})]))
        assert (out.num_rows, set(out["x"].to_pylist())) == (1000, {"old"})
        assert ss.open_master(url).rows == 500


# ------------------------------------------------------------------------------------------------ everything but joins


def test_info_verify_and_export(tmp_path: Path):
    master = opened(tmp_path, "integer")
    info = master.info()
    expected = {"layout": "sqlite", "key": ["id"], "indexed": True, "rows": 8001, "null_key_rows": 120}
    assert {name: info[name] for name in expected} == expected
    assert info["max_rows_per_key"] == max(Counter(row[0] for row in HEAVY).values())
    steps: list[tuple[int, int | None, str]] = []
    master.verify(lambda *step: steps.append(step))
    assert steps[-1] == (8001, 8001, "checking")
    master.export(tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 8001
    with pytest.raises(UsageError, match="no versions"):
        master.vacuum()


def test_an_empty_table_is_legal(tmp_path: Path):
    master = ss.open_master(database(tmp_path, "id INTEGER PRIMARY KEY, x TEXT", []))
    assert (master.rows, master.info()["pages"]) == (0, 0)
    join = ss.Join(master, on="id", how="left", memory="1MB")
    assert [batch.to_pylist() for batch in join([pa.record_batch({"id": [1]})])] == [[{"id": 1, "x": None}]]


def test_closing_ends_the_transaction(tmp_path: Path):
    url = database(tmp_path, "id INTEGER PRIMARY KEY", [(1,)])
    with ss.open_master(url), closing(sqlite3.connect(tmp_path / "m.db", timeout=0)) as writer:
        writer.execute("DELETE FROM t")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            writer.commit()
        writer.rollback()
    with closing(sqlite3.connect(tmp_path / "m.db", timeout=0)) as writer:
        writer.execute("DELETE FROM t")
        writer.commit()


def test_a_damaged_file_is_corrupt(tmp_path: Path):
    url = database(tmp_path, "id INTEGER PRIMARY KEY, x TEXT", [(n, "x" * 100) for n in range(3000)])
    master = ss.open_master(url)
    for forget in ("PRAGMA cache_size = 1", "PRAGMA shrink_memory"):
        master.link.execute(forget)
    content = bytearray((tmp_path / "m.db").read_bytes())
    content[4096 * 4 :] = b"\xaa" * (len(content) - 4096 * 4)
    (tmp_path / "m.db").write_bytes(content)
    with pytest.raises(MasterCorrupt, match=r"m\.db \(t\)"):
        master.verify()
    with pytest.raises(MasterCorrupt, match="malformed"):
        list(ss.Join(master, on="id", memory="1MB")([pa.record_batch({"id": range(3000)})]))
    with pytest.raises(MasterCorrupt, match="malformed"):
        ss.open_master(url)


def test_a_closed_master_says_so(tmp_path: Path):
    master = opened(tmp_path, "integer")
    join = ss.Join(master, on="id", memory="1MB")
    master.close()
    with pytest.raises(UsageError, match="open the master again"):
        list(join([pa.record_batch({"id": [1]})]))


def test_a_locked_file_is_busy(tmp_path: Path):
    url = database(tmp_path, "id INTEGER PRIMARY KEY", [(1,)])
    with closing(sqlite3.connect(tmp_path / "m.db")) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(MasterBusy, match="try again"):
            ss.open_master(url)
        with pytest.raises(SourceError, match="locked"):
            ss.build_master(tmp_path / "t.master", url, key="id")


def test_what_cannot_be_opened_says_why(tmp_path: Path):
    url = database(tmp_path, "id INTEGER, x TEXT", [(1, "a")], "CREATE VIEW v AS SELECT * FROM t")
    (tmp_path / "text.db").write_text("certainly not a database, though long enough to be one" * 40)
    cases: list[tuple[str, type[Exception], str]] = [
        (f"sqlite:///{tmp_path}/absent.db?table=t", MasterNotFound, "there is no file"),
        (f"sqlite:///{tmp_path}/text.db?table=t&key=id", MasterCorrupt, "not a database"),
        (url, ColumnError, "has no primary key; add &key=column"),
        (url + "&key=nope", ColumnError, "there is no column 'nope'; columns are id, x"),
        (url.replace("table=t", "table=zz") + "&key=id", SourceError, "there is no table zz; it has t, v"),
        (url.replace("table=t", "table=v") + "&key=id", UsageError, "is a view"),
        (url.replace("table=t", "query=SELECT 1"), UsageError, "build a master from the query"),
        (f"sqlite:///{tmp_path}/m.db", UsageError, "need sqlite:///file.db?table=name"),
    ]
    for text, error, reason in cases:
        with pytest.raises(error) as caught:
            ss.open_master(text)
        assert reason in str(caught.value)
    with closing(sqlite3.connect(tmp_path / "m.db", timeout=0)) as writer:
        writer.execute("DROP TABLE t")
        writer.commit()  # no failed opening holds a transaction


def test_a_key_of_another_type_than_its_column_is_refused(tmp_path: Path):
    url = database(tmp_path, "id INTEGER, x TEXT", [(1, "a"), ("one", "b")], "CREATE INDEX k ON t (id)")
    with pytest.raises(SourceError, match=r"key column id \(read as int64\) holds 'one', which does not fit"):
        ss.open_master(url + "&key=id")


def test_a_value_of_another_type_than_its_column_is_refused_when_it_is_read(tmp_path: Path):
    url = database(
        tmp_path, "id INTEGER PRIMARY KEY, x INTEGER", [(n, n if n != 9000 else "many") for n in range(10_000)]
    )
    join = ss.Join(ss.open_master(url), on="id", memory="1MB")
    assert sum(batch.num_rows for batch in join([pa.record_batch({"id": [1, 2]})])) == 2
    with pytest.raises(SourceError, match=r"column x .* holds 'many'"):
        list(join([pa.record_batch({"id": [9000]})]))
