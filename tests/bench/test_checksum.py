"""Equal answers have equal checksums, whoever gives them and in whatever order; any difference changes them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream.bench.checksum import Checksum, checksum
from semistream.workloads import find

EVERYTHING = pa.record_batch(
    {
        "int64": pa.array([1, -1, None, 2**63 - 1], pa.int64()),
        "int16": pa.array([5, -5, None, 0], pa.int16()),
        "uint64": pa.array([5, 2**64 - 1, None, 0], pa.uint64()),
        "double": pa.array([0.5, float("nan"), None, -0.0], pa.float64()),
        "float": pa.array([0.5, float("inf"), None, 0.0], pa.float32()),
        "text": pa.array(["", "a", None, "a longer text than fits into a view"], pa.string()),
        "bytes": pa.array([b"", b"\0", None, b"\0\0"], pa.binary()),
        "flag": pa.array([True, False, None, True], pa.bool_()),
        "day": pa.array([dt.date(1970, 1, 1), dt.date(1900, 1, 1), None, dt.date(2100, 1, 1)], pa.date32()),
        "moment": pa.array([0, -1, None, 10**15], pa.timestamp("us", "UTC")),
        "price": pa.array([Decimal("1.20"), Decimal("-1.20"), None, Decimal("99999999.99")], pa.decimal128(10, 2)),
    }
)


def of(table):
    return checksum(table.to_batches(), EVERYTHING.schema)


@pytest.fixture
def everything():
    return pa.Table.from_batches([EVERYTHING])


def test_the_order_of_rows_and_columns_does_not_matter(everything):
    turned = everything.take([3, 1, 0, 2]).select(everything.schema.names[::-1])
    assert of(turned) == of(everything)


def test_the_cutting_into_batches_does_not_matter(everything):
    assert checksum([everything.slice(i, 1).to_batches()[0] for i in range(4)], everything.schema) == of(everything)


def test_slices_count_only_their_own_rows(everything):
    rows = [of(everything.slice(i, 1)) for i in range(4)]
    assert len(set(rows)) == 4
    assert rows[0] + rows[1] + rows[2] + rows[3] == of(everything)


def test_duckdb_and_polars_return_what_they_were_given(everything):
    with duckdb.connect() as connection:
        connection.execute("SET produce_arrow_string_view = true; SET arrow_output_version = '1.4'")
        assert of(connection.sql("FROM everything").to_arrow_table()) == of(everything)
    assert of(pl.from_arrow(everything).to_arrow(compat_level=pl.CompatLevel.newest())) == of(everything)
    assert of(pl.from_arrow(everything).to_arrow(compat_level=pl.CompatLevel.oldest())) == of(everything)


@pytest.mark.parametrize("column", EVERYTHING.schema.names)
@pytest.mark.parametrize("row", range(4))
def test_any_other_value_in_one_cell_changes_it(everything, column, row):
    at = everything.schema.get_field_index(column)
    other = everything.column(at).take([(row + 1) % 4 if place == row else place for place in range(4)])
    if other == everything.column(at):  # -0.0 and 0.0 are one value
        return
    assert of(everything.set_column(at, everything.field(at), other)) != of(everything)


def test_values_exchanged_between_two_rows_change_it(everything):
    other = everything.column("text").take([1, 0, 2, 3])
    assert of(everything.set_column(everything.schema.get_field_index("text"), "text", other)) != of(everything)


def test_values_exchanged_between_two_columns_change_it():
    one = pa.record_batch({"a": [1, 2], "b": [2, 1], "c": [5, 5]})
    other = pa.record_batch({"a": [2, 1], "b": [2, 1], "c": [5, 5]})
    assert checksum([one], one.schema) != checksum([other], one.schema)


def test_a_lost_or_doubled_row_changes_it(everything):
    assert len({of(everything), of(everything.take([0, 1, 2])), of(everything.take([0, 1, 2, 3, 3]))}) == 3


def test_a_missing_or_additional_column_is_an_error(everything):
    with pytest.raises(ValueError, match="answer has columns"):
        of(everything.drop_columns(["flag"]))
    with pytest.raises(ValueError, match="answer has columns"):
        of(everything.append_column("more", pa.array([1, 2, 3, 4])))


def test_empty_tables_have_the_checksum_of_nothing():
    assert checksum([], EVERYTHING.schema) == checksum([EVERYTHING.slice(0, 0)], EVERYTHING.schema) == Checksum(0, 0)


@given(st.lists(st.tuples(st.integers(-3, 3), st.sampled_from(["", "a", "b", None])), max_size=8), st.randoms())
def test_equal_multisets_and_no_others_have_equal_checksums(rows, random):
    schema = pa.schema([("k", pa.int64()), ("v", pa.string())])

    def total(some):
        return checksum([pa.record_batch([[k for k, _ in some], [v for _, v in some]], schema=schema)], schema)

    turned = random.sample(rows, len(rows))
    assert total(rows) == total(turned)
    if rows:
        changed = [(rows[0][0] + 1, rows[0][1]), *rows[1:]]
        assert total(changed) != total(rows)


def test_rows_beyond_one_chunk_are_all_counted():
    tables = find("retail").make(master_rows=150_000)
    rows = tables.master(seed=1).read_all()
    order = np.random.Generator(np.random.PCG64(1)).permutation(len(rows))
    assert checksum(rows.to_batches(), rows.schema) == checksum(rows.take(order).to_batches(), rows.schema)
    assert checksum(rows.to_batches(), rows.schema).rows == 150_000
    assert checksum(rows.slice(1).to_batches(), rows.schema) != checksum(
        rows.slice(0, 149_999).to_batches(), rows.schema
    )
