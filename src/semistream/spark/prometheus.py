"""The text that Prometheus reads: totals of every join as counters, its latest micro-batch as gauges.

>>> print(text([({"query": "q", "join": "products", "tuples_in": 5}, {})]), end="")
# HELP semistream_rows_total Stream rows joined.
# TYPE semistream_rows_total counter
semistream_rows_total{query="q",join="products"} 5
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

_COUNTERS = {
    "tuples_in": ("rows", "Stream rows joined."),
    "rows_out": ("rows_out", "Rows given."),
    "matched": ("matched", "Stream rows with a master row."),
    "unmatched": ("unmatched", "Stream rows without a master row."),
    "tasks": ("tasks", "Tasks that ended."),
    "tasks_empty": ("tasks_empty", "Tasks that had no rows."),
    "loads": ("loads", "Reads of the master."),
    "pages_read": ("pages_read", "Pages of the master read."),
    "bytes_read": ("bytes_read", "Bytes of the master read."),
    "busy_s": ("busy_seconds", "Time in which the joins worked, of all tasks together."),
}
_GAUGES = {
    "batch": ("batch", "Number of the latest micro-batch."),
    "tuples_in": ("batch_rows", "Stream rows of the latest micro-batch."),
    "hit_share": ("batch_hit_share", "Share of rows that were answered without a read of their own."),
    "wait_tuples_max": ("batch_wait_tuples", "Longest wait of a row, in rows that came after it."),
    "staleness_s": ("batch_staleness_seconds", "Age of the master's version when it was used."),
    "budget_use": ("batch_budget_use", "Largest share of its memory that a task used."),
    "memory_bytes": ("batch_memory_bytes", "Memory of a task."),
}
Joins = Sequence[tuple[dict[str, Any], dict[str, Any]]]  # totals and latest micro-batch of each


def text(joins: Joins) -> str:
    """All joins, one metric after the other, as the format asks for."""
    totals, latest = [total for total, _ in joins], [batch for _, batch in joins]
    lines: list[str] = []
    for name, (metric, about) in _COUNTERS.items():
        lines += _metric(f"semistream_{metric}_total", "counter", about, name, totals)
    for name, (metric, about) in _GAUGES.items():
        lines += _metric(f"semistream_{metric}", "gauge", about, name, latest)
    about = "1 for the version of the master that the latest micro-batch used."
    lines += _metric("semistream_batch_version", "gauge", about, "version", latest)
    return "".join(f"{line}\n" for line in lines)


def _metric(metric: str, kind: str, about: str, name: str, entries: list[dict[str, Any]]) -> Iterator[str]:
    found = [entry for entry in entries if entry.get(name) is not None]
    if not found:
        return
    yield f"# HELP {metric} {about}"
    yield f"# TYPE {metric} {kind}"
    for entry in found:
        version = isinstance(entry[name], str)
        labels = {key: entry[key] for key in ("query", "join")} | ({"version": entry[name]} if version else {})
        inside = ",".join(f'{key}="{_escaped(value)}"' for key, value in labels.items())
        yield f"{metric}{{{inside}}} {1 if version else entry[name]}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
