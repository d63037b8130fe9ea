"""What the table of algorithms says about each: name, origin, capabilities, and how to build it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from semistream.budget import Share, Slab
from semistream.hot_cache import Eviction, HotCache
from semistream.pending import Pending
from semistream.protocols import Buffer, Keeper, Reader, Recipe
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
    row_bytes: float = 0.0  # of a master row, on average
    keeper: Keeper | None = None  # is shown master rows that tuples wait for
    disk: Buffer | None = None  # a disk buffer that a recipe shares with the recipe it holds

    def buffer(self, part: str = "disk buffer") -> Buffer:
        """The disk buffer, in the bytes of that share."""
        if self.disk is not None and part == "disk buffer":
            return self.disk
        return self.reader.buffer(self.slab, part, self.given[part])

    def pending(self) -> Pending:
        """The stream table, in the bytes of its share."""
        matches = match_count(self.slab.total_bytes)
        return Pending(self.slab, self.rows, self.given["stream table"], matches, self.master_codec.width, self.keeper)

    def hot_cache(self, eviction: Eviction, words_per_row: float = 1.0, part: str = "hot cache") -> HotCache:
        """A cache of master rows, in the bytes of that share."""
        matches = match_count(self.slab.total_bytes)
        codec, given = self.master_codec, self.given[part]
        return HotCache(self.slab, codec, self.row_bytes, given, matches, eviction, words_per_row, part)


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
