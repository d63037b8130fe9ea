"""How many tasks an executor runs at once, because they share the executor's byte budget.

    local, local[n], local[*]        1, n, or the processors that the Java machine sees
    local-cluster[workers,n,mb]      n
    yarn, k8s://...                  spark.executor.cores, which is 1 unless set
    spark://...                      spark.executor.cores; unset means "whatever the worker has", so it must be said

Each divided by spark.task.cpus. These are settings, known before the first executor starts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from semistream.errors import UsageError


def task_slots(spark: SparkSession) -> int:
    """Tasks that one executor of this application runs at the same time."""
    master, executor_cores = spark.conf.get("spark.master", ""), spark.conf.get("spark.executor.cores", None)
    cores = executor_cores and int(executor_cores)
    return slots_from(
        master or "", cores or None, int(spark.conf.get("spark.task.cpus", "1") or 1), partial(_processors, spark)
    )


def slots_from(
    master: str, executor_cores: int | None, task_cpus: int = 1, processors: Callable[[], int] = lambda: 1
) -> int:
    """The same from the settings themselves.

    >>> slots_from("local[4]", None), slots_from("local[*]", None, processors=lambda: 8), slots_from("yarn", 6, task_cpus=2)
    (4, 8, 3)
    """
    if local := re.fullmatch(r"local(?:\[\s*(\d+|\*)\s*(?:,\s*\d+\s*)?\])?", master):
        cores = processors() if local[1] == "*" else int(local[1] or 1)
    elif cluster := re.fullmatch(r"local-cluster\[\s*\d+\s*,\s*(\d+)\s*,\s*\d+\s*\]", master):
        cores = int(cluster[1])
    elif executor_cores is not None:
        cores = executor_cores
    elif master == "yarn" or master.startswith("k8s://"):
        cores = 1
    else:
        raise UsageError(
            "enrich: need the number of tasks that share an executor's memory, but spark.executor.cores is not set and "
            f"{master!r} has no fixed default; set spark.executor.cores, or give enrich task_slots="
        )
    return max(1, cores // task_cpus)


def _processors(spark: SparkSession) -> int:
    """What the Java machine sees, which in a container is less than the host has; `local[*]` starts so many threads."""
    try:
        jvm = spark.sparkContext._jvm  # noqa: SLF001 - PySpark has no other door to it
    except PySparkException as exc:
        raise UsageError(
            "enrich: need the number of tasks that share an executor's memory, and through Spark Connect local[*] does not tell it; "
            "give enrich task_slots="
        ) from exc
    return os.cpu_count() or 1 if jvm is None else int(jvm.java.lang.Runtime.getRuntime().availableProcessors())
