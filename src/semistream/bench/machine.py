"""Where and with what a figure was taken, written into every row: machine, versions, revision of the source."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

from semistream.machine import machine

__all__ = ["git_id", "load", "machine", "versions"]

LIBRARIES = ("semistream", "numpy", "numba", "pyarrow", "duckdb", "polars", "pyspark")


def versions() -> dict[str, str]:
    """Versions of Python, the kernel and every library that is compared or used."""
    found = {"python": platform.python_version(), "system": f"{platform.system()} {platform.release()}"}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def git_id() -> str | None:
    """Revision of the checkout this package runs from, with `-dirty` when files differ; None when it is installed."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    return told.stdout.strip() or None


def load() -> float:
    """Mean number of running processes in the last minute: above the cores in use, figures are disturbed."""
    return round(os.getloadavg()[0], 2)
