"""`bench pages`: the curve behind the default page size. One master per size, joined by three recipes and read bare."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from semistream.bench.cases import Case, Preset, preset_named
from semistream.bench.data import Dataset, join_task
from semistream.bench.launch import run_task
from semistream.bench.results import Progress, Row, Step, collect

PAGE_BYTES = tuple(4096 << shift for shift in range(7))
ALGORITHMS = ("meshjoin", "hybridjoin", "adaptive")
EXPONENTS = (1.0, 0.0)
WAYS = ("buffered", "direct")
READ_S = 1.0


def measure_pages(preset_name: str, data: Path, progress: Progress) -> Row:
    """Rates of joins and of reads for every page size."""
    preset = preset_named(preset_name)
    return collect("pages", preset, steps_for(preset, data, PAGE_BYTES), progress)


def steps_for(preset: Preset, data: Path, sizes: Sequence[int]) -> list[Step]:
    """What to do for these page sizes, in order."""
    return [step for page_bytes in sizes for step in _steps(preset, data, page_bytes)]


def _steps(preset: Preset, data: Path, page_bytes: int) -> Iterator[Step]:
    dataset = Dataset(data, "fixed", preset.master_rows)
    yield Step(f"pages of {page_bytes}: build", partial(_build, dataset, page_bytes))
    for io in WAYS:
        for order in ("sequential", "random"):
            yield Step(f"pages of {page_bytes}: {order} {io}", partial(_read, dataset, page_bytes, io, order))
        for exponent in EXPONENTS:
            for algorithm in ALGORITHMS:
                case = Case("fixed", exponent, io)
                doing = f"pages of {page_bytes}: {algorithm} {case.name}"
                yield Step(doing, partial(_join, preset, data, case, algorithm, page_bytes))
    yield Step(f"pages of {page_bytes}: remove", partial(_remove, dataset, page_bytes))


def _build(dataset: Dataset, page_bytes: int) -> list[Row]:
    dataset.master(page_bytes)
    return []


def _remove(dataset: Dataset, page_bytes: int) -> list[Row]:
    shutil.rmtree(dataset.master(page_bytes))
    return []


def _read(dataset: Dataset, page_bytes: int, io: str, order: str) -> list[Row]:
    task = {"task": "reads", "master": str(dataset.master(page_bytes)), "page_bytes": page_bytes}
    task |= {"io": io, "order": order, "seconds": READ_S}
    names = {"system": f"read_{order}", "case": f"{io}-p{page_bytes}", "page_bytes": page_bytes}
    return [names | run_task(task, threads=1, timeout_s=60)]


def _join(preset: Preset, data: Path, case: Case, algorithm: str, page_bytes: int) -> list[Row]:
    task = join_task(data, preset, case, algorithm, page_bytes)
    names = {"system": algorithm, "case": f"{case.name}-p{page_bytes}", "page_bytes": page_bytes}
    return [names | run_task(task, threads=1, timeout_s=preset.timeout_s)]


def show_pages(results: dict[str, Any], console: Console) -> None:
    """One line per page size: joins in million tuples per second, reads in megabytes per second."""
    rows = results["rows"]
    columns = list(dict.fromkeys(_column(row) for row in rows))
    table = Table("page", *columns, title="Joins: million tuples per second; reads: MB per second")
    for page_bytes in dict.fromkeys(row["page_bytes"] for row in rows):
        cells = {_column(row): _cell(row) for row in rows if row["page_bytes"] == page_bytes}
        table.add_row(f"{page_bytes >> 10} kB", *(cells.get(column, "") for column in columns))
    console.print(table)


def _column(row: Row) -> str:
    return f"{row['system']} {row['case'].rpartition('-p')[0].removeprefix('fixed-')}".replace("_", " ")


def _cell(row: Row) -> str:
    if row["error"]:
        return "[red]failed[/red]"
    return f"{row['bytes_per_s'] / (1 << 20):.0f}" if "bytes_per_s" in row else f"{row['rows_per_s'] / 1e6:.2f}"
