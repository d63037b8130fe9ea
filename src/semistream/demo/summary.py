"""The last words of the demo: the verdict, the figures, and what to try next."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from semistream.demo.proof import Compared
from semistream.demo.result import DemoResult
from semistream.units import format_bytes


def print_summary(console: Console, result: DemoResult) -> None:
    """Print what a person wants to know after the demo."""
    console.print()
    for title, text in _figures(result):
        console.print(f"  {title:<12}{text}", soft_wrap=True, markup=False)
    console.print("\nNext:")
    for command in _next_commands(result):
        console.print(f"  {command}", soft_wrap=True, markup=False)
    console.print()
    if result.verified:
        console.print(f"[bold green]demo: VERIFIED {result.rows} rows[/bold green]")
    else:
        console.print("[bold red]demo: FAILED[/bold red], the warehouse is not what the raw files say")


def _figures(result: DemoResult) -> Iterator[tuple[str, str]]:
    run, join = result.stream, result.stream.join
    for table in result.tables:
        yield table.table, _verdict(table)
    yield "sent twice", f"{run.orders - result.rows:,} of {run.orders:,} orders that came; stored once"
    yield (
        "rate",
        f"{run.rows_per_s:,.0f} rows/s as they arrived, {run.rows_per_busy_s:,.0f} rows/s while Spark was at work",
    )
    yield "", f"{run.batches} micro-batches, {join['tasks']} tasks with rows"
    pages = f"{join['pages_read']:,} pages ({format_bytes(join['bytes_read'])}) read"
    yield "hit share", f"{join['hit_share']:.1%} of the orders needed no load of their own; {pages}"
    used, share = format_bytes(join["bytes_used"]), format_bytes(join["memory_bytes"])
    yield "memory", f"{used} of {share} in each of the tasks that run at once:"
    for part, count in sorted(join["bytes_by_part"].items(), key=lambda pair: -pair[1]):
        yield "", f"{count:>12,}  {part}"


def _verdict(table: Compared) -> str:
    if table.equal:
        return f"{table.rows:,} rows, the same as computed from the raw files"
    return f"{table.rows:,} rows; {table.missing:,} missing, {table.surplus:,} not wanted, for example {table.example}"


def _next_commands(result: DemoResult) -> list[str]:
    master, inbox = result.folder / "products.master", result.folder / "inbox"
    return [
        f"semistream master info {master}",
        f"semistream master verify {master}",
        f"semistream join {inbox} {master} enriched.parquet --on product_id --how left",
        "semistream algorithms",
        "semistream bench core --preset quick",
        f"rm -r {result.folder}",
    ]
