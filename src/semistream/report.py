"""What a join did: counters, rates, waits and bytes, as one plain dict."""

from __future__ import annotations

from typing import Any

from semistream.counts import Counts
from semistream.parts import waits
from semistream.protocols import Deciding, Reader, Recipe


def empty_report(algorithm: str, memory_bytes: int) -> dict[str, Any]:
    """The report of a join that has seen no row."""
    return {
        "algorithm": algorithm,
        "memory_bytes": memory_bytes,
        "bytes_by_part": {},
        "bytes_used": 0,
        "tuples_in": 0,
        "rows_out": 0,
        "matched": 0,
        "unmatched": 0,
        "finished": 0,  # tuples that were answered, or found to have no answer
        "waited": 0,  # of these, tuples that had to wait: the others were answered as they came
        "waiting": 0,
        "shed": 0,  # tuples that came in = finished + waiting + shed
        "steps": 0,
        "loads": 0,
        "pages_read": 0,
        "bytes_read": 0,
        "hit_share": 0.0,  # share of tuples that were answered without a read of their own
        "busy_s": 0.0,  # neither waiting for the stream nor for the caller
        "rows_per_s": 0.0,
        "stream_slots": 0,  # tuples that can wait at once
        "wait_tuples_p50": 0,
        "wait_tuples_p99": 0,
        "wait_tuples_max": 0,
        "decisions": [],  # what the algorithm decided by itself, and why, in words
    }


def build_report(
    start: dict[str, Any],
    bytes_by_part: dict[str, int],
    counts: Counts,
    recipe: Recipe,
    reader: Reader,
    steps: int,
    busy_s: float,
) -> dict[str, Any]:
    """The report of a join at any moment of its run; `start` is the empty one."""
    area = recipe.area
    return start | {
        "bytes_by_part": dict(bytes_by_part),
        "bytes_used": sum(bytes_by_part.values()),
        "tuples_in": counts.tuples_in,
        "rows_out": counts.rows_out,
        "matched": counts.matched,
        "unmatched": counts.unmatched,
        "finished": counts.finished,
        "waited": int(area.wait_histogram.sum()),
        "waiting": area.waiting,
        "shed": counts.shed,
        "steps": steps,
        "loads": reader.loads,
        "pages_read": reader.pages_read,
        "bytes_read": reader.bytes_read,
        "hit_share": max(0.0, 1 - reader.loads / counts.finished) if counts.finished else 0.0,
        "busy_s": busy_s,
        "rows_per_s": counts.finished / busy_s if busy_s else 0.0,
        "stream_slots": area.slots,
        "wait_tuples_p50": min(waits.quantile(area.wait_histogram, 0.5), area.wait_max),
        "wait_tuples_p99": min(waits.quantile(area.wait_histogram, 0.99), area.wait_max),
        "wait_tuples_max": area.wait_max,
        "decisions": recipe.decisions() if isinstance(recipe, Deciding) else [],
    }
