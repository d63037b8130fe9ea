"""The demo in a small size: it proves itself right, and its proof can fail."""

from __future__ import annotations

import io
import json
import shutil

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from semistream.demo import run_demo
from semistream.demo.arriving import Inbox, shop
from semistream.demo.proof import compare
from semistream.demo.screen import Screen
from semistream.demo.streaming import run_stream
from semistream.errors import UsageError
from semistream.workloads.retail import PIECES

ROWS = 20_000


@pytest.fixture(scope="module")
def ran(spark, tmp_path_factory):
    console = Console(file=io.StringIO(), width=200)
    folder = tmp_path_factory.mktemp("demo") / "new"
    return run_demo(folder, rows=ROWS, products=5_000, seed=3, spark=spark, console=console), console.file.getvalue()


def test_the_warehouse_is_what_the_raw_files_say(ran):
    result, printed = ran
    assert result.verified
    assert result.exit_code == 0
    assert f"demo: VERIFIED {result.rows} rows" in printed
    assert {table.table: table.rows > 0 for table in result.tables} == {"sales": True, "unmatched": True}


def test_the_stream_has_bursts_orders_sent_twice_and_unknown_products(ran):
    result, _ = ran
    files = sorted((result.folder / "inbox").glob("*.parquet"))
    orders = pa.concat_tables([pq.read_table(file) for file in files])
    assert orders.num_rows == ROWS
    assert len(pc.unique(orders["order_id"])) == result.rows < ROWS
    sizes = [pq.read_metadata(file).num_rows for file in files]
    assert max(sizes) > 2 * sum(sizes) / len(sizes)
    asked = pc.value_counts(orders["product_id"]).field("counts")
    assert pc.max(asked).as_py() > 50 * pc.mean(asked).as_py()


def test_counters_come_back_from_the_tasks(ran):
    result, printed = ran
    join = result.stream.join
    assert join["tuples_in"] == join["matched"] + join["unmatched"] == result.rows
    assert join["memory_bytes"] == 32 << 20
    for part in join["bytes_by_part"]:
        assert part in printed
    assert json.loads(json.dumps(result.to_dict()))["verified"] is True


@pytest.mark.parametrize("damage", ["lost", "doubled", "changed"])
def test_the_proof_fails_when_one_row_is_wrong(ran, tmp_path, damage):
    folder = ran[0].folder
    good = pq.read_table(folder / "warehouse" / "sales", partitioning=None)
    last = good.slice(good.num_rows - 1)
    if damage == "changed":
        pieces = good.schema.get_field_index("pieces")
        last = last.set_column(
            pieces, good.schema.field(pieces), pc.add(last["pieces"], 1).cast(good.schema.field(pieces).type)
        )
    rest = good.slice(0, good.num_rows - 1)
    wrong = {"lost": [rest], "doubled": [good, last], "changed": [rest, last]}[damage]
    for table in ("sales", "unmatched"):
        (tmp_path / table / "batch_id=0").mkdir(parents=True)
    pq.write_table(pa.concat_tables(wrong), tmp_path / "sales" / "batch_id=0" / "0.parquet")
    others = pq.read_table(folder / "warehouse" / "unmatched", partitioning=None)
    pq.write_table(others, tmp_path / "unmatched" / "batch_id=0" / "0.parquet")
    sales, unmatched = compare(folder / "inbox", folder / "products.parquet", tmp_path, PIECES, tmp_path / "scratch")
    assert unmatched.equal
    assert (sales.missing, sales.surplus) == {"lost": (1, 0), "doubled": (0, 1), "changed": (1, 1)}[damage]


def test_a_stream_that_fails_ends_the_demo_with_its_error(spark, ran, tmp_path):
    shutil.copytree(ran[0].folder / "products.master", tmp_path / "products.master")
    (tmp_path / "warehouse").write_text("a file where a folder should be")
    orders = 2_000_000  # would take fifty seconds to arrive
    inbox = Inbox(tmp_path / "inbox", shop(orders, 5_000), orders, seed=3)
    with pytest.raises(Exception, match="warehouse"):
        run_stream(spark, tmp_path, inbox, "32MB", Screen(Console(file=io.StringIO()), live=False))
    assert inbox.sent < orders


def test_the_same_seed_gives_the_same_orders():
    first, second = (shop(500, 100).stream(500, seed=9).read_all() for _ in range(2))
    assert first.equals(second)


def test_a_folder_with_something_in_it_is_refused_and_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="empty"):
        run_demo(tmp_path, rows=10)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("sizes", [{"rows": 0}, {"products": 0}])
def test_a_demo_of_nothing_is_refused(tmp_path, sizes):
    with pytest.raises(UsageError, match="at least one"):
        run_demo(tmp_path / "new", **sizes)
    assert not (tmp_path / "new").exists()
