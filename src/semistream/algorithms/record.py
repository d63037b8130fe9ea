"""What the table of algorithms says about each: name, origin, capabilities, and how to build it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from semistream.budget import Share
from semistream.pending import Pending
from semistream.protocols import Reader, Recipe


@dataclass(frozen=True)
class Parts:
    """What a recipe is given: the reader of the master, the pending tuples, the bytes of its own shares."""

    reader: Reader
    pending: Pending
    given: dict[str, int]
    key_names: list[str]


Build: TypeAlias = Callable[[Parts], Recipe]
Shares: TypeAlias = Callable[[Reader, int], list[Share]]


@dataclass(frozen=True)
class Algorithm:
    """One line of the table. `next_page`, `leaves` and `keeps` are the three decisions in words."""

    name: str
    title: str
    paper: str
    next_page: str
    leaves: str
    keeps: str
    bound: str
    needs_index: bool
    build: Build = field(repr=False)
    shares: Shares = field(repr=False)
    presets: tuple[str, ...] = ("tuned",)

    @property
    def capabilities(self) -> dict[str, bool | str | list[str]]:
        """What it can do and what it needs."""
        return {
            "index": self.needs_index,
            "sorted": False,
            "unique": False,
            "many_to_many": True,
            "hows": ["inner", "left", "left_semi", "left_anti"],
            "bound": self.bound,
            "presets": list(self.presets),
        }
