"""The contract every entry of `WORKLOADS` is held to; a new entry is tested by being in the list."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from semistream.errors import UsageError
from semistream.workloads import WORKLOADS, find
from semistream.workloads.blocks import BLOCK_ROWS

MASTER_ROWS = 12_000
STREAM_ROWS = BLOCK_ROWS + 3000
SEEDLESS = {"tpch"}  # its tables are the same for everyone

pytestmark = pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    folder = tmp_path_factory.mktemp("generated")

    def make_tables(workload, **options):
        own = {"folder": folder} if "folder" in workload.options else {}
        return workload.make(**{"master_rows": MASTER_ROWS, **own, **options})

    return make_tables


def as_bytes(reader):
    """Everything a table is, buffers included, but not where its batches were cut."""
    table = reader.read_all().combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(workload, make):
    first, again, other = (make(workload).stream(5000, seed=seed) for seed in (1, 1, 2))
    first = as_bytes(first)
    assert first == as_bytes(again)
    assert (first == as_bytes(other)) == (workload.name in SEEDLESS)
    assert as_bytes(make(workload).master(seed=1)) == as_bytes(make(workload).master(seed=1))


def test_batches_may_be_cut_anywhere(workload, make):
    tables = make(workload)
    whole = {"stream": as_bytes(tables.stream(STREAM_ROWS, seed=3)), "master": as_bytes(tables.master(seed=3))}
    for batch_rows in (997, BLOCK_ROWS - 1, BLOCK_ROWS, 10 * BLOCK_ROWS):
        assert as_bytes(tables.stream(STREAM_ROWS, batch_rows, seed=3)) == whole["stream"]
        assert as_bytes(tables.master(seed=3, batch_rows=batch_rows)) == whole["master"]


def test_more_rows_begin_with_the_fewer(workload, make):
    tables = make(workload)
    assert tables.stream(3000, seed=3).read_all().equals(tables.stream(STREAM_ROWS, seed=3).read_all().slice(0, 3000))
    assert tables.master(3000, seed=3).read_all().equals(tables.master(seed=3).read_all().slice(0, 3000))


@pytest.mark.parametrize("rows", [0, 1, 4999, 10_000, BLOCK_ROWS, BLOCK_ROWS + 1])
def test_row_counts_are_exact_and_batches_bounded(workload, make, rows):
    batches = list(make(workload).stream(rows, batch_rows=5000))
    assert sum(batch.num_rows for batch in batches) == rows
    assert all(batch.num_rows == 5000 for batch in batches[:-1])
    assert all(0 < batch.num_rows <= 5000 for batch in batches)


@pytest.mark.parametrize("rows", [None, 0, 1, 5000, MASTER_ROWS])
def test_the_master_has_the_rows_asked_for(workload, make, rows):
    batches = list(make(workload).master(rows, batch_rows=600))
    assert sum(batch.num_rows for batch in batches) == (MASTER_ROWS if rows is None else rows)
    assert all(0 < batch.num_rows <= 600 for batch in batches)


def test_a_master_may_have_one_row(workload, make):
    tables = make(workload, master_rows=1)
    assert tables.master().read_all().num_rows == 1
    assert tables.stream(10).read_all().num_rows == 10


def test_every_batch_has_the_schema_promised_and_holds_valid_values(workload, make):
    tables = make(workload)
    for reader, schema in (
        (tables.stream(STREAM_ROWS, 9999), tables.stream_schema),
        (tables.master(), tables.master_schema),
    ):
        assert reader.schema.equals(schema, check_metadata=True)
        for batch in reader:
            assert batch.schema.equals(schema, check_metadata=True)
            batch.validate(full=True)
            assert [name for name in schema.names if not schema.field(name).nullable and batch[name].null_count] == []


def test_stream_and_master_share_no_column_but_a_key_of_the_same_type(workload, make):
    tables = make(workload)
    for stream_column, master_column in tables.on.items():
        assert tables.stream_schema.field(stream_column).type == tables.master_schema.field(master_column).type
    keys = set(tables.on.values())
    assert set(tables.stream_schema.names) & (set(tables.master_schema.names) - keys) == set()


def test_the_stream_asks_for_rows_of_the_master(workload, make):
    tables = make(workload)
    ((stream_column, master_column),) = tables.on.items()
    asked = tables.stream(20_000).read_all()[stream_column].to_numpy()
    known = tables.master().read_all()[master_column].to_numpy()
    assert np.isin(asked, known).mean() > 0.5


def test_wrong_settings_are_named(workload, make):
    tables = make(workload)
    for fault, named in [
        (lambda: tables.stream(-1), "rows.*=-1"),
        (lambda: tables.stream(10, batch_rows=0), "batch_rows=0"),
        (lambda: tables.stream(10.0), "rows.*=10.0"),
        (lambda: tables.master(MASTER_ROWS + 1), f"rows of the master={MASTER_ROWS + 1}"),
        (lambda: make(workload, colour="red"), "no option colour"),
    ]:
        with pytest.raises(UsageError, match=named):
            fault()


def test_it_can_be_found_by_name_and_says_what_it_is(workload):
    assert find(workload.name) is workload
    assert len(workload.description) > 20
    with pytest.raises(UsageError, match="there are fixed, "):
        find(workload.name + "?")


def test_it_needs_neither_numba_nor_spark(workload):
    program = f"""
import sys
from semistream.workloads import find
assert find({workload.name!r}).options
print(*({{"numba", "duckdb", "pandas", "polars", "pyspark"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
