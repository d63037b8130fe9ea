"""Which machine this is, as one short name."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path


def machine() -> str:
    """Processor, cores and memory as one short name.

    >>> "-" in machine()
    True
    """
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3
    return re.sub(r"[^a-z0-9.]+", "-", f"{_processor()} {os.cpu_count()} cores {gigabytes:.0f} GB".lower()).strip("-")


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.+)", information.read_text()) if information.exists() else None
    return found[1] if found else platform.machine()
