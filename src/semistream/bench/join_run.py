"""One system, one case, one process: rate and memory in a timed pass, then the answer's checksum in an untimed one.

    load batches -> rehearse (compile) -> baseline of memory -> open -> warm-up | timed | drain -> checksum pass

The batches stay where they are from before the baseline to the end, and an output batch is dropped before the next one
is asked for, so neither the harness's input nor its output is in the growth that it measures.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from semistream.bench.checksum import EMPTY, checksum
from semistream.bench.data import Answers
from semistream.bench.memory import MemoryWatch
from semistream.bench.ours import Ours, device_bytes, fill_page_cache
from semistream.bench.rates import Run, rate
from semistream.bench.rivals import RIVALS, Way

TRIED_SHARES = (0.1, 4.0)  # of the batch size, beside the batch size itself, to find a rival's best
TRIAL_SHARE = 0.2  # of the timed part, for each of a rival's ways and batch sizes
Result = dict[str, Any]


def measure_join(task: dict[str, Any]) -> Result:
    """Run the task; what it found, or an `error` and no rate when the answer is wrong."""
    batches = read_batches(task["stream"])
    answers = Answers.load(task["answers"])
    measure = _measure_rival if task["system"] in RIVALS else _measure_ours
    result, way = measure(task, batches, answers)
    verified = task["verified_batches"]
    found = checksum(way(iter(batches[:verified])), answers.schema)
    expected = sum(answers.batches[:verified], EMPTY)
    result["checksum"] = str(found)
    if found != expected:
        result |= {"rows_per_s": None, "ci95": None, "error": f"wrong answer: checksum {found}, expected {expected}"}
    return result


def rehearse_join(task: dict[str, Any]) -> Result:
    """Compile the kernels and keep them on disk: a compiler at work leaves tens of megabytes in the process it ran in."""
    _rehearse_ours(task, read_batches(task["stream"])[0])
    return {}


def read_batches(path: str) -> list[pa.RecordBatch]:
    """The stream, in memory of its own and not mapped: mapped pages would be counted when they are first touched."""
    with pa.OSFile(path) as file, pa.ipc.open_file(file) as reader:
        return [reader.get_batch(index) for index in range(reader.num_record_batches)]


def _measure_ours(task: dict[str, Any], batches: list[pa.RecordBatch], answers: Answers) -> tuple[Result, Way]:
    system = Ours(task["master"], task["on"], task["system"], task["io"], task["memory_bytes"])
    if task["io"] == "buffered":
        fill_page_cache(task["master"])
    _rehearse_ours(task, batches[0])
    fetched = device_bytes()
    with MemoryWatch() as watch:
        result = _timed(system.join, task, batches, answers)
    budget, growth = task["memory_bytes"], watch.growth_bytes
    result |= system.counters | {"peak_growth_bytes": growth, "memory_budget_bytes": budget}
    result["memory_ok"] = None if growth is None else growth <= budget * 1.10 + (8 << 20)
    result["device_bytes"] = None if fetched is None else (device_bytes() or 0) - fetched
    return result, system.join


def _measure_rival(task: dict[str, Any], batches: list[pa.RecordBatch], answers: Answers) -> tuple[Result, Way]:
    rival = RIVALS[task["system"]]
    for way in rival(task["rehearsal_rows"], task["on"], task["threads"]).ways().values():
        _rehearse(way, batches[0])
    with MemoryWatch() as watch:
        ways = rival(task["rows"], task["on"], task["threads"]).ways()
        watch.forget_peak()
        tried = {name: _trial(way, batches, task) for name, way in ways.items()}
        best = max(tried, key=lambda name: tried[name])
        result = _timed(ways[best], task, batches, answers)
    result["way"] = best
    result |= {"peak_growth_bytes": watch.growth_bytes, "pages_read": 0, "bytes_read": 0}
    return result | _best_batch(ways, batches, result["rows_per_s"], task), ways[best]


def _timed(way: Way, task: dict[str, Any], batches: list[pa.RecordBatch], answers: Answers) -> Result:
    """Warm-up, timed part and drain in one go; the number of answers is checked over all three."""
    counts = [batch.rows for batch in answers.batches]
    run = Run(batches, counts, task["warm_batches"], task["least_batches"], task["timed_s"])
    run.consume(way(run.stream()))
    if run.rows != run.expected(run.given):
        raise RuntimeError(f"wrong answer: {run.rows} rows in the timed pass, expected {run.expected(run.given)}")
    measured = rate(run.intervals, task["batch_rows"])
    return {
        "rows": len(run.intervals) * task["batch_rows"],
        "rows_per_s": measured.rows_per_s,
        "ci95": measured.ci95,
        "rows_joined": run.given * task["batch_rows"],
        "timed_s": sum(run.intervals),
        "cpu_s": run.cpu_s,
        "drain_s": run.drain_s,
    }


def _rehearse(way: Way, batch: pa.RecordBatch) -> None:
    """A whole join of one batch, for its side effects: kernels and libraries are in memory afterwards."""
    for _ in way([batch]):
        pass


def _rehearse_ours(task: dict[str, Any], batch: pa.RecordBatch) -> None:
    """With a small budget as well: one batch then fills every cache, so that its ways to make room are walked, too."""
    for memory_bytes in (task["memory_bytes"] // 8, task["memory_bytes"]):
        _rehearse(Ours(task["master"], task["on"], task["system"], task["io"], memory_bytes).join, batch)


def _trial(way: Way, batches: list[pa.RecordBatch], task: dict[str, Any]) -> float:
    """Rate of a short run over batches whose every tuple has one answer."""
    run = Run(batches, [batch.num_rows for batch in batches], warm=1, least=3, seconds=task["timed_s"] * TRIAL_SHARE)
    run.consume(way(run.stream()))
    return rate(run.intervals, batches[0].num_rows).rows_per_s


def _best_batch(ways: dict[str, Way], batches: list[pa.RecordBatch], rows_per_s: float, task: dict[str, Any]) -> Result:
    """The batch size a rival likes best, of some; cutting and putting together is not timed."""
    table = pa.Table.from_batches(batches)
    tried = {batches[0].num_rows: rows_per_s}
    for share in TRIED_SHARES:
        rows = min(int(batches[0].num_rows * share), table.num_rows)
        starts = range(0, table.num_rows - rows + 1, rows)
        cut = [table.slice(start, rows).combine_chunks().to_batches()[0] for start in starts]
        tried[rows] = max(_trial(way, cut, task) for way in ways.values())
    best = max(tried, key=lambda rows: tried[rows])
    return {"best_batch_rows": best, "best_batch_rows_per_s": tried[best]}
