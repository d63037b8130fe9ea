"""Write the newest results into benchmarks/README.md, between its markers: `python benchmarks/render.py` (`--check` only compares)."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from semistream.bench.table import fastest_rival
from semistream.units import format_bytes

HERE = Path(__file__).parent
README = HERE / "README.md"
Row = dict[str, Any]


def results(bench: str) -> list[Path]:
    """All kept results of `bench core` or `bench pages`, oldest first."""
    paths = sorted((HERE / "results").glob("*/*.json"))
    return [path for path in paths if json.loads(path.read_text())["meta"]["bench"] == bench]


def table(head: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """A Markdown table; all columns but the first two hold numbers."""
    head = list(head)
    rule = [":--", ":--", *["--:"] * (len(head) - 2)]
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, rule, *lines])


def number(row: Row, show: Callable[[Row], str]) -> str:
    """The cell of a row, or that there is none."""
    return "failed" if row["error"] else show(row)


def interval(row: Row) -> str:
    """Ends of the confidence interval in millions."""
    return "-" if row["ci95"] is None else " - ".join(f"{end / 1e6:.2f}" for end in row["ci95"])


def size(count: int | None) -> str:
    """Bytes for people."""
    return "-" if count is None else format_bytes(count)


def joins(rows: list[Row]) -> str:
    """One line per case and system, losses included."""

    def line(row: Row) -> list[str]:
        best = fastest_rival(rows, row["case"])
        return [
            row["case"],
            f"`{row['system']}`",
            number(row, lambda row: f"{row['rows_per_s'] / 1e6:.2f}"),
            number(row, interval),
            number(row, lambda row: f"{row['rows_per_s'] / best:.2f}" if best else "-"),
            str(row["threads"] or "-"),
            size(row["memory_budget_bytes"]),
            size(row["peak_growth_bytes"]),
            number(
                row, lambda row: f"{row['pages_read'] * 1000 / row['rows_joined']:.1f}" if row["pages_read"] else "-"
            ),
            number(
                row,
                lambda row: (
                    f"{row['best_batch_rows_per_s'] / 1e6:.1f} at {row['best_batch_rows']:,}" if "way" in row else "-"
                ),
            ),
        ]

    head = (
        "case, system, M tuples/s, 95 %, ratio, cores, budget, growth, pages per 1000, best batch: M tuples/s at rows"
    )
    return table(head.split(", "), map(line, rows))


def builds(rows: list[Row]) -> str:
    """One line per table and builder."""
    lines = (
        [
            row["case"],
            f"`{row['system']}`",
            number(row, lambda row: f"{row['rows_per_s'] / 1e6:.2f}"),
            number(row, interval),
            number(row, lambda row: size(row["bytes_written"])),
        ]
        for row in rows
    )
    return table(["table", "system", "M rows/s", "95 %", "written"], lines)


def startup(rows: list[Row]) -> str:
    """One line per figure, with its limit."""
    lines = (
        [row["case"], "`startup`", number(row, lambda row: f"{row['seconds']:.2f}"), f"{row['limit_s']:g}"]
        for row in rows
    )
    return table(["figure", "system", "seconds", "limit"], lines)


def pages(rows: list[Row]) -> str:
    """One line per page size: joins in million tuples, reads in megabytes per second."""
    columns = list(dict.fromkeys((row["system"], row["case"].rpartition("-p")[0]) for row in rows))
    cells = {(row["system"], row["case"]): row for row in rows}

    def line(page_bytes: int) -> Iterable[str]:
        yield f"{page_bytes >> 10} kB"
        for system, case in columns:
            row = cells[system, f"{case}-p{page_bytes}"]
            yield number(
                row,
                lambda row: (
                    f"{row['bytes_per_s'] / (1 << 20):.0f}"
                    if "bytes_per_s" in row
                    else f"{row['rows_per_s'] / 1e6:.2f}"
                ),
            )

    head = ["page", *(f"{system} {case.removeprefix('fixed-')}" for system, case in columns)]
    return table(head, map(line, dict.fromkeys(row["page_bytes"] for row in rows)))


def text() -> str:
    """All tables, of the newest results of each kind."""
    parts = []
    for path in results("core")[-1:]:
        found = json.loads(path.read_text())
        rows = found["rows"]
        starts = [row for row in rows if row["system"] == "startup"]
        built = [row for row in rows if row["case"].endswith("-build")]
        parts += [source(path, found["meta"]), joins([row for row in rows if row not in starts and row not in built])]
        parts += [builds(built), startup(starts)]
    for path in results("pages")[-1:]:
        found = json.loads(path.read_text())
        parts += [source(path, found["meta"]), pages(found["rows"])]
    return "\n\n".join(parts)


def source(path: Path, meta: Row) -> str:
    """Where the following tables come from."""
    versions = ", ".join(f"{name} {version}" for name, version in meta["versions"].items() if name != "system")
    return f"From `{path.relative_to(HERE)}`, preset `{meta['preset']}`: {meta['machine']}; {versions}."


def rendered(page: str) -> str:
    """The page with its tables renewed."""
    return re.sub(
        r"(<!-- results -->\n).*?(?=<!-- end of results -->)",
        lambda found: f"{found[1]}\n{text()}\n\n",
        page,
        flags=re.DOTALL,
    )


if __name__ == "__main__":
    page = README.read_text()
    if "--check" not in sys.argv:
        README.write_text(rendered(page))
    elif page != rendered(page):
        sys.exit("benchmarks/README.md does not show the newest results; run: python benchmarks/render.py")
