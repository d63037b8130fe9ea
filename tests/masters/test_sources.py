"""Every kind of source gives the same rows in bounded batches, and says clearly why it cannot be read."""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyarrow import csv, feather

from semistream.errors import SourceError, UsageError
from semistream.masters.sources import BATCH_BYTES, BATCH_ROWS, open_source

ROWS = BATCH_ROWS + 100
TABLE = pa.table({"id": range(ROWS), "name": [f"n{i % 7}" for i in range(ROWS)], "price": [i / 4 for i in range(ROWS)]})
HALVES = (TABLE.slice(0, 40_000), TABLE.slice(40_000))


def _parquet_folder(tmp_path: Path) -> str:
    for number, half in enumerate(HALVES):
        pq.write_table(half, tmp_path / f"part-{number}.parquet", row_group_size=10_000)
    (tmp_path / "_SUCCESS").touch()
    return str(tmp_path)


def _written(write: Callable[[str], object], path: Path) -> str:
    write(str(path))
    return str(path)


def _stream_file(path: str) -> None:
    with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, TABLE.schema) as out:
        out.write_table(TABLE)


def _gzipped(path: str) -> None:
    with gzip.open(path, "wb", compresslevel=1) as file:
        csv.write_csv(TABLE, file)


def _sqlite(tmp_path: Path) -> str:
    with sqlite3.connect(tmp_path / "s.db") as link:
        link.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, price REAL)")
        link.executemany("INSERT INTO t VALUES (?, ?, ?)", zip(*TABLE.to_pydict().values(), strict=True))
    return f"sqlite:///{tmp_path}/s.db"


