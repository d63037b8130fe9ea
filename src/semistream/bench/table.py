"""Results for people: rates per case, losses shown like gains, then building and start-up against their limits."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from semistream.bench.rivals import RIVALS
from semistream.units import format_bytes

Row = dict[str, Any]


def show_core(results: dict[str, Any], console: Console) -> None:
    """Print all tables."""
    rows = results["rows"]
    timed = [row for row in rows if row["case"].endswith("-build")]
    startup = [row for row in rows if row["system"] == "startup"]
    joins = [row for row in rows if row not in timed and row not in startup]
    if joins:
        console.print(_joins(joins))
    if timed:
        console.print(_builds(timed))
    if startup:
        console.print(_startup(startup))
    for row in rows:
        if row["error"]:
            console.print(f"[red]failed[/red] {row['case']} {row['system']}: {escape(row['error'])}", highlight=False)


def _joins(rows: list[Row]) -> Table:
    table = Table(title="Joins: million tuples per second; ratio to the faster rival")
    for name in ("case", "system"):
        table.add_column(name, no_wrap=True)
    for name in ("M tuples/s", "95 %", "ratio", "cores", "budget", "growth", "read per 1000 tuples"):
        table.add_column(name, justify="right")
    previous = None
    for row in rows:
        same_case = previous == row["case"]
        if previous and not same_case:
            table.add_section()
        previous = row["case"]
        cells = _join_cells(row, fastest_rival(rows, row["case"]))
        table.add_row("" if same_case else row["case"], row["system"], *cells)
    return table


def _join_cells(row: Row, rival_rows_per_s: float | None) -> list[str]:
    if row["error"]:
        return ["[red]failed[/red]"]
    ratio = "" if rival_rows_per_s is None else f"{row['rows_per_s'] / rival_rows_per_s:.2f}"
    budget = row["memory_budget_bytes"]
    growth = row["peak_growth_bytes"]
    over = " !" if row["memory_ok"] is False else ""
    return [
        f"{row['rows_per_s'] / 1e6:.2f}",
        _interval(row),
        ratio,
        str(row["threads"]),
        "-" if budget is None else format_bytes(budget),
        "?" if growth is None else format_bytes(growth) + over,
        format_bytes(round(row["bytes_read"] * 1000 / row["rows_joined"])) if row["bytes_read"] else "-",
    ]


def fastest_rival(rows: list[Row], case: str) -> float | None:
    """Rate of the faster rival in this case, if one was measured."""
    rates = [row["rows_per_s"] for row in rows if row["case"] == case and row["system"] in RIVALS]
    return max((one for one in rates if one is not None), default=None)


def _builds(rows: list[Row]) -> Table:
    table = Table("case", "system", "M rows/s", "95 %", "written", title="Building")
    for row in rows:
        cells = ["[red]failed[/red]"]
        if not row["error"]:
            cells = [f"{row['rows_per_s'] / 1e6:.2f}", _interval(row), format_bytes(row["bytes_written"])]
        table.add_row(row["case"], row["system"], *cells)
    return table


def _startup(rows: list[Row]) -> Table:
    table = Table("case", "seconds", "limit", title="Start-up")
    for row in rows:
        seconds = "[red]failed[/red]" if row["error"] else f"{row['seconds']:.2f}"
        table.add_row(row["case"], seconds, f"{row['limit_s']:g}")
    return table


def _interval(row: Row) -> str:
    return "-" if row["ci95"] is None else " - ".join(f"{end / 1e6:.2f}" for end in row["ci95"])


def show_spark(results: dict[str, Any], console: Console) -> None:
    """Print what every system took, and how many times as long as `enrich` that is."""
    rows = results["rows"]
    table = Table("case", "system", "median ms", "first ms", "M rows/s", "times enrich", title="On Spark")
    ours = {row["case"]: row["batch_ms_median"] for row in rows if row["system"] == "enrich" and not row["error"]}
    for row in rows:
        cells = ["[red]failed[/red]"]
        if not row["error"]:
            median_ms = row["batch_ms_median"]
            times = f"{median_ms / ours[row['case']]:.2f}" if row["case"] in ours else "-"
            cells = [f"{median_ms:.0f}", f"{row['batch_ms_first']:.0f}", f"{row['rows_per_s'] / 1e6:.3f}", times]
        table.add_row(row["case"], row["system"], *cells)
    console.print(table)
    for row in rows:
        if row["error"]:
            console.print(f"[red]failed[/red] {row['case']} {row['system']}: {escape(row['error'])}", highlight=False)
