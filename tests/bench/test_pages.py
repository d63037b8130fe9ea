"""The curve of page sizes: every size is built, read, joined and removed; the table has a line for each."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from semistream.bench.cases import preset_named
from semistream.bench.page_run import measure_reads
from semistream.bench.pages import PAGE_BYTES, show_pages, steps_for

SMOKE = preset_named("smoke")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    data = tmp_path_factory.mktemp("pages")
    steps = steps_for(SMOKE, data, [4096, 65536])
    wanted = ("build", "random direct", "hybridjoin fixed-zipf1-buffered", "remove")
    found = [row for step in steps if step.doing.partition(": ")[2] in wanted for row in step.measure()]
    assert not list(data.rglob("master-*"))
    return found


def test_sizes_double_from_four_kilobytes_to_a_quarter_of_a_megabyte():
    assert PAGE_BYTES == (4096, 8192, 16384, 32768, 65536, 131072, 262144)


def test_every_size_is_read_and_joined(rows):
    assert [(row["system"], row["case"]) for row in rows] == [
        ("hybridjoin", "fixed-zipf1-buffered-p4096"),
        ("read_random", "direct-p4096"),
        ("hybridjoin", "fixed-zipf1-buffered-p65536"),
        ("read_random", "direct-p65536"),
    ]
    assert not any(row.get("error") for row in rows)
    assert rows[0]["checksum"] == rows[2]["checksum"]
    assert rows[2]["bytes_read"] == rows[2]["pages_read"] * 65536


def test_the_table_has_a_line_for_every_size(rows):
    console = Console(width=140, file=StringIO())
    show_pages({"rows": [row | {"error": row.get("error")} for row in rows]}, console)
    text = console.file.getvalue()
    assert "4 kB" in text
    assert "64 kB" in text
    assert f"{rows[0]['rows_per_s'] / 1e6:.2f}" in text


@pytest.mark.parametrize("order", ["sequential", "random"])
@pytest.mark.parametrize("io", ["buffered", "direct"])
def test_reads_are_counted_in_reads_and_bytes(tmp_path, order, io):
    (tmp_path / "pages.bin").write_bytes(bytes(64 * 4096))
    found = measure_reads({"master": str(tmp_path), "page_bytes": 4096, "io": io, "order": order, "seconds": 0.01})
    assert found["rows"] >= 64
    assert found["bytes_per_s"] == pytest.approx(found["rows_per_s"] * 4096)
