"""`semistream master ...`: every subcommand does its work, speaks to machines, and fails in one line."""

from __future__ import annotations

import sqlite3

import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import PRODUCTS


def test_build_says_how_many_rows_it_took(semistream, tmp_path):
    done = semistream("master build", tmp_path / "new.master", "products.parquet", "--key", "product_id", code=1)
    assert "products.parquet: there is no such file" in done.stderr  # relative to here, not to the shop


def test_build_again_makes_a_new_version(as_json, shop, tmp_path):
    words = [tmp_path / "p.master", shop / "products.parquet", "--key", "product_id"]
    first = as_json("master build", *words)
    second = as_json("master build", *words, "--layout", "heap")
    assert (first["rows"], first["layout"]) == (PRODUCTS, "key")
    assert (second["rows"], second["layout"]) == (PRODUCTS, "heap")
    assert first["version"] != second["version"]


def test_build_from_a_database_with_two_key_columns(as_json, tmp_path):
    with sqlite3.connect(tmp_path / "shop.db") as db:
        db.execute("create table stock (shop integer, product text, pieces integer)")
        db.executemany("insert into stock values (?, ?, ?)", [(n % 3, f"p{n}", n) for n in range(300)])
    db.close()
    found = as_json(
        "master build", tmp_path / "s.master", f"sqlite:///{tmp_path}/shop.db?table=stock", "--key", "shop,product"
    )
    assert found["rows"] == 300
    assert found["key"] == ["shop", "product"]


def test_info_is_the_same_for_people_and_machines(semistream, as_json):
    machine = as_json("master info products.master")
    people = semistream("master info products.master").stdout
    assert machine["rows"] == PRODUCTS
    assert [line.split()[0] for line in people.splitlines()] == list(machine)


def test_verify_accepts_what_was_written(semistream, as_json):
    assert "every checksum" in semistream("master verify products.master").stdout
    assert as_json("master verify products.master")["ok"] is True


def test_verify_finds_a_flipped_byte(semistream, shop, tmp_path):
    semistream("master build", tmp_path / "p.master", shop / "products.parquet", "--key", "product_id")
    largest = max(
        (path for path in (tmp_path / "p.master").rglob("*") if path.is_file()), key=lambda path: path.stat().st_size
    )
    content = bytearray(largest.read_bytes())
    content[len(content) // 2] ^= 1
    largest.chmod(0o600)
    largest.write_bytes(content)
    done = semistream("master verify", tmp_path / "p.master", code=1)
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("ending", ["parquet", "csv", "arrow"])
def test_export_gives_the_rows_back(semistream, as_json, shop, tmp_path, ending):
    assert as_json("master export products.master", tmp_path / f"out.{ending}")["rows"] == PRODUCTS
    semistream("master build", tmp_path / "again.master", tmp_path / f"out.{ending}", "--key", "product_id")
    semistream("master export", tmp_path / "again.master", tmp_path / "again.parquet")
    original, again = (
        pq.read_table(path).sort_by("product_id") for path in (shop / "products.parquet", tmp_path / "again.parquet")
    )
    assert again.select(original.column_names).equals(original)


def test_vacuum_removes_old_versions_and_says_why_others_stay(as_json, semistream, shop, tmp_path):
    for _ in range(3):
        semistream("master build", tmp_path / "p.master", shop / "products.parquet", "--key", "product_id")
    young = as_json("master vacuum", tmp_path / "p.master")
    assert young["removed"] == []
    assert len(young["kept"]) == 3
    done = as_json("master vacuum", tmp_path / "p.master", "--keep", 2, "--older-than", "0s")
    assert len(done["removed"]) == 1
    assert done["freed_bytes"] > 0
    assert "removed 0 versions" in semistream("master vacuum", tmp_path / "p.master").stdout


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("master info nowhere.master", 1, "nowhere.master"),
        ("master verify nowhere.master", 1, "nowhere.master"),
        ("master build x.master nowhere.parquet --key id", 1, "nowhere.parquet"),
        ("master build x.master orders.parquet --key id", 2, "id"),
        ("master build x.master orders.parquet --key order --layout frequency", 2, "frequency"),
        ("master build x.master orders.parquet --key order --memory lots", 2, "lots"),
        ("master build x.master orders.parquet --key order --page-bytes 5000", 2, "4096"),
        ("master vacuum products.master --older-than soon", 2, "30m"),
        ("master vacuum products.master --keep 0", 2, "keep"),
    ],
)
def test_a_failure_is_one_line_and_an_exit_code(semistream, tmp_path, monkeypatch, line, code, words):
    monkeypatch.chdir(tmp_path)
    done = semistream(line, code=code)
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("error: ")
    assert words in done.stderr
    assert not any(tmp_path.iterdir())
