"""How fast one file gives pages of one size: in order and at random places, through the page cache and past it."""

from __future__ import annotations

import mmap
import os
import random
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

READS_PER_LOOK = 64  # reads between two looks at the clock


def measure_reads(task: dict[str, Any]) -> dict[str, Any]:
    """Reads and bytes per second of one thread that waits for every read."""
    path = max((one for one in Path(task["master"]).rglob("*") if one.is_file()), key=lambda one: one.stat().st_size)
    direct = os.O_DIRECT if task["io"] == "direct" else 0
    page_bytes = task["page_bytes"]
    pages = path.stat().st_size // page_bytes
    page = mmap.mmap(-1, page_bytes)  # O_DIRECT wants aligned memory
    file = os.open(path, os.O_RDONLY | direct)
    try:
        if not direct:
            _read_for(file, page, iter(range(pages)), None)
        seconds, reads = _read_for(file, page, _places(pages, task["order"]), task["seconds"])
    finally:
        os.close(file)
    return {"rows": reads, "rows_per_s": reads / seconds, "bytes_per_s": reads * page_bytes / seconds}


def _places(pages: int, order: str) -> Iterator[int]:
    """Page numbers without end."""
    places = list(range(pages))
    if order == "random":
        random.Random(1).shuffle(places)
    return cycle(places)


def _read_for(file: int, page: mmap.mmap, places: Iterator[int], seconds: float | None) -> tuple[float, int]:
    """Read until the time is used up, or to the end of the places; the time used and the number of reads."""
    reads = 0
    start = time.perf_counter()
    for place in places:
        os.preadv(file, [page], place * len(page))
        reads += 1
        if seconds is not None and reads % READS_PER_LOOK == 0 and time.perf_counter() - start >= seconds:
            break
    return time.perf_counter() - start, reads