SOURCES: dict[str, Callable[[Path], Any]] = {
    "table": lambda _: TABLE,
    "record batch": lambda _: TABLE.combine_chunks().to_batches()[0],
    "reader": lambda _: TABLE.to_reader(),
    "iterator of batches": lambda _: iter(TABLE.to_batches(max_chunksize=999)),
    "list of tables": lambda _: list(HALVES),
    "dataset": lambda tmp: ds.dataset(_parquet_folder(tmp)),
    "dataset scanner": lambda tmp: ds.dataset(_parquet_folder(tmp)).scanner(),
    "parquet folder": _parquet_folder,
    "parquet path object": lambda tmp: Path(_written(lambda path: pq.write_table(TABLE, path), tmp / "t.parquet")),
    "parquet without an ending": lambda tmp: _written(lambda path: pq.write_table(TABLE, path), tmp / "t"),
    "parquet uri": lambda tmp: "file://" + _written(lambda path: pq.write_table(TABLE, path), tmp / "t.parquet"),
    "csv": lambda tmp: _written(lambda path: csv.write_csv(TABLE, path), tmp / "t.csv"),
    "csv.gz": lambda tmp: _written(_gzipped, tmp / "t.csv.gz"),
    "tsv": lambda tmp: _written(lambda p: csv.write_csv(TABLE, p, csv.WriteOptions(delimiter="\t")), tmp / "t.tsv"),
    "arrow file": lambda tmp: _written(lambda path: feather.write_feather(TABLE, path), tmp / "t.arrow"),
    "arrow stream": lambda tmp: _written(_stream_file, tmp / "t.arrows"),
    "pandas": lambda _: TABLE.to_pandas(),
    "polars": lambda _: pl.from_arrow(TABLE),
    "polars lazy": lambda _: pl.from_arrow(TABLE).lazy(),
    "duckdb relation": lambda _: duckdb.from_arrow(TABLE),
    "sqlite table": lambda tmp: _sqlite(tmp) + "?table=t",
    "sqlite query": lambda tmp: _sqlite(tmp) + "?query=SELECT id, name, price FROM t ORDER BY id",
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_all_rows_in_order(kind: str, tmp_path: Path):
    source = open_source(SOURCES[kind](tmp_path))
    batches = list(source.batches())
    assert max(batch.num_rows for batch in batches) <= BATCH_ROWS
    assert pa.Table.from_batches(batches, source.schema).cast(TABLE.schema).equals(TABLE)
    assert source.rows in (None, ROWS)


def test_wide_rows_come_in_smaller_batches():
    wide = pa.table({"blob": [b"x" * 100_000] * 1000})
    sizes = [batch.num_rows for batch in open_source(wide).batches()]
    assert sum(sizes) == 1000
    assert max(sizes) * 100_000 <= BATCH_BYTES


def test_an_empty_table_is_a_source_and_keeps_its_columns():
    source = open_source(TABLE.schema.empty_table())
    assert source.schema.names == TABLE.column_names
    assert sum(batch.num_rows for batch in source.batches()) == 0


def test_folder_names_become_columns(tmp_path: Path):
    for day, half in zip((1, 2), HALVES, strict=True):
        (tmp_path / f"day={day}").mkdir()
        pq.write_table(half.slice(0, 3), tmp_path / f"day={day}" / "x.parquet")
    rows = pa.Table.from_batches(open_source(tmp_path).batches())
    assert rows["day"].to_pylist() == [1, 1, 1, 2, 2, 2]


def test_files_of_a_folder_may_lack_columns_and_be_narrower(tmp_path: Path):
    pq.write_table(pa.table({"id": pa.array([1], pa.int32())}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": pa.array([2], pa.int64()), "x": ["new"]}), tmp_path / "b.parquet")
    rows = pa.Table.from_batches(open_source(tmp_path).batches())
    assert rows.to_pydict() == {"id": [1, 2], "x": [None, "new"]}
    assert rows.schema.field("id").type == pa.int64()


def test_categories_and_views_keep_their_type():
    frame = pl.DataFrame({"c": pl.Series(["a", "b", None], dtype=pl.Categorical)})
    batch = next(iter(open_source(frame).batches()))
    assert batch.column("c").to_pylist() == ["a", "b", None]


def _message(source: Any) -> str:
    with pytest.raises(SourceError) as caught:
        for _ in open_source(source).batches():
            pass
    return str(caught.value)


def _broken_iterator() -> Iterator[pa.RecordBatch]:
    yield TABLE.to_batches()[0].slice(0, 5)
    raise RuntimeError("upstream went away")


def test_unreadable_sources_say_what_and_why(tmp_path: Path):
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 this is not parquet")
    (tmp_path / "cut.arrow").write_bytes(b"ARROW1 neither is this")
    (tmp_path / "words.txt").write_text("hello")
    (tmp_path / "empty").mkdir()
    assert "there is no such file" in _message(tmp_path / "absent.parquet")
    assert "cut.parquet" in _message(tmp_path / "cut.parquet")
    assert "cut.arrow" in _message(tmp_path / "cut.arrow")
    assert "need files of one kind" in _message(tmp_path / "words.txt")
    assert "need files of one kind" in _message(tmp_path)
    assert "folder without data files" in _message(tmp_path / "empty")
    assert "not a source of rows" in _message(42)
    assert "not a source of rows" in _message({"id": [1]})
    assert "gave no batch" in _message([])
    assert "every item must be" in _message([{"id": 1}])
    assert "'x'" in _message(pd.DataFrame({"id": [1, "x"]}))


def test_a_source_that_breaks_half_way_says_how_far_it_came():
    assert "stopped reading after 5 rows: RuntimeError: upstream went away" in _message(_broken_iterator())


def test_a_csv_that_changes_its_mind_is_an_error(tmp_path: Path):
    lines = ["id"] + [str(i) for i in range(300_000)] + ["many"]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    assert "many" in _message(tmp_path / "t.csv")


def test_batches_must_agree():
    first, other = pa.record_batch({"id": [1]}), pa.record_batch({"id": ["1"]})
    assert "string in one batch and int64 in the first" in _message([first, other])
    assert "has columns ['key']" in _message([first, pa.record_batch({"key": [1]})])


@pytest.mark.parametrize("marker", ["_delta_log/0.json", "metadata/v1.metadata.json", ".hoodie/hoodie.properties"])
def test_table_formats_are_not_read_as_plain_parquet(tmp_path: Path, marker: str):
    (tmp_path / marker).parent.mkdir()
    (tmp_path / marker).touch()
    pq.write_table(TABLE.slice(0, 3), tmp_path / "part.parquet")
    assert "open it with a" in _message(tmp_path)


@pytest.mark.parametrize("rest", ["", "?table=t&query=SELECT 1", "?table=t&colour=red"])
def test_a_wrong_sqlite_url_is_a_usage_error(tmp_path: Path, rest: str):
    with pytest.raises(UsageError, match=r"sqlite:///file\.db"):
        open_source(f"sqlite:///{tmp_path}/s.db{rest}")


def test_unreadable_sqlite_says_what_and_why(tmp_path: Path):
    url = _sqlite(tmp_path)
    (tmp_path / "text.db").write_text("this is no database, but it is long enough to look like one" * 50)
    assert "there is no file" in _message(f"sqlite:///{tmp_path}/absent.db?table=t")
    assert "there is no table product; it has t" in _message(url + "?table=product")
    assert "no such column: nope" in _message(url + "?query=SELECT nope FROM t")
    assert "not a database" in _message(f"sqlite:///{tmp_path}/text.db?table=t")
