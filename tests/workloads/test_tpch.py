"""TPC-H tables are generated once, kept whole, and re-keyed when skew is asked for."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from semistream.errors import SourceError, UsageError
from semistream.workloads import Popularity, Tpch, Zipf
from semistream.workloads.tpch import tpch_files
from tests.workloads.statistics import LIMIT, chi_square

CUSTOMERS = 3000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tpch")


def test_customers_are_numbered_and_a_third_has_no_orders(folder):
    tables = Tpch(folder, CUSTOMERS)
    assert tables.master().read_all()["c_custkey"].to_pylist() == list(range(1, CUSTOMERS + 1))
    asked = tables.stream(10 * CUSTOMERS).read_all()["o_custkey"].to_numpy()
    assert asked.min() >= 1
    assert asked.max() <= CUSTOMERS
    assert (asked % 3 != 0).all()


def test_plain_orders_have_no_skew_but_for_the_share_of_those_without_orders(folder):
    asked = Tpch(folder, CUSTOMERS).stream(10 * CUSTOMERS).read_all()["o_custkey"].to_numpy()
    expected = len(asked) / CUSTOMERS * np.array([0, 2, 1])[np.arange(1, CUSTOMERS + 1) % 3]
    counted = np.bincount(asked, minlength=CUSTOMERS + 1)[1:]
    assert chi_square(counted[expected > 0], expected[expected > 0]) < LIMIT


def test_remapped_orders_are_zipf_and_otherwise_unchanged(folder):
    popularity = Popularity(exponent=1.0)
    plain = Tpch(folder, CUSTOMERS).stream(10 * CUSTOMERS).read_all()
    remapped = Tpch(folder, CUSTOMERS, popularity).stream(10 * CUSTOMERS, seed=3).read_all()
    assert plain.drop_columns("o_custkey").equals(remapped.drop_columns("o_custkey"))
    times = np.bincount(remapped["o_custkey"].to_numpy(), minlength=CUSTOMERS + 1)
    counted = times[popularity.hottest(CUSTOMERS, CUSTOMERS)]
    expected = len(plain) * Zipf(CUSTOMERS).probability(np.arange(1, CUSTOMERS + 1))
    assert chi_square(counted, expected) < LIMIT


def test_tables_are_generated_once_and_nothing_else_is_left(folder):
    files = tpch_files(folder, CUSTOMERS)
    before = [file.stat().st_mtime_ns for file in files]
    assert tpch_files(folder, CUSTOMERS) == files
    assert [file.stat().st_mtime_ns for file in files] == before
    assert [entry.name for entry in folder.iterdir()] == [f"tpch-{CUSTOMERS}"]


@pytest.mark.parametrize("customers", [1, 7, 150, 1499])
def test_any_number_of_customers_is_exact(tmp_path, customers):
    tables = Tpch(tmp_path, customers)
    assert tables.master().read_all().num_rows == customers
    assert tables.stream(10 * customers).read_all().num_rows == 10 * customers


def test_more_orders_than_there_are_is_an_error(folder):
    with pytest.raises(UsageError, match=f"from 0 to {10 * CUSTOMERS}"):
        Tpch(folder, CUSTOMERS).stream(10 * CUSTOMERS + 1)


def test_a_damaged_folder_is_named(tmp_path):
    tables = Tpch(tmp_path, 20)
    customer, orders = tpch_files(tmp_path, 20)
    orders.write_bytes(orders.read_bytes()[:-100])
    with pytest.raises(SourceError, match=r"orders\.parquet cannot be read .*delete its folder"):
        tables.stream(10)
    customer.unlink()
    with pytest.raises(SourceError, match=r"customer\.parquet cannot be read"):
        tables.master()


def test_a_folder_with_too_few_rows_is_named(tmp_path):
    small, large = tpch_files(tmp_path, 10)[0], tpch_files(tmp_path, 20)[0]
    large.write_bytes(small.read_bytes())
    with pytest.raises(SourceError, match="has 10 rows, need 20"):
        Tpch(tmp_path, 20).master()


def run_without_the_installed_generator(folder, path):
    """From an interpreter that has no tpchgen-cli beside it, with this PATH."""
    program = """
import sys
sys.executable = "/nowhere/python"
from semistream.errors import SourceError
from semistream.workloads import Tpch
try:
    Tpch(sys.argv[1], 10).master()
except SourceError as error:
    print(error)
"""
    environment = {**os.environ, "PATH": str(path)}
    command = [sys.executable, "-c", program, str(folder)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def test_a_missing_generator_is_named_and_leaves_nothing_behind(tmp_path):
    said = run_without_the_installed_generator(tmp_path / "kept", path="")
    assert 'pip install "semistream[workloads]"' in said
    assert list((tmp_path / "kept").iterdir()) == []


def test_a_failing_generator_is_reported_and_leaves_nothing_behind(tmp_path):
    failing = tmp_path / "bin" / "tpchgen-cli"
    failing.parent.mkdir()
    failing.write_text("#!/bin/sh\necho no space left >&2\nexit 3\n")
    failing.chmod(0o755)
    said = run_without_the_installed_generator(tmp_path / "kept", path=failing.parent)
    assert "failed with code 3: no space left" in said
    assert list((tmp_path / "kept").iterdir()) == []


def test_a_folder_that_is_a_file_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SourceError, match=r"cannot keep tables in .*name another folder"):
        Tpch(tmp_path / "file", 10).master()
