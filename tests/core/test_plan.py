"""What a join is asked to do, checked before data moves."""

from __future__ import annotations

import datetime as dt
import re
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from semistream import plan
from semistream.errors import ColumnError, KeyTypeError, UsageError
from semistream.keys import KeyCodec
from semistream.plan import Wait

FIELDS = [pa.field("id", pa.int64()), pa.field("name", pa.string(), nullable=False), pa.field("price", pa.float64())]
STREAM = pa.schema([pa.field("id", pa.int32(), nullable=False), pa.field("amount", pa.int64())])


def master_of(keys=("id",), fields=FIELDS, name="products"):
    """What a plan must know of a master."""
    schema = pa.schema(fields)
    return SimpleNamespace(name=name, schema=schema, keys=KeyCodec([schema.field(key) for key in keys]))


def planned(how="inner", columns=None, match_column=None, stream=STREAM, on="id", master=None):
    """The output of a join over the master above."""
    master = master or master_of()
    keys = plan.parse_on(on, master)
    return plan.plan_output(stream, keys, master, how, plan.parse_columns(columns, master), match_column)


# ------------------------------------------------------------------------------------------------------ join type, wait


@pytest.mark.parametrize(
    ("names", "how"),
    [
        (("inner", "INNER"), "inner"),
        (("left", "leftouter", "left_outer", "LeftOuter"), "left"),
        (("semi", "leftsemi", "left_semi"), "left_semi"),
        (("anti", "leftanti", "left_anti"), "left_anti"),
    ],
)
def test_sparks_names_of_join_types_are_known(names, how):
    assert {plan.parse_how(name) for name in names} == {how}


@pytest.mark.parametrize("how", ["right", "right_outer", "outer", "full", "FULL_OUTER"])
def test_joins_that_keep_master_rows_are_refused_with_the_reason(how):
    with pytest.raises(UsageError, match="not supported: it would need every master row that no stream tuple"):
        plan.parse_how(how)


@pytest.mark.parametrize("how", ["cross", "", None, 1])
def test_other_joins_are_refused_with_the_choice(how):
    with pytest.raises(UsageError, match="is not supported; use inner, left, left_semi or left_anti"):
        plan.parse_how(how)


@pytest.mark.parametrize(
    ("value", "wait"),
    [
        (None, Wait()),
        (0, Wait(tuples=0)),
        (1000, Wait(tuples=1000)),
        ("500ms", Wait(seconds=0.5)),
        (dt.timedelta(seconds=2), Wait(seconds=2.0)),
    ],
)
def test_a_wait_counts_tuples_or_seconds(value, wait):
    assert plan.parse_wait(value) == wait


@pytest.mark.parametrize("value", [-1, 1.5, True, "soon", "5", dt.timedelta(-1), []])
def test_a_wait_of_no_sense_is_refused(value):
    with pytest.raises(UsageError, match="max_wait="):
        plan.parse_wait(value)


# --------------------------------------------------------------------------------------------------------------- keys


def test_stream_keys_come_in_the_masters_order():
    master = master_of(("name", "id"))
    assert plan.parse_on(["id", "name"], master) == ["name", "id"]
    assert plan.parse_on({"a": "id", "b": "name"}, master) == ["b", "a"]
    assert plan.parse_on("id", master_of()) == ["id"]
    assert plan.parse_on({"a": "id"}, master_of()) == ["a"]


@pytest.mark.parametrize(
    ("on", "example"),
    [
        ("price", '{"price": "id"}'),
        (["a"], '{"a": "id"}'),
        (["id", "name"], '{"stream_id": "id"}'),
        ({"id": "name"}, '{"id": "id"}'),
        ({"id": "id", "name": "name"}, '{"stream_id": "id"}'),
    ],
)
def test_other_columns_than_the_key_are_refused_with_an_example(on, example):
    message = f"on={on!r} does not name the key of master products, which is 'id'; write on={example} if"
    with pytest.raises(ColumnError, match=re.escape(message)):
        plan.parse_on(on, master_of())


@pytest.mark.parametrize("on", [None, 5, [], ["id", "id"], [5], b"id"])
def test_what_names_no_columns_is_refused(on):
    with pytest.raises(UsageError, match="need a column name, a list of different names, or"):
        plan.parse_on(on, master_of())


# ------------------------------------------------------------------------------------------------------------ columns


@pytest.mark.parametrize(
    ("chosen", "pairs"),
    [
        (None, [("name", "name"), ("price", "price")]),
        (["price", "name"], [("price", "price"), ("name", "name")]),
        (("price",), [("price", "price")]),
        ([], []),
        ([("name", "title"), "price"], [("name", "title"), ("price", "price")]),
        ({"name": "title"}, [("name", "title"), ("price", "price")]),
        ({}, [("name", "name"), ("price", "price")]),
        ([("name", "a"), ("name", "b")], [("name", "a"), ("name", "b")]),
    ],
)
def test_master_columns_are_all_or_some_and_under_other_names(chosen, pairs):
    assert plan.parse_columns(chosen, master_of()) == pairs


def test_a_key_between_other_columns_is_left_out():
    assert plan.parse_columns(None, master_of(("name",))) == [("id", "id"), ("price", "price")]


@pytest.mark.parametrize("chosen", ["name", 5, {"name"}])
def test_what_is_no_list_and_no_dict_is_refused(chosen):
    with pytest.raises(UsageError, match="need a list of master columns, or a dict"):
        plan.parse_columns(chosen, master_of())


@pytest.mark.parametrize("chosen", [[5], [("name",)], [("name", 5)], [["name", "title"]], {"name": 5}, {5: "name"}])
def test_what_is_no_column_is_refused(chosen):
    with pytest.raises(UsageError, match="columns"):
        plan.parse_columns(chosen, master_of())


