"""`semistream join`: files in, files out, the same rows as the library gives, and nothing half written."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import ORDERS
from tests.reference import reference_join, same_multiset

MATCHED = 715 - 8  # orders below product 5,000, without every hundredth
JOIN = "join orders.parquet products.master"


def read(path):
    kind = {".parquet": "parquet", ".csv": "csv", ".arrow": "arrow"}[path.suffix]
    return ds.dataset(path, format=kind).to_table()


@pytest.mark.parametrize("how", ["inner", "left", "left_semi", "left_anti"])
def test_the_file_holds_the_rows_of_the_join(as_json, shop, tmp_path, how):
    target = tmp_path / "out.parquet"
    done = as_json(f"{JOIN} {target} --on product_id --how {how}")
    orders, products = pq.read_table(shop / "orders.parquet"), pq.read_table(shop / "products.parquet")
    same_multiset(read(target).to_batches(), reference_join(orders, products, on="product_id", how=how))
    assert (done["rows_in"], done["rows_out"]) == (ORDERS, read(target).num_rows)


@pytest.mark.parametrize("ending", ["parquet", "csv", "arrow"])
def test_every_kind_of_file_holds_the_same_rows(semistream, tmp_path, ending):
    target = tmp_path / f"out.{ending}"
    said = semistream(f"{JOIN} {target} --on product_id --ordered").stdout
    assert said.startswith(f"{target}: {MATCHED} rows from 1,000 in ")
    found = read(target)
    assert found.column_names == ["order", "product_id", "name", "price"]
    assert found["order"].to_pylist() == sorted(found["order"].to_pylist())


def test_columns_chooses_and_renames(semistream, tmp_path):
    semistream(f"{JOIN} {tmp_path}/out.csv --on product_id --columns price,name=product")
    assert read(tmp_path / "out.csv").column_names == ["order", "product_id", "price", "product"]


def test_rename_keeps_the_other_columns(semistream, tmp_path):
    semistream(f"{JOIN} {tmp_path}/out.csv --on product_id --rename name=product --match-column known --how left")
    assert read(tmp_path / "out.csv").column_names == ["order", "product_id", "product", "price", "known"]


def test_keys_may_have_different_names(semistream, shop, tmp_path):
    orders = pq.read_table(shop / "orders.parquet").rename_columns(["order", "item"])
    pq.write_table(orders, tmp_path / "items.parquet")
    semistream(
        "join",
        tmp_path / "items.parquet",
        shop / "products.master",
        tmp_path / "out.parquet",
        "--on",
        "item=product_id",
    )
    assert read(tmp_path / "out.parquet").num_rows == MATCHED


def test_an_existing_target_stays_unless_overwrite_is_given(semistream, tmp_path):
    target = tmp_path / "out.parquet"
    target.write_text("precious")
    assert "--overwrite" in semistream(f"{JOIN} {target} --on product_id", code=2).stderr
    assert target.read_text() == "precious"
    semistream(f"{JOIN} {target} --on product_id --overwrite")
    assert read(target).num_rows == MATCHED


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--on nothing", "nothing"),
        ("--on product_id --how sideways", "sideways"),
        ("--on product_id --memory 1KB", "memory"),
        ("--on product_id --memory none", "none"),
        ("--on product_id --algorithm wishful", "wishful"),
        ("--on product_id --columns name=order", "order"),
        ("--on product_id --columns name=", "--columns"),
        ("--on product_id --columns name --rename price=p", "--rename"),
        ("--on order=name", "name"),
    ],
)
def test_wrong_usage_is_one_line_and_leaves_no_file(semistream, tmp_path, line, words):
    done = semistream(f"{JOIN} {tmp_path}/out.parquet {line}", code=2)
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("error: ")
    assert words in done.stderr
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("target", ["out.xlsx", "out", "no/such/folder/out.parquet"])
def test_a_target_that_cannot_be_written_is_refused_before_reading(semistream, tmp_path, target):
    done = semistream(f"join gone.parquet gone.master {tmp_path}/{target} --on id", code=2)
    assert str(tmp_path / target) in done.stderr


def test_columns_that_a_kind_of_file_cannot_hold_are_refused(semistream, shop, tmp_path):
    nested = pa.table({"product_id": [1, 2], "tags": [["a"], ["b", "c"]]})
    pq.write_table(nested, tmp_path / "nested.parquet")
    done = semistream(
        "join",
        tmp_path / "nested.parquet",
        shop / "products.master",
        tmp_path / "out.csv",
        "--on",
        "product_id",
        code=2,
    )
    assert ".csv" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["nested.parquet"]


def test_a_stream_that_breaks_half_way_leaves_the_old_target_and_no_draft(semistream, shop, tmp_path):
    target = tmp_path / "out.parquet"
    target.write_text("precious")
    folder = tmp_path / "stream"
    folder.mkdir()
    pq.write_table(pq.read_table(shop / "orders.parquet"), folder / "a.parquet", row_group_size=100)
    content = bytearray((folder / "a.parquet").read_bytes())
    content[len(content) // 3 : len(content) // 2] = bytes(len(content) // 2 - len(content) // 3)
    (folder / "a.parquet").write_bytes(content)
    done = semistream("join", folder, shop / "products.master", target, "--on", "product_id", "--overwrite", code=1)
    assert done.stderr.startswith("error: ")
    assert target.read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.parquet", "stream"]
