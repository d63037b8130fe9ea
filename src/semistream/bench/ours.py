"""One of semistream's own algorithms, used through the public interface only."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import semistream as ss

READ_BYTES = 1 << 22


class Ours:
    """A master on disk and a join within a budget; every call of `join` starts a new one."""

    def __init__(self, path: str, on: dict[str, str], algorithm: str, io: str, memory_bytes: int) -> None:
        self.path = path
        self.on = on
        self.algorithm = algorithm
        self.io = io
        self.memory_bytes = memory_bytes
        self.counters: dict[str, int] = {}

    def join(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Join the stream; afterwards `counters` tells what was read."""
        master = ss.open_master(self.path, io=self.io)
        join = ss.Join(master, on=self.on, algorithm=self.algorithm, memory=self.memory_bytes)
        yield from join(batches)
        report: Any = join.report()
        self.counters = {name: int(report[name]) for name in ("pages_read", "bytes_read")}


def fill_page_cache(path: str) -> None:
    """Read every file of a master once, so that `buffered` means a warm page cache."""
    for file in Path(path).rglob("*"):
        if file.is_file():
            with file.open("rb", buffering=0) as opened:
                while opened.read(READ_BYTES):
                    pass


def device_bytes() -> int | None:
    """Bytes this process has fetched from a device, told by the kernel: shows whether O_DIRECT is what it says."""
    counts = Path(f"/proc/{os.getpid()}/io")
    if not counts.exists():
        return None
    return int(dict(line.split(": ") for line in counts.read_text().splitlines())["read_bytes"])
