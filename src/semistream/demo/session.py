"""The Spark session of the demo: the one that runs already, or one of its own whose messages go to a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from semistream.spark import local_session

CORES = 2


@contextmanager
def demo_session(running: SparkSession | None, log: Path) -> Iterator[SparkSession]:
    """Give a session; one that was started here is stopped at the end."""
    running = running or SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    with _errors_to(log):
        session = local_session(CORES, app="semistream demo")
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def _errors_to(log: Path) -> Iterator[None]:
    """Send what is written to standard error to a file: Java inherits it at its start, and logs past Python to the terminal."""
    ours = os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(ours, 2)
        os.close(ours)
