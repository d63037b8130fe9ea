"""`semistream demo`, `algorithms` and `bench`: see it work, see what there is, measure it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from semistream.commands.terminal import json_option, print_json, progress_bar

preset_option = click.option("--preset", default="quick", show_default=True, help="How much to measure: quick or full.")
data_option = click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".cache", "bench"),
    show_default=True,
    help="Folder that keeps tables and streams for the next run.",
)


@click.command()
@click.option("--rows", type=int, default=1_000_000, show_default=True, help="Orders to send.")
@click.option("--products", type=int, default=1_000_000, show_default=True, help="Rows of the product master.")
@click.option("--seed", type=int, default=7, show_default=True, help="Same seed, same orders and products.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="New or empty folder for everything that is written.  [default: a temporary one, which stays]",
)
@json_option
def demo(rows: int, products: int, seed: int, folder: Path | None, as_json: bool) -> None:
    """Enrich a stream on Spark and prove the result.

    Bursts of orders are cleaned, enriched from a product master on disk and stored in a warehouse by Spark Structured
    Streaming; then every row is compared with what the raw files say. Ends by itself; exit code 1 if the proof fails.

    \b
    Example:
      semistream demo --rows 200000
    """
    from rich.console import Console

    from semistream.demo import run_demo

    result = run_demo(folder, rows, seed, products=products, console=Console(stderr=as_json, highlight=False))
    if as_json:
        print_json(result.to_dict())
    sys.exit(result.exit_code)


@click.command()
@json_option
def algorithms(as_json: bool) -> None:
    """List the join algorithms and how they differ.

    They take the same decisions differently: which page is read next, which tuples leave, what stays in memory.

    \b
    Example:
      semistream algorithms
    """
    import semistream as ss

    facts = ("title", "paper", "next_page", "leaves", "keeps", "bound", "capabilities")
    records = [{name: getattr(one, name) for name in ("name", *facts)} for one in ss.algorithms()]
    if as_json:
        print_json(records)
        return
    for one in records:
        click.echo(f"{one['name']}: {one['title']}, {one['paper']}")
        for name in ("next_page", "leaves", "keeps", "bound"):
            click.echo(f"  {name.replace('_', ' '):<10} {one[name]}")


@click.group()
def bench() -> None:
    """Measure semistream on this machine.

    Rules and limitations are in benchmarks/README.md.
    """


@bench.command()
@preset_option
@click.option("--system", "systems", multiple=True, help="Only this algorithm or rival; may be given several times.")
@click.option(
    "--case", "cases", multiple=True, help="Only this case, such as fixed-zipf1-buffered; may be given several times."
)
@data_option
@json_option
def core(preset: str, systems: tuple[str, ...], cases: tuple[str, ...], data: Path, as_json: bool) -> None:
    """Measure joins against DuckDB and Polars, then building and start-up; every answer is checked.

    \b
    Example:
      semistream bench core --preset quick --system hybridjoin --system duckdb
    """
    from semistream.bench import run_core

    with progress_bar() as progress:
        run_core(preset, as_json, list(systems) or None, list(cases) or None, progress, data)


@bench.command()
@preset_option
@data_option
@json_option
def pages(preset: str, data: Path, as_json: bool) -> None:
    """Measure joins and bare reads at every page size: the curve behind the default.

    \b
    Example:
      semistream bench pages --preset quick
    """
    from semistream.bench import run_pages

    with progress_bar() as progress:
        run_pages(preset, as_json, progress, data)


@bench.command()
@preset_option
@click.option(
    "--system", "systems", multiple=True, help="Only this system, such as enrich; may be given several times."
)
@click.option("--case", "cases", multiple=True, help="Only this case, such as batch1000; may be given several times.")
@data_option
@json_option
def spark(preset: str, systems: tuple[str, ...], cases: tuple[str, ...], data: Path, as_json: bool) -> None:
    """Measure enrich against Spark's own joins, on micro-batches and on a batch DataFrame; every answer is checked.

    \b
    Example:
      semistream bench spark --preset quick --case batch1000
    """
    from semistream.bench import run_spark

    with progress_bar() as progress:
        run_spark(preset, as_json, list(systems) or None, list(cases) or None, progress, data)
