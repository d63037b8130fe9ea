"""A small shop on disk, and a way to call the command as a user would."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from semistream.cli import main

PRODUCTS = 5_000
ORDERS = 1_000


@pytest.fixture(scope="session")
def shop(tmp_path_factory) -> Path:
    """A folder with products.parquet, orders.parquet (one order in a hundred asks for no product there is) and products.master."""
    folder = tmp_path_factory.mktemp("shop")
    numbers = range(PRODUCTS)
    products = {
        "product_id": numbers,
        "name": [f"product {n}" for n in numbers],
        "price": [n % 97 + 0.5 for n in numbers],
    }
    orders = {"order": range(ORDERS), "product_id": [n * 7 if n % 100 else -n - 1 for n in range(ORDERS)]}
    pq.write_table(pa.table(products), folder / "products.parquet")
    pq.write_table(pa.table(orders), folder / "orders.parquet")
    done = CliRunner().invoke(
        main,
        ["master", "build", str(folder / "products.master"), str(folder / "products.parquet"), "--key", "product_id"],
    )
    assert done.exit_code == 0, done.output
    return folder


@pytest.fixture
def semistream(shop, monkeypatch):
    """Run `semistream ...` in a shop of its own; a word that names a file of the shop becomes its path."""
    monkeypatch.setenv("COLUMNS", "200")
    names = {"orders.parquet", "products.parquet", "products.master"}

    def run(line: str, *more: object, code: int = 0):
        words = [str(shop / word) if word in names else word for word in line.split()]
        done = CliRunner().invoke(main, [*words, *map(str, more)])
        assert done.exit_code == code, (done.stdout, done.stderr, done.exception)
        return done

    return run


@pytest.fixture
def as_json(semistream):
    """Run a command with --json and give the one object it prints."""
    return lambda line, *more: json.loads(semistream(f"{line} --json", *more).stdout)
