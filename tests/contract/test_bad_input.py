"""Bad input: one clear error each, which says where, what was needed, what came, and what to do."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import semistream as ss
from semistream.errors import BudgetError, ColumnError, KeyTypeError, UsageError
from tests.contract.harness import ALGORITHMS, in_smallest, opened_master, run, smallest_bytes
from tests.reference import reference_join, same_multiset

PRODUCTS = pa.table(
    {"product_id": pa.array(range(500), pa.int64()), "name": [f"product {n}" for n in range(500)], "price": [1.5] * 500}
)
ORDERS = pa.table({"order_id": pa.array(range(40), pa.int64()), "product_id": pa.array(range(0, 800, 20), pa.int64())})


@pytest.fixture(scope="module")
def products():
    with opened_master("key", PRODUCTS, ["product_id"]) as master:
        yield master


def joined(master, stream=ORDERS, on="product_id", **options):
    return list(ss.Join(master, on=on, **options)(iter(stream.to_batches())))


def message(error, *words):
    text = str(error.value)
    missing = [word for word in words if word not in text]
    assert not missing, f"{missing} not in: {text}"
    assert "\n" not in text


# ------------------------------------------------------------------------------------------------------- key columns


def test_a_key_column_missing_from_the_stream_is_named(products):
    with pytest.raises(ColumnError) as error:
        joined(products, ORDERS.rename_columns(["order_id", "article"]))
    message(error, "product_id", "stream", "order_id", "article")


def test_a_key_column_missing_from_the_master_is_named(products):
    with pytest.raises(ColumnError) as error:
        ss.Join(products, on={"product_id": "sku"})
    message(error, "sku", "product_id")


@pytest.mark.parametrize("on", ["name", ["product_id", "name"], {"product_id": "price"}])
def test_a_column_that_is_not_the_masters_key_is_refused(products, on):
    with pytest.raises(UsageError) as error:
        ss.Join(products, on=on)
    message(error, "product_id", "key")


@pytest.mark.parametrize("on", [[], {}, "", 7, None, ["product_id", "product_id"]])
def test_an_on_that_names_no_key_is_refused(products, on):
    with pytest.raises(UsageError) as error:
        ss.Join(products, on=on)
    message(error, "on=")


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.float64(),
        pa.bool_(),
        pa.date32(),
        pa.timestamp("us"),
        pa.uint64(),
        pa.binary(),
        pa.list_(pa.int64()),
    ],
    ids=str,
)
def test_key_types_that_cannot_be_compared_without_loss_are_both_named(products, kind):
    stream = pa.table({"order_id": pa.array([], pa.int64()), "product_id": pa.array([], kind)})
    with pytest.raises(KeyTypeError) as error:
        ss.Join(products, on="product_id").output_schema(stream.schema)
    message(error, str(kind), "int64", "product_id", "cast")


def test_a_key_of_a_nested_type_cannot_be_built(tmp_path):
    table = pa.table({"key": pa.array([[1]], pa.list_(pa.int64())), "v": [1]})
    with pytest.raises(KeyTypeError) as error:
        ss.build_master(tmp_path / "master", table, key="key")
    message(error, "key", "list")


# ---------------------------------------------------------------------------------------------------- output columns


def test_clashing_columns_name_both_sides_and_say_how_to_rename(products):
    stream = ORDERS.append_column("name", pa.array(["x"] * 40))
    with pytest.raises(ColumnError) as error:
        joined(products, stream)
    message(error, "'name'", "stream", "master", "columns={", "name")


def test_the_way_out_of_a_clash_works(products):
    stream = ORDERS.append_column("name", pa.array(["x"] * 40))
    batches = joined(products, stream, columns={"name": "product_name"})
    same_multiset(batches, reference_join(stream, PRODUCTS, "product_id", columns={"name": "product_name"}))


def test_a_match_column_that_exists_already_is_refused(products):
    for name in ("order_id", "price"):
        with pytest.raises(ColumnError) as error:
            joined(products, match_column=name)
        message(error, name, "match_column")


@pytest.mark.parametrize("columns", [["vendor"], {"vendor": "v"}, [("vendor", "v")]])
def test_a_master_column_that_does_not_exist_is_named_with_those_that_do(products, columns):
    with pytest.raises(ColumnError) as error:
        ss.Join(products, on="product_id", columns=columns)
    message(error, "vendor", "price")


@pytest.mark.parametrize("columns", [["name", "name"], {"name": "price"}, [("name", "x"), ("price", "x")]])
def test_two_output_columns_of_one_name_are_refused(products, columns):
    with pytest.raises(ColumnError):
        joined(products, columns=columns)


def test_a_filter_on_a_column_that_does_not_exist_is_refused(products):
    with pytest.raises(ColumnError) as error:
        ss.Join(products, on="product_id", where=pc.field("vendor") == "x")
    message(error, "vendor")


@pytest.mark.parametrize("where", ["price > 3", 7, lambda row: True])
def test_a_filter_that_is_no_expression_is_refused(products, where):
    with pytest.raises(UsageError) as error:
        ss.Join(products, on="product_id", where=where)
    message(error, "where", "pyarrow")


# -------------------------------------------------------------------------------------------------------- the budget


@pytest.mark.parametrize("memory", [-1, 0, "0MB", "-5MB", "lots", "", True, None, 1.5, 1 << 60, "900PB"])
def test_an_absurd_budget_is_refused(products, memory):
    with pytest.raises(UsageError) as error:
        ss.Join(products, on="product_id", memory=memory)
    message(error, "memory")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("ordered", [False, True])
def test_a_budget_too_small_says_the_smallest_that_works_and_that_one_works(products, algorithm, ordered):
    options = {"on": "product_id", "algorithm": algorithm, "ordered": ordered}
    with pytest.raises(BudgetError) as error:
        ss.Join(products, memory=4096, **options).output_schema(ORDERS.schema)
    smallest = error.value.smallest_bytes
    message(error, str(error.value.part), str(smallest))
    assert error.value.needed_bytes > 0
    outcome = run(ss.Join(products, memory=smallest, **options), ORDERS.schema, ORDERS.to_batches(max_chunksize=7))
    same_multiset(outcome.batches, reference_join(ORDERS, PRODUCTS, "product_id"))
    with pytest.raises(BudgetError) as error:
        ss.Join(products, memory=smallest - 1, **options).output_schema(ORDERS.schema)
    assert error.value.smallest_bytes == smallest


def test_a_master_row_wider_than_the_budget_is_refused():
    table = pa.table({"key": [1, 2], "text": ["x" * 300_000, "y"]})
    stream = pa.table({"key": [1, 2, 3]})
    with opened_master("key", table, ["key"]) as master:
        with pytest.raises(BudgetError) as error:
            joined(master, stream, on="key", memory=100_000)
        smallest = error.value.smallest_bytes
        assert smallest > 300_000
        same_multiset(joined(master, stream, on="key", memory=smallest), reference_join(stream, table, "key"))


@pytest.mark.parametrize("ordered", [False, True])
def test_a_stream_row_wider_than_the_budget_is_refused(products, ordered):
    options = {"on": "product_id", "ordered": ordered, "algorithm": "hybridjoin"}  # adaptive answers it without waiting
    stream = ORDERS.append_column("note", pa.array(["x"] * 39 + ["y" * 300_000]))
    batches = stream.to_batches(max_chunksize=39)
    small = smallest_bytes(products, batches[0], **options)
    assert small < 250_000
    with pytest.raises(BudgetError) as error:
        list(ss.Join(products, memory=small, **options)(iter(batches)))
    message(error, "row", "memory", "300")
    answer, enough = in_smallest(small, lambda memory: joined(products, stream, memory=memory, **options))
    assert enough > 300_000
    same_multiset(answer, reference_join(stream, PRODUCTS, "product_id"))


# ------------------------------------------------------------------------------------------------------ other options


def test_an_unknown_algorithm_is_refused_with_a_list_of_those_there_are(products):
    with pytest.raises(UsageError) as error:
        ss.Join(products, on="product_id", algorithm="hashjoin")
    message(error, "hashjoin", *ALGORITHMS)


@pytest.mark.parametrize("how", ["outer", "right", "", None, "INNER JOIN"])
def test_an_unknown_join_type_is_refused_with_a_list_of_those_there_are(products, how):
    with pytest.raises(UsageError) as error:
        ss.Join(products, on="product_id", how=how)
    message(error, "how", "inner", "left_anti")


@pytest.mark.parametrize("max_wait", [-1, "soon", "-3s", "", True, 1.5, dt.timedelta(seconds=-1)])
def test_a_bound_on_waiting_that_makes_no_sense_is_refused(products, max_wait):
    with pytest.raises(UsageError) as error:
        ss.Join(products, on="product_id", max_wait=max_wait)
    message(error, "max_wait")


@pytest.mark.parametrize(
    "item", [ORDERS, "row", 7, {"product_id": 1}, ORDERS["product_id"]], ids=lambda item: type(item).__name__
)
def test_a_stream_item_that_is_no_batch_is_refused(products, item):
    with pytest.raises(UsageError) as error:
        list(ss.Join(products, on="product_id")(iter([item])))
    message(error, "RecordBatch", type(item).__name__)


def test_a_stream_that_is_no_iterable_of_batches_is_refused(products):
    with pytest.raises(UsageError) as error:
        list(ss.Join(products, on="product_id")(7))
    message(error, "RecordBatch")


def test_a_batch_with_another_schema_than_the_first_is_refused(products):
    other = ORDERS.cast(pa.schema([("order_id", pa.int32()), ("product_id", pa.int64())]))
    with pytest.raises(ColumnError) as error:
        list(ss.Join(products, on="product_id")(iter([*ORDERS.to_batches(), *other.to_batches()])))
    message(error, "order_id", "int32", "int64")


def test_two_stream_columns_of_one_name_are_refused(products):
    twice = pa.RecordBatch.from_arrays([ORDERS["product_id"].chunk(0)] * 2, ["product_id", "product_id"])
    with pytest.raises(ColumnError) as error:
        list(ss.Join(products, on="product_id")(iter([twice])))
    message(error, "product_id")


def test_a_master_that_is_none_is_refused():
    with pytest.raises(UsageError) as error:
        ss.Join("products.master", on="product_id")  # a path, not an opened master
    message(error, "open_master")


def test_an_error_of_the_source_comes_through_unchanged(products):
    def broken():
        yield from ORDERS.to_batches()
        raise OSError("the network is gone")

    with pytest.raises(OSError, match="the network is gone"):
        list(ss.Join(products, on="product_id")(broken()))
