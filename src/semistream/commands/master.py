"""`semistream master ...`: build, look at, check, export and tidy up master tables."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import click

from semistream.commands.terminal import json_option, print_json, print_pairs, progress_bar
from semistream.errors import UsageError

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@click.group()
def master() -> None:
    """Build, look at, check, export and tidy up master tables."""


@master.command()
@click.argument("path")
@click.argument("source")
@click.option("--key", required=True, help="Key column, or several separated by commas.")
@click.option(
    "--layout",
    type=click.Choice(["key", "heap", "frequency"]),
    default="key",
    show_default=True,
    help="Order of rows on disk: by key, as given, or the most asked-for first.",
)
@click.option("--frequency", help="For --layout frequency: the column that says how often a row is asked for.")
@click.option("--page-bytes", type=int, help="Bytes per page, a multiple of 4096.  [default: chosen by row width]")
@click.option("--memory", default="1GB", show_default=True, help="Memory for sorting; what does not fit goes to disk.")
@json_option
def build(
    path: str,
    source: str,
    key: str,
    layout: str,
    frequency: str | None,
    page_bytes: int | None,
    memory: str,
    as_json: bool,
) -> None:
    """Build the master table PATH from SOURCE.

    SOURCE is a Parquet, CSV or Arrow file, a folder of such files, or sqlite:///file.db?table=name. An existing master
    gets a new version; joins that run keep the one they began with.

    \b
    Example:
      semistream master build products.master products.parquet --key product_id
    """
    import semistream as ss

    with progress_bar() as progress:
        built = ss.build_master(
            path,
            source,
            key=_names(key),
            layout=layout,
            frequency=frequency,
            page_bytes=page_bytes,
            memory=memory,
            progress=progress,
        )
    info = built.info()
    if as_json:
        print_json(info)
    else:
        click.echo(f"{path}: {info['rows']:,} rows in {info['pages']:,} pages")


@master.command()
@click.argument("path")
@json_option
def info(path: str, as_json: bool) -> None:
    """Say what the master table PATH holds.

    PATH may also be a table that stays where it is: sqlite:///file.db?table=name.

    \b
    Example:
      semistream master info products.master
    """
    import semistream as ss

    found = ss.open_master(path).info()
    if as_json:
        print_json(found)
    else:
        print_pairs(found)


@master.command()
@click.argument("path")
@json_option
def verify(path: str, as_json: bool) -> None:
    """Check every checksum of the master table PATH; exit code 1 if a byte is not the byte that was written.

    \b
    Example:
      semistream master verify products.master
    """
    import semistream as ss

    opened = ss.open_master(path)
    with progress_bar() as progress:
        opened.verify(progress=progress)
    found = opened.info()
    if as_json:
        print_json({"path": path, "ok": True, "rows": found["rows"], "pages": found["pages"]})
    else:
        click.echo(f"{path}: every checksum of {found['pages']:,} pages is right")


@master.command()
@click.argument("path")
@click.argument("target")
@json_option
def export(path: str, target: str, as_json: bool) -> None:
    """Write the rows of the master table PATH to TARGET, a Parquet, CSV or Arrow file by its ending.

    \b
    Example:
      semistream master export products.master products.parquet
    """
    import semistream as ss

    opened = ss.open_master(path)
    opened.export(target)
    rows = opened.info()["rows"]
    if as_json:
        print_json({"path": path, "target": target, "rows": rows})
    else:
        click.echo(f"{target}: {rows:,} rows")


@master.command()
@click.argument("path")
@click.option("--keep", type=int, default=1, show_default=True, help="How many of the newest versions stay.")
@click.option(
    "--older-than",
    default="1d",
    show_default=True,
    help="Versions replaced less than this ago stay, for readers elsewhere: 0s, 30m, 7d.",
)
@click.option("--pins", multiple=True, help="A folder that a query on Spark was given as pins=; may be repeated.")
@json_option
def vacuum(path: str, keep: int, older_than: str, pins: tuple[str, ...], as_json: bool) -> None:
    """Remove old versions of the master table PATH that nobody reads any more.

    \b
    Example:
      semistream master vacuum products.master --keep 2 --older-than 7d
    """
    import semistream as ss

    opened: Any = ss.open_master(path)
    report = opened.vacuum(keep=keep, older_than=_duration(older_than), pins=pins)
    if as_json:
        print_json({"removed": report.removed, "kept": report.kept, "freed_bytes": report.freed_bytes})
    else:
        from semistream.units import format_bytes

        for version, reason in report.kept.items():
            click.echo(f"kept {version}: {reason}")
        click.echo(f"removed {len(report.removed)} versions, {format_bytes(report.freed_bytes)} freed")


def _names(text: str) -> str | list[str]:
    """One column name, or the list of several."""
    names = [name.strip() for name in text.split(",")]
    return names[0] if len(names) == 1 else names


def _duration(text: str) -> timedelta:
    """Time from text.

    >>> _duration("90m")
    datetime.timedelta(seconds=5400)
    """
    form = re.fullmatch(r"(\d+)([smhdw])", text.strip())
    if form is None:
        raise UsageError(f"--older-than {text}: need a number and a unit s, m, h, d or w, such as 30m")
    return timedelta(**{_UNITS[form[2]]: int(form[1])})
