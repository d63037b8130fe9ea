"""What is built is what was given: every type, every layout, in memory and out of core, with indexes that find it again."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv, feather

import semistream as ss
from semistream.budget import Slab
from semistream.errors import BudgetError, BuildFailed, ColumnError, KeyTypeError, SourceError, UsageError
from semistream.masters.build_plan import LEAST_MEMORY
from semistream.masters.duck_sort import DuckSort
from semistream.masters.page_scan import to_batch
from semistream.masters.row_sort import stable_order
from semistream.masters.word_counts import WordCounts
from tests.masters.tables import VALUES, bag, column, every_type

LAYOUTS = ("key", "heap", "frequency")
ROWS = 5000


def orders(rows: int = ROWS) -> pa.Table:
    """Keys in no order, some of them many times, some null; rows of changing size."""
    random = np.random.default_rng(7)
    keys = pa.array(random.integers(0, rows // 3, rows), mask=random.random(rows) < 0.01)
    names = ["x" * int(n) for n in random.integers(0, 90, rows)]
    return pa.table({"id": keys, "name": names, "hits": random.integers(0, 1000, rows), "row": range(rows)})


def build(path: Path, table: pa.Table, layout: str = "key", **options: Any) -> Any:
    options.setdefault("key", "id")
    return ss.build_master(
        path / "t.master", table, layout=layout, frequency="hits" if layout == "frequency" else None, **options
    )


def rows_of(master: Any, columns: list[str]) -> list[tuple[Any, ...]]:
    """Rows in the order they lie on disk."""
    return [tuple(row[name] for name in columns) for batch in master.batches() for row in batch.to_pylist()]


# ------------------------------------------------------------------------------------------------------------ content


@pytest.mark.parametrize("layout", ["key", "heap"])
def test_every_column_type_comes_back(tmp_path: Path, layout: str):
    table = every_type()
    master = build(tmp_path, table, layout)
    assert master.schema.equals(table.schema)
    assert bag(master.batches()) == bag(table)


@pytest.mark.parametrize(
    "kind",
    [
        name
        for name in VALUES
        if name
        not in ("interval", "null", "list", "large_list", "list_view", "fixed_size_list", "struct", "map", "nested")
    ],
)
def test_every_key_type_comes_back(tmp_path: Path, kind: str):
    arrow, values = VALUES[kind]
    table = pa.table({"id": column(arrow, values, 10), "row": range(10)})
    assert bag(build(tmp_path, table).batches()) == bag(table)


def test_a_union_is_refused_by_name(tmp_path: Path):
    union = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])
    with pytest.raises(ColumnError, match="'u'"):
        build(tmp_path, pa.table({"id": [1], "u": union}))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv"])
def test_export_writes_what_others_read(tmp_path: Path, ending: str):
    table = orders()
    build(tmp_path, table).export(tmp_path / f"out.{ending}")
    read = {"parquet": pq.read_table, "arrow": feather.read_table, "csv": read_csv}[ending]
    assert bag(read(tmp_path / f"out.{ending}")) == bag(table)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"out.{ending}", "t.master"]


def read_csv(path: Path) -> pa.Table:
    return csv.read_csv(path, convert_options=csv.ConvertOptions(strings_can_be_null=False))


def test_every_type_survives_an_arrow_file(tmp_path: Path):
    table = every_type()
    build(tmp_path, table).export(tmp_path / "out.arrow")
    assert bag(pa.ipc.open_file(tmp_path / "out.arrow").read_all()) == bag(table)


def test_export_refuses_what_the_format_cannot_hold_and_leaves_no_file(tmp_path: Path):
    master = build(tmp_path, every_type())
    for name, reason in {"out.csv": "cannot hold the master's columns", "out.xlsx": "need a file that ends in"}.items():
        with pytest.raises(UsageError, match=reason):
            master.export(tmp_path / name)
    with pytest.raises(ss.MasterError, match="cannot be written"):
        master.export(tmp_path / "absent" / "out.arrow")
    assert [path.name for path in tmp_path.iterdir()] == ["t.master"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_empty_master_is_legal(tmp_path: Path, layout: str):
    master = build(tmp_path, orders().slice(0, 0), layout)
    master.verify()
    assert (master.rows, master.manifest.pages) == (0, 0)
    assert list(master.batches()) == []
    master.export(tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 0


def test_rows_wider_than_a_page_get_pages_of_their_own(tmp_path: Path):
    table = pa.table({"id": range(50), "text": ["x" * (100_000 if i == 25 else 10) for i in range(50)]})
    master = build(tmp_path, table, page_bytes=4096)
    assert master.manifest.details["largest_page_bytes"] > 100_000
    assert bag(master.batches()) == bag(table)


def test_pages_of_wide_rows_are_larger(tmp_path: Path):
    narrow = build(tmp_path, pa.table({"id": range(100)}))
    wide = build(tmp_path, pa.table({"id": range(100), "text": ["x" * 3000] * 100}))
    assert narrow.manifest.page_bytes == 8192
    assert wide.manifest.page_bytes > 16 * 3000


def test_columns_that_are_never_null_may_not_be(tmp_path: Path):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    bad = pa.RecordBatch.from_arrays([pa.array([1, None])], schema=schema)
    with pytest.raises(SourceError, match="id is declared never to be null, and 1 values are"):
        ss.build_master(tmp_path / "t.master", [bad], key="id")
    assert not (tmp_path / "t.master").exists()


# ------------------------------------------------------------------------------------------------------------- order


def test_layout_key_puts_equal_keys_together_in_their_order(tmp_path: Path):
    table = orders()
    found = rows_of(build(tmp_path, table), ["id", "row"])
    wanted = sorted(rows_of_table(table, ["id", "row"]), key=lambda row: (row[0] is None, row))
    assert sorted(found, key=lambda row: (row[0] is None, row)) == wanted
    groups = [key for at, (key, _) in enumerate(found) if at == 0 or found[at - 1][0] != key]
    assert len(groups) == len(set(groups))
    assert all(a[1] < b[1] for a, b in pairwise(found) if a[0] == b[0])


def rows_of_table(table: pa.Table, columns: list[str]) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in columns) for row in table.to_pylist()]


def test_layout_heap_keeps_the_source_s_order(tmp_path: Path):
    table = orders()
    assert rows_of(build(tmp_path, table, "heap"), ["row"]) == rows_of_table(table, ["row"])


def test_layout_frequency_puts_the_hottest_first(tmp_path: Path):
    hits = [row[0] for row in rows_of(build(tmp_path, orders(), "frequency"), ["hits"])]
    assert hits == sorted(hits, reverse=True)


COUNTS = {3: 10, 1: 7}
SAMPLE = pa.table({"id": [3] * 10 + [1] * 7, "other": [0] * 17})
FREQUENCIES: dict[str, Any] = {
    "dict": COUNTS,
    "counts": pa.table({"id": list(COUNTS), "count": list(COUNTS.values())}),
    "narrower keys": pa.table({"id": pa.array(list(COUNTS), pa.int16()), "count": list(COUNTS.values())}),
    "sample": SAMPLE,
    "sample batches": SAMPLE.to_batches(max_chunksize=4),
}


@pytest.mark.parametrize("form", FREQUENCIES)
def test_the_frequency_may_come_from_elsewhere(tmp_path: Path, form: str):
    table = pa.table({"id": [1, 2, 3, 4, None]})
    master = ss.build_master(tmp_path / "t.master", table, key="id", layout="frequency", frequency=FREQUENCIES[form])
    assert [row[0] for row in rows_of(master, ["id"])][:2] == [3, 1]


def test_the_frequency_may_come_from_a_file_and_for_several_key_columns(tmp_path: Path):
    table = pa.table({"a": [1, 1, 2], "b": ["x", "y", "x"]})
    pq.write_table(pa.table({"a": [1, 2, 2], "b": ["y", "x", "x"]}), tmp_path / "sample.parquet")
    for frequency in (str(tmp_path / "sample.parquet"), {(2, "x"): 2, (1, "y"): 1}):
        master = ss.build_master(tmp_path / "t.master", table, key=["a", "b"], layout="frequency", frequency=frequency)
        assert rows_of(master, ["a", "b"]) == [(2, "x"), (1, "y"), (1, "x")]


# ----------------------------------------------------------------------------------------------------------- indexes


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("key", ["id", "name", ["id", "name"]])
def test_the_index_finds_every_row_of_every_word(tmp_path: Path, layout: str, key: Any):
    table = orders(1500)
    master = build(tmp_path, table, layout, key=key, page_bytes=4096)
    names = [key] if isinstance(key, str) else key
    words = master.keys.words([table.combine_chunks().column(name).chunk(0) for name in names]).words
    by_word: dict[int, set[int]] = {}
    for word, row in zip(words.tolist(), table["row"].to_pylist(), strict=True):
        by_word.setdefault(word, set()).add(row)
    reader = master.reader()
    slab = Slab(4 << 20)
    reader.attach(slab)
    buffer = reader.buffer(slab, "disk buffer", 1 << 20)
    for word, rows in list(by_word.items())[::7]:
        found: set[int] = set()
        for first, stop in reader.look_up(word, []):
            load = buffer.read(first, stop)
            batch = to_batch(slab.memory, load.page_at, master.keys, master.codec, master.schema)
            found.update(batch.column("row").to_pylist())
        assert rows <= found
    assert reader.look_up(max(by_word) + 1, []) == [] or layout == "key"
    reader.close()


def test_info_counts_what_was_built(tmp_path: Path):
    table = pa.table({"id": [1, 2, 2, 2, None, None], "x": ["a"] * 6})
    info = build(tmp_path, table, watermark="2024-02-29").info()
    expected = {
        "version": "v-1",
        "layout": "key",
        "key": ["id"],
        "rows": 6,
        "distinct_keys": 3,
        "max_rows_per_key": 3,
        "null_key_rows": 2,
        "pages": 1,
        "watermark": "2024-02-29",
        "columns": {"id": "int64", "x": "string"},
    }
    assert {name: info[name] for name in expected} == expected
    assert info["bytes"] >= 8192


@pytest.mark.parametrize("chunk", [1, 2, 3, 100])
def test_words_are_counted_across_chunks(chunk: int):
    words = np.array([1, 1, 2, 3, 3, 3, 3, 5, 5], np.int64)
    counts = WordCounts()
    for start in range(0, words.size, chunk):
        counts.add(words[start : start + chunk])
    assert (counts.distinct, counts.longest) == (4, 4)


def test_the_stable_order_is_numpy_s():
    for top in (3, 1000, 2**40):
        words = np.random.default_rng(top).integers(-top, top, 5000)
        assert (stable_order(words) == np.argsort(words, kind="stable")).all()


# ------------------------------------------------------------------------------------------------------- out of core


def big_batches(rows: int, step: int = 65_536) -> Any:
    """Rows of about 120 bytes, never all in memory."""
    for first in range(0, rows, step):
        ids = np.arange(first, min(first + step, rows))
        text = pa.array(ids).cast(pa.string())
        yield pa.record_batch(
            {"id": (ids * 7919) % (rows // 2), "text": text, **{f"c{i}": ids * (i + 1) for i in range(11)}}
        )


def test_a_master_larger_than_the_sort_memory_is_the_same_master(tmp_path: Path):
    rows = 600_000
    sums = {}
    for name, memory in {"small": LEAST_MEMORY, "large": "1GB"}.items():
        master = ss.build_master(tmp_path / f"{name}.master", big_batches(rows), key="id", memory=memory)
        assert (master.rows, master.manifest.max_multiplicity) == (rows, 2)
        sums[name] = master.manifest.files
        assert {path.name for path in master.version.iterdir()} == {"manifest.json", "pages.bin", "index.bin"}
    assert sums["small"] == sums["large"]


def test_frequency_order_and_its_index_out_of_core_are_the_same(tmp_path: Path):
    rows = 400_000
    found = []
    for memory in (LEAST_MEMORY, "1GB"):
        options = {"layout": "frequency", "frequency": "c3", "memory": memory}
        found.append(
            ss.build_master(tmp_path / f"{len(found)}.master", big_batches(rows), key="id", **options).manifest.files
        )
    assert found[0] == found[1]


BOUNDED = """
import resource, sys
import semistream as ss
from tests.masters.test_build import big_batches
ss.build_master(sys.argv[1] + "/warm.master", big_batches(1000), key="id")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
ss.build_master(sys.argv[1] + "/t.master", big_batches(int(sys.argv[2])), key="id", memory=int(sys.argv[3]))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10)
"""


def test_the_sort_keeps_to_its_memory(tmp_path: Path):
    rows, memory = 1_600_000, LEAST_MEMORY
    command = [sys.executable, "-c", BOUNDED, str(tmp_path), str(rows), str(memory)]
    grown = int(
        subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[2]).stdout
    )
    written = sum(path.stat().st_size for path in tmp_path.rglob("pages.bin"))
    assert written > 1.7 * memory
    assert grown < memory + (120 << 20)  # DuckDB's own bookkeeping, Arrow batches and pages on their way


# ---------------------------------------------------------------------------------------------------------- bad input


WRONG: dict[str, tuple[type[Exception], str, dict[str, Any]]] = {
    "missing key": (ColumnError, "there is no column 'nope'; it has id, name, hits, row", {"key": "nope"}),
    "no key": (ColumnError, "there is no column", {"key": []}),
    "key twice": (ColumnError, "names a column twice", {"key": ["id", "id"]}),
    "layout": (UsageError, "need one of key, heap, frequency", {"layout": "hash"}),
    "frequency without layout": (UsageError, "layout='frequency' and only then", {"frequency": "hits"}),
    "layout without frequency": (UsageError, "layout='frequency' and only then", {"layout": "frequency"}),
    "unknown frequency": (ColumnError, "neither a column", {"layout": "frequency", "frequency": "heat"}),
    "frequency of text": (ColumnError, "need a column of numbers", {"layout": "frequency", "frequency": "name"}),
    "frequency without key": (
        ColumnError,
        "'id' is missing",
        {"layout": "frequency", "frequency": pa.table({"x": [1]})},
    ),
    "frequency of other type": (KeyTypeError, "id", {"layout": "frequency", "frequency": pa.table({"id": ["a"]})}),
    "frequency dict": (UsageError, "tuple of 2", {"key": ["id", "row"], "layout": "frequency", "frequency": {1: 2}}),
    "page_bytes": (UsageError, "multiple of 4096", {"page_bytes": 5000}),
    "tiny memory": (BudgetError, "at least 100663296 bytes", {"memory": "1MB"}),
    "absurd memory": (UsageError, "memory='lots'", {"memory": "lots"}),
    "negative memory": (UsageError, "memory=-1", {"memory": -1}),
}


@pytest.mark.parametrize("case", WRONG)
def test_bad_input_is_one_clear_error_and_leaves_nothing(tmp_path: Path, case: str):
    error, text, options = WRONG[case]
    with pytest.raises(error) as caught:
        ss.build_master(tmp_path / "t.master", orders(20), **{"key": "id", **options})
    assert text in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_other_bad_input(tmp_path: Path):
    with pytest.raises(UsageError, match="give a path"):
        ss.build_master("s3://bucket/t.master", orders(5), key="id")
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(ColumnError, match="more than one column 'a'"):
        ss.build_master(tmp_path / "t.master", twice, key="a")
    with pytest.raises(KeyTypeError, match="'id' has type list"):
        ss.build_master(tmp_path / "t.master", pa.table({"id": [[1]]}), key="id")
    with pytest.raises(UsageError, match="'buffered'"):
        ss.open_master(tmp_path, io="fast")
    assert not list(tmp_path.iterdir())


def test_key_counts_that_do_not_fit_are_refused(tmp_path: Path):
    keys = pa.table({"id": np.arange(500_000)})
    with pytest.raises(BudgetError, match="different keys do not fit"):
        ss.build_master(tmp_path / "t.master", keys, key="id", layout="frequency", frequency=keys, memory=LEAST_MEMORY)


def test_a_source_that_breaks_leaves_the_old_version(tmp_path: Path):
    build(tmp_path, orders())

    def broken() -> Any:
        yield orders(10).to_batches()[0]
        raise OSError("cable")

    with pytest.raises(SourceError, match="after 10 rows: cable"):
        ss.build_master(tmp_path / "t.master", broken(), key="id")
    assert sorted(path.name for path in (tmp_path / "t.master").iterdir() if path.name != "_pins") == [
        "CURRENT",
        "lock",
        "v-1",
    ]
    assert ss.open_master(tmp_path / "t.master").rows == ROWS


# ------------------------------------------------------------------------------------------------- versions, progress


def test_an_open_master_keeps_its_version(tmp_path: Path):
    old = build(tmp_path, orders(100))
    new = build(tmp_path, orders(200))
    assert (old.info()["version"], new.info()["version"]) == ("v-1", "v-2")
    assert new.vacuum(older_than=timedelta(0)).removed == []
    assert sum(batch.num_rows for batch in old.batches()) == 100
    reader = old.reader()
    old.close()
    assert new.vacuum(older_than="0s").removed == []
    reader.close()
    assert new.vacuum(older_than=0).removed == ["v-1"]
    with pytest.raises(ss.UsageError, match="is closed"):
        old.reader()


def test_a_forgotten_master_lets_go(tmp_path: Path):
    build(tmp_path, orders(100))
    new = build(tmp_path, orders(200))
    assert new.vacuum(older_than=0).removed == ["v-1"]


def test_progress_goes_up_to_the_end(tmp_path: Path):
    seen: list[tuple[int, int | None, str]] = []
    for layout in LAYOUTS:
        seen.clear()
        master = build(tmp_path, orders(), layout, progress=lambda *step: seen.append(step))
        assert (ROWS, ROWS, "reading") in seen
        assert seen[-1] == (ROWS, ROWS, "writing")
    seen.clear()
    master.verify(lambda *step: seen.append(step))
    assert seen[-1][0] == seen[-1][1] == master.info()["bytes"]
    assert [done for done, _, _ in seen] == sorted(done for done, _, _ in seen)


def test_a_failed_sort_names_duckdb_s_reason(tmp_path: Path):
    (tmp_path / "blocked").write_text("a file where DuckDB wants its folder")
    sort = DuckSort(tmp_path / "blocked", LEAST_MEMORY)
    with pytest.raises(BuildFailed, match="free disk space there or give more memory"):
        add_all(sort, big_batches(2_000_000))
    sort.close()


def add_all(sort: DuckSort, batches: Any) -> None:
    for batch in batches:
        sort.add(pa.Table.from_batches([batch]))
