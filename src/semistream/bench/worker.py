"""The process in which one thing is measured: `python -m semistream.bench.worker TASK.json`.

It writes the file that the task names as `result`.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from semistream.bench.build_run import measure_build
from semistream.bench.join_run import measure_join, rehearse_join
from semistream.bench.page_run import measure_reads


def measure_spark(task: dict[str, Any]) -> dict[str, Any]:
    """A join on Spark, which is loaded only now."""
    from semistream.bench.spark_run import measure

    return measure(task)


TASKS = {
    "join": measure_join,
    "rehearse": rehearse_join,
    "build": measure_build,
    "reads": measure_reads,
    "spark": measure_spark,
}


def main(path: str) -> None:
    """Do the task; whatever goes wrong is a result too, and the trace goes to the terminal."""
    task: dict[str, Any] = json.loads(Path(path).read_text())
    task["threads"] = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else task["threads"]
    try:
        result = TASKS[task["task"]](task)
    except Exception as error:  # noqa: BLE001 - a system that fails must not end the whole run
        traceback.print_exc()
        result = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}  # Spark goes on with its plan
    Path(task["result"]).write_text(json.dumps(result | {"threads": task["threads"]}))


if __name__ == "__main__":
    main(sys.argv[1])
