"""What the table of algorithms says about each: name, origin, capabilities, and how to build it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from semistream.budget import Share, Slab
from semistream.pending import Pending
from semistream.protocols import Buffer, Reader, Recipe
from semistream.records import RowCodec
from semistream.stream_rows import StreamRows, match_count


@dataclass(frozen=True)
class Parts:
    """What a recipe is built from: the reader of the master, the slab and the bytes of its own shares."""

    reader: Reader
    slab: Slab
    given: dict[str, int]
    rows: StreamRows  # of the stream
    master_codec: RowCodec
    key_names: list[str]
    preset: str

    def buffer(self, part: str = "disk buffer", most_bytes: int | None = None) -> Buffer:
        """The disk buffer, in the bytes of that share, or in fewer that hold every page."""
        given = self.given[part]
        if most_bytes is not None:
            given = min(given, max(most_bytes, self.reader.largest_page_bytes + 128))
        return self.reader.buffer(self.slab, part, given)

    def pending(self, most_slots: int | None = None) -> Pending:
        """The stream table, in the bytes of its share."""
        matches, rows = match_count(self.slab.total_bytes), self.rows._replace(most_slots=most_slots)
        return Pending(self.slab, rows, self.given["stream table"], matches, self.master_codec.width)


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
    needs_word_order: bool = False
    threads: int = 1

    @property
    def capabilities(self) -> dict[str, bool | int | str | list[str]]:
        """What it can do and what it needs."""
        return {
            "index": self.needs_index,
            "word_order": self.needs_word_order,
            "sorted": False,
            "unique": False,
            "many_to_many": True,
            "hows": ["inner", "left", "left_semi", "left_anti"],
            "bound": self.bound,
            "threads": self.threads,
            "presets": list(self.presets),
        }
