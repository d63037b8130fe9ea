"""`semistream calibrate` and `semistream explain`: what this machine needs, and what a join will do on it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from semistream.commands.terminal import json_option, print_json, progress_bar
from semistream.errors import UsageError

_MOST_ROWS = 2_000_000

io_option = click.option(
    "--io",
    type=click.Choice(["buffered", "direct"]),
    default="buffered",
    show_default=True,
    help="How pages are read from disk.",
)


@click.command()
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where a temporary master is written: a folder on the disk of your masters.  [default: the system's temporary folder]",
)
@io_option
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write.  [default: where `explain` looks, in your settings]",
)
@json_option
def calibrate(folder: Path | None, io: str, output: Path | None, as_json: bool) -> None:
    """Measure what this machine needs for each verb of a join.

    Takes less than a minute, and keeps the unit costs in a file, with the machine and the version they belong to. `semistream
    explain` predicts with them.

    \b
    Example:
      semistream calibrate --folder /data
    """
    import semistream as ss
    from semistream.tuning.calibration import default_path

    with progress_bar() as progress:
        found = ss.calibrate(output, folder=folder, io=io, progress=progress)
    target = output or default_path(io)
    if as_json:
        print_json({"target": str(target), **found.to_dict()})
        return
    click.echo(f"{target}: unit costs of {found.machine}, reads {io}, measured in {found.seconds:.0f} s")
    for name, value in found.to_dict()["costs"].items():
        if value is not None:
            click.echo(f"  {name.removesuffix('_s').replace('_', ' '):<10} {_text(name, value)}")


def _text(name: str, seconds: float) -> str:
    """A cost as people read it.

    >>> _text("read_byte_s", 1e-10), _text("probe_s", 2.5e-8), _text("step_s", 4e-5)
    ('10.00 GB/s', '25.0 ns', '40.0 us')
    """
    if name.endswith("_byte_s"):
        return f"{1e-9 / seconds:.2f} GB/s" if seconds else "too fast to tell"
    return f"{seconds * 1e6:.1f} us" if seconds >= 1e-6 else f"{seconds * 1e9:.1f} ns"


@click.command()
@click.argument("master")
@click.argument("stream", required=False)
@click.option("--on", help="Key column of STREAM, several separated by commas.  [default: the master's key]")
@click.option("--exponent", type=float, help="Zipf's exponent of the stream's keys, if there is no STREAM.")
@click.option("--memory", help="The byte budget: what rate will it carry?")
@click.option("--rate", type=float, help="Tuples a second: what memory will it take?")
@click.option(
    "--algorithm", "algorithms", multiple=True, help="Only these; may be given several times.  [default: all]"
)
@click.option("--calibration", type=click.Path(dir_okay=False, path_type=Path), help="The file with unit costs.")
@io_option
@click.option(
    "--report", type=click.Path(dir_okay=False, path_type=Path), help="What `semistream join --json` has printed."
)
@json_option
def explain(
    master: str, stream: str | None, io: str, calibration: Path | None, report: Path | None, as_json: bool, **asked: Any
) -> None:
    """Say what every algorithm would do, before anything runs.

    Ranks the algorithms for the table MASTER: the rate they reach within --memory, or the memory they need for --rate,
    and what twice the memory would give. STREAM is a sample of the stream, a Parquet, CSV or Arrow file; without one,
    give --exponent. Needs the unit costs that `semistream calibrate` has measured. With --report, a run stands beside
    what was predicted for it.

    \b
    Example:
      semistream explain products.master orders.parquet --memory 64MB
    """
    import semistream as ss
    from semistream.tuning.calibration import load_calibration

    found = ss.explain(
        ss.open_master(master, io=io),
        list(_batches(stream)) if stream is not None else None,
        on=[name.strip() for name in asked["on"].split(",")] if asked["on"] else None,
        exponent=asked["exponent"],
        memory=asked["memory"],
        rate=asked["rate"],
        algorithms=asked["algorithms"] or None,
        calibration=load_calibration(calibration, io),
        report=_report(report) if report is not None else None,
    )
    if as_json:
        print_json(found.to_dict())
    else:
        click.echo(str(found))


def _batches(stream: str) -> Iterator[Any]:
    """Batches of a file, some million rows at most: a sample."""
    from semistream.masters.sources import open_source

    rows = 0
    for batch in open_source(stream).batches():
        yield batch
        rows += batch.num_rows
        if rows >= _MOST_ROWS:
            return


def _report(path: Path) -> dict[str, Any]:
    """The report of a run, alone or within what `semistream join --json` prints."""
    try:
        told = json.loads(path.read_text())
        found: dict[str, Any] = told.get("report", told)
        if not {"algorithm", "loads", "finished", "waited"} <= set(found):
            raise UsageError(f"--report {path}: has no counters of a join; need what `semistream join --json` prints")
        return found
    except (json.JSONDecodeError, AttributeError) as error:
        raise UsageError(
            f"--report {path}: is no JSON object ({error}); need what `semistream join --json` prints"
        ) from error
