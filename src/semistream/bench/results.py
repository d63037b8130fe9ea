"""From steps to one object of results: every measurement is a row, one that failed too, with where and how it was taken."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from semistream.bench.cases import SEED
from semistream.bench.machine import git_id, load, machine, versions

Row = dict[str, Any]
Progress = Callable[[int, int, str], None]

# every row has these, null where they say nothing
FIELDS = (
    *("system", "case", "rows", "rows_per_s", "ci95", "memory_budget_bytes", "peak_growth_bytes", "memory_ok"),
    *("pages_read", "bytes_read", "checksum", "threads", "error"),
)


class Sizes(Protocol):
    """What results say of a preset."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def master_rows(self) -> int: ...  # noqa: D102
    @property
    def batch_rows(self) -> int: ...  # noqa: D102


class Step(NamedTuple):
    """One thing to do, and the rows that come of it."""

    doing: str
    measure: Callable[[], list[Row]]


def collect(bench: str, preset: Sizes, steps: list[Step], progress: Progress) -> Row:
    """Do all steps; {"meta": ..., "rows": ...}."""
    started = time.perf_counter()
    taken = datetime.now(UTC).isoformat(timespec="seconds")
    common = {"versions": versions(), "git_id": git_id(), "machine": machine(), "seed": SEED}
    rows: list[Row] = []
    for number, step in enumerate(steps):
        progress(number, len(steps), step.doing)
        load_before = load()
        rows += [dict.fromkeys(FIELDS) | row | common | {"load_before": load_before} for row in step.measure()]
    progress(len(steps), len(steps), "done")
    meta = {"bench": bench, "preset": preset.name, "taken": taken, "seconds": round(time.perf_counter() - started, 1)}
    return {"meta": meta | common | {"master_rows": preset.master_rows, "batch_rows": preset.batch_rows}, "rows": rows}
