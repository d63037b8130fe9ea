"""Every measurement in a process of its own: started here, pinned to its cores, ended when it takes too long.

A task goes over as a JSON file and its result comes back as one, so that anything a library prints does no harm.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def run_task(task: dict[str, Any], *, threads: int, timeout_s: float) -> dict[str, Any]:
    """Result of `task` in a new process on `threads` cores; {"error": ...} when it fails, dies or takes too long."""
    with tempfile.TemporaryDirectory() as folder:
        spec, result = Path(folder, "task.json"), Path(folder, "result.json")
        spec.write_text(json.dumps(task | {"result": str(result)}))
        said = run_python(["-m", "semistream.bench.worker", str(spec)], threads=threads, timeout_s=timeout_s)
        if result.exists():
            return dict(json.loads(result.read_text()))
        return {"error": said["error"] or "the process ended without a result"}


def run_python(
    words: list[str], *, threads: int, timeout_s: float, environment: dict[str, str] | None = None
) -> dict[str, Any]:
    """Run this Python with `words`; its output, and as `error` the last thing it said if it failed."""
    limits = dict.fromkeys(("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), str(threads))
    with _pinned(threads):  # a new process inherits the cores of the thread that starts it
        process = subprocess.Popen(
            [sys.executable, *words],
            env=os.environ | limits | (environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        return {"out": out, "err": err, "error": f"took longer than {timeout_s:g} s"}
    failed = (err.strip().splitlines() or ["no message"])[-1] if process.returncode else None
    return {"out": out, "err": err, "error": failed and f"exit code {process.returncode}: {failed}"}


@contextmanager
def _pinned(threads: int) -> Iterator[None]:
    """This thread on the last `threads` of its cores (the first one serves most interrupts), then on all again."""
    if not hasattr(os, "sched_setaffinity"):  # not Linux: the process is not pinned and says so in its row
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[-threads:])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
