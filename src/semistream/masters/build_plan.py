"""What a build is asked to do, checked before anything is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Final

from semistream.errors import BudgetError, ColumnError, UsageError
from semistream.keys import KeyCodec
from semistream.masters.duck_sort import LEAST_BYTES
from semistream.masters.frequency import Ranker, ranker
from semistream.masters.pages import stored_codec
from semistream.masters.progress import Progress
from semistream.masters.sources import Source
from semistream.parts import page
from semistream.records import RowCodec
from semistream.units import format_bytes, parse_bytes

LAYOUTS: Final = ("key", "heap", "frequency")
LEAST_MEMORY: Final = LEAST_BYTES * 3 // 2


@dataclass(frozen=True)
class Plan:
    """Everything that is known, and checked, before the first byte is written."""

    folder: Path
    source: Source
    keys: KeyCodec
    codec: RowCodec
    layout: str
    rank: Ranker | None
    page_bytes: int | None
    memory_bytes: int
    progress: Progress


def plan_build(
    path: str | PathLike[str],
    source: Source,
    key: str | Sequence[str],
    layout: str,
    frequency: Any,
    page_bytes: int | None,
    memory: int | str,
    progress: Progress,
) -> Plan:
    """Check what was asked for; nothing is written before this."""
    if "://" in str(path):
        raise UsageError(f"{path}: masters are built in a folder; give a path")
    names = [key] if isinstance(key, str) else list(key)
    _check_columns(source, names)
    if layout not in LAYOUTS:
        raise UsageError(f"layout={layout!r}: need one of {', '.join(LAYOUTS)}")
    if (frequency is not None) != (layout == "frequency"):
        raise UsageError(
            f"layout={layout!r} with frequency={frequency!r:.40}: give frequency= with layout='frequency' and only then"
        )
    if page_bytes is not None and (page_bytes < page.ALIGNMENT or page_bytes % page.ALIGNMENT or page_bytes > 1 << 24):
        raise UsageError(f"page_bytes={page_bytes}: need a multiple of {page.ALIGNMENT}, at most 16 MB")
    memory_bytes = parse_bytes(memory)
    if memory_bytes < LEAST_MEMORY:
        raise BudgetError(
            f"memory={memory!r}: sorting a master needs at least {LEAST_MEMORY} bytes ({format_bytes(LEAST_MEMORY)})",
            part="sort",
            needed_bytes=LEAST_MEMORY,
            smallest_bytes=LEAST_MEMORY,
        )
    keys = KeyCodec([source.schema.field(name) for name in names])
    rank = None if frequency is None else ranker(frequency, source.schema, keys, memory_bytes // 4)
    codec = stored_codec(source.schema, keys)
    return Plan(Path(path), source, keys, codec, layout, rank, page_bytes, memory_bytes, progress)


def _check_columns(source: Source, key: list[str]) -> None:
    names = source.schema.names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ColumnError(f"{source.name}: has more than one column {twice[0]!r}; rename one")
    missing = [name for name in key if name not in names]
    if missing or not key:
        raise ColumnError(
            f"{source.name}: key={key}: there is no column {(missing or [''])[0]!r}; it has {', '.join(names)}"
        )
    if len(set(key)) < len(key):
        raise ColumnError(f"key={key}: names a column twice")
