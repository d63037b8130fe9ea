"""How long work says how far it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int | None, str], None]  # (done, in total if known, doing what)


def no_progress(done: int, total: int | None, doing: str) -> None:
    """When nobody watches."""
