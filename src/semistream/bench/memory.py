"""How much this process has grown: sampled resident memory, and the kernel's own high-water mark where it can be reset.

The mark sees peaks between two samples; samples still work where the mark cannot be reset. Resident and not proportional size: a measured
process shares only its libraries, and the proportional size of these jumps by tens of megabytes whenever another program that has loaded
them starts or ends. What a page cache holds belongs to no process and is not counted. Linux only: elsewhere the growth
is unknown, not zero.
"""

from __future__ import annotations

import ctypes
import gc
import os
import re
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

ROLLUP = Path("/proc/self/smaps_rollup")
STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")


class MemoryWatch:
    """Growth of this process between `start` and `stop`, in bytes.

    The sampling thread moves to the cores this process does not use, so that a join pinned to one core keeps it to
    itself.
    """

    def __init__(self, interval_s: float = 0.05) -> None:
        self.interval_s = interval_s
        self.base_bytes: int | None = None
        self.peak_bytes = 0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Give back what is free, take the baseline, start to sample."""
        trim()
        self.base_bytes = _resident()
        self.peak_bytes = self.base_bytes or 0
        self._base_mark = _marked_now()
        self._marked = _reset_mark()
        if self.base_bytes is not None:
            self._thread = threading.Thread(target=self._sample, daemon=True)
            self._thread.start()
        return self

    def forget_peak(self) -> None:
        """Keep the baseline but start the peak again: loading is over, what it needed for a moment is not counted."""
        self._marked = _reset_mark()
        self.peak_bytes = _resident() or 0

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take a last sample and end the thread."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._look()
        self._mark = _high_water_mark()

    @property
    def growth_bytes(self) -> int | None:
        """The larger of both views, or None where the system tells nothing."""
        if self.base_bytes is None:
            return None
        growth = self.peak_bytes - self.base_bytes
        return max(growth, self._mark - self._base_mark) if self._marked else growth

    def _look(self) -> None:
        self.peak_bytes = max(self.peak_bytes, _resident() or 0)

    def _sample(self) -> None:
        spare = set(range(os.cpu_count() or 1)) - os.sched_getaffinity(0)
        if spare:
            os.sched_setaffinity(0, spare)  # of this thread only
        while not self._stop.wait(self.interval_s):
            self._look()


def trim() -> None:
    """Return free memory to the system, so that a baseline is not flattered by what an earlier phase left behind."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)


def _reset_mark() -> bool:
    try:
        CLEAR.write_text("5")
    except OSError:
        return False
    return True


def _resident() -> int | None:
    return _field(ROLLUP, "Rss") if ROLLUP.exists() else None


def _marked_now() -> int:
    return _field(STATUS, "VmRSS") or 0


def _high_water_mark() -> int:
    return _field(STATUS, "VmHWM") or 0


def _field(path: Path, name: str) -> int | None:
    found = re.search(rf"^{name}:\s+(\d+) kB", path.read_text(), re.MULTILINE)
    return int(found[1]) * 1024 if found else None
