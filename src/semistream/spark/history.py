"""What the tasks of a join did, added up: over everything, and for each of the last micro-batches.

A task ends with one report: the counters of `join.report()`, and what the join cannot know, which is the query, the micro-batch, the
version of the master and how old that version was. What counts rows, pages or time adds up over tasks. Bytes, waits and ages do
not: of those the largest is kept. A report of a task that had no rows counts it, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from semistream.spark.totals import Counts, merge

KEPT_BATCHES = 100
Reports = dict[tuple[str, str], "Track"]  # by query and join


class Track(NamedTuple):
    """One join of one query."""

    total: Counts
    batches: dict[int, Counts]


def add(reports: Reports, report: Mapping[str, Any]) -> Reports:
    """The same with one more; nothing that was handed out before changes.

    >>> one = add({}, {"query": "q", "join": "products", "batch": 7, "tasks": 1, "tuples_in": 5})
    >>> two = add(one, {"query": "q", "join": "products", "batch": 7, "tasks": 1, "tuples_in": 6})
    >>> [found["q", "products"].batches[7]["tuples_in"] for found in (one, two)]
    [5, 11]
    """
    key, batch = (report["query"], report["join"]), report["batch"]
    track = reports.get(key, Track({}, {}))
    batches = dict(track.batches)
    if batch is not None:
        batches[batch] = merged(batches.get(batch, {}), report)
        for old in sorted(batches)[:-KEPT_BATCHES]:
            del batches[old]
    return {**reports, key: Track(merged(track.total, report), batches)}


def essence(report: Mapping[str, Any]) -> dict[str, Any]:
    """Of a task's report what is added up, to be sent to the driver."""
    return {name: report[name] for name in ("query", "join", "batch")} | merged({}, report)


def merged(left: Mapping[str, Any], right: Mapping[str, Any]) -> Counts:
    """Two reports of the same join; the version is that of the later one that has any."""
    version = right.get("version") or left.get("version")
    return merge(left, right) | ({"version": version} if version else {})


def told(query: str, join: str, batch: int | None, counts: Counts) -> dict[str, Any]:
    """One entry as users see it: who, what was counted, and the shares that follow from it."""
    rows, memory_bytes = counts.get("tuples_in", 0), counts.get("memory_bytes", 0)
    return {
        "query": query,
        "join": join,
        "batch": batch,
        **counts,
        "hit_share": max(0.0, 1 - counts["loads"] / rows) if rows else 0.0,
        "budget_use": counts["bytes_used"] / memory_bytes if memory_bytes else 0.0,
    }
