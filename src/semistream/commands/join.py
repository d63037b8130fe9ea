"""`semistream join`: enrich the rows of files, without Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from semistream.commands.terminal import Progress, json_option, print_json, progress_bar
from semistream.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from semistream.join import Join


@click.command()
@click.argument("stream")
@click.argument("master")
@click.argument("target", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--on", required=True, help="Key column, several separated by commas, or stream_column=master_column.")
@click.option("--how", default="inner", show_default=True, help="inner, left, left_semi or left_anti.")
@click.option("--memory", default="64MB", show_default=True, help="The byte budget of the join.")
@click.option("--algorithm", default="adaptive", show_default=True, help="See `semistream algorithms`.")
@click.option("--preset", help="The published or the tuned form of the algorithm, where it has both.")
@click.option("--columns", help="Master columns to add, separated by commas; column=output renames.  [default: all]")
@click.option(
    "--rename", help="Master columns to rename, column=output, separated by commas; all others are added too."
)
@click.option("--match-column", help="Name of a true/false column that says whether a row found its partner.")
@click.option("--null-safe", is_flag=True, help="Let a missing key match a missing key.")
@click.option("--ordered", is_flag=True, help="Keep the order of the stream.")
@click.option(
    "--io", type=click.Choice(["buffered", "direct"]), default="buffered", help="How pages are read from disk."
)
@click.option("--overwrite", is_flag=True, help="Replace TARGET if it exists.")
@json_option
def join(stream: str, master: str, target: Path, io: str, overwrite: bool, as_json: bool, **settings: Any) -> None:
    """Enrich files from a master, without Spark.

    Joins the rows of STREAM with those of the table MASTER and writes TARGET.

    STREAM is a Parquet, CSV or Arrow file or a folder of such files, MASTER a built master or
    sqlite:///file.db?table=name, TARGET a file that ends with .parquet, .csv or .arrow.

    \b
    Example:
      semistream join orders.parquet products.master enriched.parquet --on product_id --how left
    """
    _check_target(target, overwrite=overwrite)
    planned = _plan(master, io, **settings)
    started = time.perf_counter()
    with progress_bar() as progress:
        read, written = _run(planned, stream, target, progress)
    seconds = time.perf_counter() - started
    if as_json:
        totals = {"target": str(target), "rows_in": read, "rows_out": written, "seconds": round(seconds, 3)}
        print_json({**totals, "report": dict(planned.report())})
    else:
        click.echo(f"{target}: {written:,} rows from {read:,} in {seconds:.1f} s")


def _plan(master: str, io: str, *, on: str, columns: str | None, rename: str | None, **settings: Any) -> Join:
    """The join, checked before any row is read."""
    import semistream as ss

    if columns and rename:
        raise UsageError(
            "--columns and --rename: need one of them, got both; --columns can rename too, as column=output"
        )
    pairs = _pairs(on, "--on")
    keys: Any = dict(pairs) if any(left != right for left, right in pairs) else [left for left, _ in pairs]
    chosen: Any = _pairs(columns, "--columns") if columns else dict(_pairs(rename, "--rename")) if rename else None
    return ss.Join(ss.open_master(master, io=io), on=keys, columns=chosen, **settings)


def _run(planned: Join, stream: str, target: Path, progress: Progress | None) -> tuple[int, int]:
    """Join all batches into the file; give the rows read and written."""
    from semistream.masters.export import write_file
    from semistream.masters.sources import open_source

    source = open_source(stream)
    read = written = 0

    def stream_batches() -> Iterator[pa.RecordBatch]:
        nonlocal read
        for batch in source.batches():
            read += batch.num_rows
            if progress is not None:
                progress(read, source.rows, "joining")
            yield batch

    def joined() -> Iterator[pa.RecordBatch]:
        nonlocal written
        for batch in planned(stream_batches()):
            written += batch.num_rows
            yield batch

    write_file(target, planned.output_schema(source.schema), joined())
    return read, written


def _check_target(target: Path, *, overwrite: bool) -> None:
    """Refuse a target that cannot be written, before anything is read."""
    from semistream.masters.export import ENDINGS

    if target.suffix.lower() not in ENDINGS:
        raise UsageError(f"{target}: need a name that ends with one of {', '.join(ENDINGS)}")
    if target.exists() and not overwrite:
        raise UsageError(f"{target}: exists already; choose another name or give --overwrite")
    if not target.parent.is_dir():
        raise UsageError(f"{target}: there is no folder {target.parent}; make it first")


def _pairs(text: str, option: str) -> list[tuple[str, str]]:
    """Column names, each with the name on the other side.

    >>> _pairs("price, name=product", "--columns")
    [('price', 'price'), ('name', 'product')]
    """
    pairs = []
    for item in text.split(","):
        left, _, right = (part.strip() for part in item.partition("="))
        if not left or ("=" in item and not right):
            raise UsageError(f"{option} {text}: need column names separated by commas, or column=name")
        pairs.append((left, right or left))
    return pairs
