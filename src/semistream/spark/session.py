"""`local_session`: a small Spark on this machine, with a Java found and the right Python, for first steps, demos and tests."""

from __future__ import annotations

from pyspark.sql import SparkSession

from semistream.spark.java import prepare_environment

_SMALL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
}


def local_session(cores: int = 2, app: str = "semistream", **settings: str) -> SparkSession:
    """Start Spark in this process's machine with `cores` task slots, or give the session that runs already.

    `settings` are Spark settings with `__` for the dots: `spark__sql__shuffle__partitions="2"`. A session on a cluster is made the
    usual way, with `SparkSession.builder`; `enrich` does not care.
    """
    prepare_environment()
    builder = (
        SparkSession.builder.master(f"local[{cores}]").appName(app).config("spark.sql.shuffle.partitions", str(cores))
    )
    for name, value in _SMALL.items():
        builder = builder.config(name, value)
    for name, value in settings.items():
        builder = builder.config(name.replace("__", "."), value)
    return builder.getOrCreate()
