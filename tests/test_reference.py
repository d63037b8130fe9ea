"""The oracle itself: by hand on small cases, and against DuckDB on many."""

from __future__ import annotations

import decimal

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference import dictionary_loop, difference, double_loop, plain_rows, reference_join, same_multiset

NAN = float("nan")
ORDERS = pa.table({"order": [1, 2, 3, 4], "product": ["a", "b", "a", None]})
PRODUCTS = pa.table({"product": ["a", "a", "c", None], "price": [10, 11, 12, 13], "vendor": ["x", None, "z", "w"]})


def rows(expected):
    return sorted(expected.rows.elements(), key=repr)


def test_inner_gives_one_row_for_every_pair_of_equal_keys():
    assert rows(reference_join(ORDERS, PRODUCTS, "product")) == [
        (1, "a", 10, "x"), (1, "a", 11, None), (3, "a", 10, "x"), (3, "a", 11, None),
    ]  # fmt: skip


def test_left_keeps_stream_rows_without_a_match():
    left = reference_join(ORDERS, PRODUCTS, "product", how="left", match_column="found")
    assert (2, "b", None, None, False) in left.rows
    assert (4, None, None, None, False) in left.rows
    assert left.rows.total() == 6
    assert left.schema.names == ["order", "product", "price", "vendor", "found"]


def test_semi_and_anti_share_the_stream_between_them():
    assert rows(reference_join(ORDERS, PRODUCTS, "product", how="left_semi")) == [(1, "a"), (3, "a")]
    assert rows(reference_join(ORDERS, PRODUCTS, "product", how="leftanti")) == [(2, "b"), (4, None)]


def test_null_keys_match_only_when_asked_to():
    assert (4, None, 13, "w") in reference_join(ORDERS, PRODUCTS, "product", null_safe=True).rows


def test_a_composite_key_with_one_null_part_does_not_match():
    stream = pa.table({"a": [1, 1], "b": [2, None]})
    master = pa.table({"a": [1, 1], "b": [2, None], "v": [5, 6]})
    assert rows(reference_join(stream, master, ["a", "b"])) == [(1, 2, 5)]
    assert reference_join(stream, master, ["a", "b"], null_safe=True).rows.total() == 2


def test_where_hides_master_rows_before_the_join():
    left = reference_join(ORDERS, PRODUCTS, "product", how="left", where=lambda row: row["price"] == 11)
    assert (1, "a", 11, None) in left.rows
    assert left.rows.total() == 4


def test_columns_choose_rename_and_order():
    chosen = reference_join(ORDERS, PRODUCTS, {"product": "product"}, columns=["vendor", ("price", "cost")])
    assert chosen.schema.names == ["order", "product", "vendor", "cost"]
    assert (1, "a", "x", 10) in chosen.rows
    renamed = reference_join(ORDERS, PRODUCTS, "product", columns={"price": "cost"})
    assert renamed.schema.names == ["order", "product", "cost", "vendor"]


def test_float_keys_follow_sparks_rules_and_payload_keeps_its_sign():
    stream = pa.table({"k": [NAN, -0.0, 1.5]})
    master = pa.table({"k": [NAN, 0.0, 2.5], "v": [-0.0, 0.0, NAN]})
    assert reference_join(stream, master, "k").rows == {("NaN", "-0.0"): 1, ("-0.0", 0.0): 1}


def test_keys_of_other_widths_and_units_compare_by_value():
    stream = pa.table({"k": pa.array([2, -1], pa.int8())})
    assert reference_join(stream, pa.table({"k": pa.array([2, 2**63], pa.uint64())}), "k").rows.total() == 1
    seconds, milliseconds = pa.array([7], pa.timestamp("s")), pa.array([7000], pa.timestamp("ms"))
    assert reference_join(pa.table({"k": seconds}), pa.table({"k": milliseconds}), "k").rows.total() == 1
    short, long = decimal.Decimal("1.5"), decimal.Decimal("1.500")
    assert reference_join(pa.table({"k": [short]}), pa.table({"k": [long]}), "k").rows.total() == 1


def test_nested_values_and_extreme_times_are_comparable():
    table = pa.table(
        {
            "list": pa.array([[1, None], None], pa.list_(pa.int8())),
            "struct": pa.array([{"a": NAN, "b": "x"}, None], pa.struct({"a": pa.float32(), "b": pa.string()})),
            "map": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
            "time": pa.array([2**62, -(2**62)], pa.timestamp("us", "Europe/Berlin")),
            "coded": pa.array(["x", None]).dictionary_encode(),
        }
    )
    assert plain_rows(table) == [((1, None), ("NaN", "x"), (("k", 1),), 2**62, "x"), (None, None, None, -(2**62), None)]


def test_the_difference_names_what_is_missing_and_what_is_not_wanted():
    expected = reference_join(ORDERS, PRODUCTS, "product", how="left_semi")
    wrong = pa.RecordBatch.from_pydict({"order": [1, 9], "product": ["a", "q"]})
    assert difference([wrong], expected).splitlines() == [
        "2 rows came, 2 were wanted; columns ['order', 'product']",
        "1 missing:", "  1 x (3, 'a')", "1 not wanted:", "  1 x (9, 'q')",
    ]  # fmt: skip
    with pytest.raises(AssertionError, match="columns differ"):
        same_multiset([wrong.rename_columns(["order", "name"])], expected)
    same_multiset(ORDERS.slice(0, 1).to_batches() + ORDERS.slice(2, 1).to_batches(), expected)


SMALL_KEYS = {
    "int64": (pa.int64(), st.integers(-2, 2)),
    "string": (pa.string(), st.sampled_from(["", "a", "a\0b", "b"])),
    "double": (pa.float64(), st.sampled_from([0.0, -0.0, NAN, 1.0])),
}


def keyed(draw, kind, values, extra):
    keys = draw(st.lists(st.tuples(st.none() | values, st.none() | values), max_size=12))
    columns = {"a": pa.array([a for a, _ in keys], kind), "b": pa.array([b for _, b in keys], kind)}
    return pa.table(columns | {extra: pa.array(range(len(keys)), pa.int32())})


@pytest.mark.parametrize("kind", SMALL_KEYS)
@given(data=st.data(), how=st.sampled_from(["inner", "left", "semi", "anti"]), null_safe=st.booleans())
def test_agrees_with_duckdb(kind, data, how, null_safe):
    stream = keyed(data.draw, *SMALL_KEYS[kind], "s")
    master = keyed(data.draw, *SMALL_KEYS[kind], "m")
    equal = "IS NOT DISTINCT FROM" if null_safe else "="
    columns = "stream.*" + (", m" if how in ("inner", "left") else "")
    with duckdb.connect() as database:
        database.register("stream", stream)
        database.register("master", master)
        answer = database.sql(
            f"SELECT {columns} FROM stream {how} JOIN master ON stream.a {equal} master.a AND stream.b {equal} master.b"
        ).to_arrow_table()
    same_multiset(answer.to_batches(), reference_join(stream, master, ["a", "b"], how=how, null_safe=null_safe))


@given(
    st.lists(st.tuples(st.none() | st.integers(0, 3))),
    st.lists(st.tuples(st.none() | st.integers(0, 3))),
    st.booleans(),
)
def test_the_dictionary_loop_is_the_double_loop(stream_keys, master_keys, null_safe):
    assert dictionary_loop(stream_keys, master_keys, null_safe) == double_loop(stream_keys, master_keys, null_safe)
