"""What commands say and how: results on standard output, everything else on standard error, one line per failure."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click

from semistream.errors import SemistreamError, UsageError

Progress = Callable[[int, "int | None", str], None]

# optional libraries, and the extra of this package that brings each
_EXTRAS = {"pyspark": "spark", "pandas": "spark", "polars": "bench", "psutil": "bench", "tpchgen_cli": "workloads"}

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object for machines, no text.")


class Commands(click.Group):
    """A group of commands whose failures are one line and an exit code: 2 for wrong usage, 1 for everything else."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; errors that semistream or the system raise on purpose get no traceback."""
        try:
            return super().invoke(ctx)
        except UsageError as exc:
            fail(str(exc), code=2)
        except SemistreamError as exc:
            fail(str(exc), code=1)
        except ModuleNotFoundError as exc:
            if exc.name not in _EXTRAS:
                raise
            extra = _EXTRAS[exc.name]
            fail(f"need the library {exc.name}, which is not installed: pip install 'semistream[{extra}]'", code=1)
        except BrokenPipeError:
            raise
        except OSError as exc:
            where = f"{exc.filename}: " if exc.filename else ""
            fail(f"{where}{exc.strerror or exc}", code=1)


def fail(message: str, *, code: int) -> None:
    """Print one line and leave."""
    click.echo(f"error: {' '.join(message.split())}", err=True)
    sys.exit(code)


def print_json(value: Any) -> None:
    """Print an object on standard output; what JSON does not know (paths, dates, types) is written as its text."""
    click.echo(json.dumps(value, indent=2, default=str))


def print_pairs(values: Mapping[str, Any]) -> None:
    """Print names and values below each other; what is nested is written as JSON."""
    width = max((len(name) for name in values), default=0)
    for name, value in values.items():
        text = json.dumps(value, default=str) if isinstance(value, dict | list | tuple) else str(value)
        click.echo(f"{name:<{width}}  {text}")


@contextmanager
def progress_bar() -> Iterator[Progress | None]:
    """A bar on a terminal, nothing at all in a pipe or a log: yields the function to call with (done, total, doing)."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("starting", total=None)
        yield lambda done, total, doing: bars.update(task, completed=done, total=total, description=doing)
