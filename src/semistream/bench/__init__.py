"""Measurements: joins against in-memory engines, building, start-up, and the curve behind the default page size.

`run_core` is `semistream bench core`, `run_pages` is `semistream bench pages`, `run_spark` is `semistream bench
spark`. Rules and limitations: benchmarks/README.md.
"""

from __future__ import annotations

import json as as_json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from semistream.bench.core import measure_core
from semistream.bench.pages import measure_pages, show_pages
from semistream.bench.results import Progress
from semistream.bench.spark import measure_spark
from semistream.bench.table import show_core, show_spark

__all__ = ["run_core", "run_pages", "run_spark"]

DATA = Path(".cache", "bench")
REPORT_WIDTH = 140  # where no terminal says how wide it is


def run_core(
    preset: str = "quick",
    json: bool = False,
    systems: list[str] | None = None,
    cases: list[str] | None = None,
    progress: Progress | None = None,
    data: str | Path = DATA,
) -> dict[str, Any]:
    """Measure the chosen systems in the chosen cases and print the results, as one JSON object or as tables.

    `progress(done, total, doing)` is called before every measurement; `data` keeps tables and streams for the next run.
    """
    found = measure_core(preset, systems, cases, Path(data).absolute(), progress or _quiet)
    _print(found, show_core, json)
    return found


def run_pages(
    preset: str = "quick", json: bool = False, progress: Progress | None = None, data: str | Path = DATA
) -> dict[str, Any]:
    """Measure joins and bare reads at every page size and print the results, as `run_core` does."""
    found = measure_pages(preset, Path(data).absolute(), progress or _quiet)
    _print(found, show_pages, json)
    return found


def run_spark(
    preset: str = "quick",
    json: bool = False,
    systems: list[str] | None = None,
    cases: list[str] | None = None,
    progress: Progress | None = None,
    data: str | Path = DATA,
) -> dict[str, Any]:
    """Measure `enrich` against Spark's own joins and print the results, as `run_core` does."""
    found = measure_spark(preset, systems, cases, Path(data).absolute(), progress or _quiet)
    _print(found, show_spark, json)
    return found


def _print(found: dict[str, Any], show: Callable[[dict[str, Any], Console], None], json: bool) -> None:
    if json:
        sys.stdout.write(as_json.dumps(found) + "\n")
    else:
        show(found, Console() if sys.stdout.isatty() else Console(width=REPORT_WIDTH))


def _quiet(done: int, total: int, doing: str) -> None:
    """Progress nobody watches."""