@pytest.mark.parametrize("chosen", [["id"], {"id": "x"}, [("id", "x")]])
def test_the_key_is_not_added_again(chosen):
    with pytest.raises(ColumnError, match="columns: 'id' is the key of master products"):
        plan.parse_columns(chosen, master_of())


@pytest.mark.parametrize("chosen", [["colour"], {"colour": "x"}, [("colour", "x")]])
def test_a_column_that_the_master_lacks_is_told_with_those_it_has(chosen):
    with pytest.raises(ColumnError, match="master products has no column 'colour'; it has name, price"):
        plan.parse_columns(chosen, master_of())


# ------------------------------------------------------------------------------------------------------------- filter


@pytest.mark.parametrize(
    ("where", "names"),
    [
        (None, []),
        (pc.field("price") > 1, ["price"]),
        ((pc.field("price") > 1) & pc.field("id").is_null(), ["id", "price"]),
        (pc.scalar(value=True), []),
    ],
)
def test_a_filter_says_which_columns_it_reads(where, names):
    assert plan.check_where(where, master_of()) == names


@pytest.mark.parametrize("name", ['we"ird', "it's", "a.b", "line\nbreak", "ü", "back\\slash", "", " "])
def test_a_filter_may_read_a_column_of_any_name(name):
    master = master_of(fields=[*FIELDS, pa.field(name, pa.int64())])
    assert name in plan.check_where(pc.field(name) > 0, master)


@pytest.mark.parametrize("where", ["price > 1", lambda row: True, 5])
def test_what_is_no_expression_is_refused(where):
    with pytest.raises(
        UsageError, match=r'need a pyarrow expression over master columns, such as pc.field\("active"\)'
    ):
        plan.check_where(where, master_of())


def test_a_filter_over_counted_columns_is_refused():
    with pytest.raises(UsageError, match="name columns instead of counting them"):
        plan.check_where(pc.field(2) > 1, master_of())


@pytest.mark.parametrize(
    "where",
    [pc.field("colour") == "red", pc.field("price") + 1, pc.field("name") > 1, pc.field("price").is_valid() > 1],
)
def test_a_filter_that_cannot_be_applied_is_refused(where):
    with pytest.raises(ColumnError, match="cannot be applied to master products, which has id, name, price: "):
        plan.check_where(where, master_of())


# ------------------------------------------------------------------------------------------------------------- output


@pytest.mark.parametrize(
    ("how", "names", "nullable"),
    [
        ("inner", ["id", "amount", "name", "price"], [False, True, False, True]),
        ("left", ["id", "amount", "name", "price"], [False, True, True, True]),
        ("left_semi", ["id", "amount"], [False, True]),
        ("left_anti", ["id", "amount"], [False, True]),
    ],
)
def test_the_stream_comes_first_and_only_a_left_join_makes_nulls(how, names, nullable):
    output = planned(how)
    assert output.schema.names == names
    assert [field.nullable for field in output.schema] == nullable
    assert output.schema.field("id").type == pa.int32(), "the stream's own key type"
    flagged = planned(how, match_column="found").schema
    assert flagged.names == [*names, "found"]
    assert flagged.field("found").equals(pa.field("found", pa.bool_(), nullable=False))


def test_metadata_of_fields_is_kept():
    fields = [FIELDS[0], pa.field("price", pa.float64(), metadata={"unit": "EUR"})]
    stream = pa.schema([pa.field("id", pa.int64(), metadata={"a": "b"})])
    schema = planned(stream=stream, master=master_of(fields=fields), columns={"price": "cost"}).schema
    assert schema.field("id").metadata == {b"a": b"b"}
    assert schema.field("cost").metadata == {b"unit": b"EUR"}


def test_a_clash_of_names_tells_both_sides_and_the_cure():
    stream = pa.schema([("id", pa.int64()), ("name", pa.string())])
    message = (
        "output column 'name' would come twice: from stream column 'name' and from column 'name' of master products; "
        'use columns={"name": "name_products"} to rename the master\'s'
    )
    with pytest.raises(ColumnError, match=re.escape(message)):
        planned(stream=stream)
    with pytest.raises(ColumnError, match=re.escape('columns={"name": "name_products"}')):
        planned(stream=stream, master=master_of(name="/data/products.master"))
    assert planned("left_semi", stream=stream).schema.names == ["id", "name"]
    assert planned(stream=stream, columns=["price"]).schema.names == ["id", "name", "price"]
    with pytest.raises(ColumnError, match="from column 'name' of master products and from column 'price'"):
        planned(columns={"name": "x", "price": "x"})
    with pytest.raises(ColumnError, match="'amount' would come twice: from stream column 'amount' and"):
        planned(columns={"price": "amount"})


@pytest.mark.parametrize("name", ["id", "price"])
def test_the_match_column_needs_a_name_of_its_own(name):
    with pytest.raises(ColumnError, match=f"match_column='{name}' is the name of .*choose another"):
        planned(match_column=name)


def test_a_stream_that_does_not_fit_the_plan_is_refused():
    with pytest.raises(ColumnError, match="the stream has no key column 'id'; it has a, b"):
        planned(stream=pa.schema([("a", pa.int64()), ("b", pa.int64())]))
    with pytest.raises(ColumnError, match=r"the stream has \['a'\] more than once"):
        planned(stream=pa.schema([("id", pa.int64()), ("a", pa.int64()), ("a", pa.int8())]))
    with pytest.raises(KeyTypeError, match="stream column 'id' has type string"):
        planned(stream=pa.schema([("id", pa.string())]))
