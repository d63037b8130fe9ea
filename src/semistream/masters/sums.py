"""Sizes and checksums of whole files, as the manifest keeps them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import xxhash


class Writable(Protocol):
    """Something that bytes can be appended to."""

    def write(self, data: memoryview, /) -> int:
        """Append these bytes."""


class SummedFile:
    """A file that knows the checksum of what was written to it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._digest, self._bytes = file, xxhash.xxh3_64(), 0

    def write(self, data: memoryview) -> int:
        """Append these bytes."""
        self._file.write(data)
        self._digest.update(data)
        self._bytes += data.nbytes
        return data.nbytes

    def sum(self) -> dict[str, Any]:
        """The same as `file_sum` of the finished file."""
        return {"bytes": self._bytes, "xxh3": self._digest.hexdigest()}


def file_sum(path: Path, seen: Callable[[int], None] | None = None) -> dict[str, Any]:
    """Size and checksum of a file; `seen` is told of the bytes read."""
    digest, size = xxhash.xxh3_64(), 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
            size += len(block)
            if seen is not None:
                seen(len(block))
    return {"bytes": size, "xxh3": digest.hexdigest()}
