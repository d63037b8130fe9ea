"""What the table of algorithms says about each: name, origin, capabilities, and how to build it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TypeAlias

from semistream.budget import Share, Slab
from semistream.hot_cache import LEAST_BYTES, Eviction, HotCache, row_cost
from semistream.parts.page import ALIGNMENT
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
    threads: int
    master_rows: int
    master_row_bytes: float  # of a packed row, on average
    keeper: Keeper | None = None  # is shown master rows that tuples wait for
    disk: Buffer | None = None  # a disk buffer that a recipe shares with the recipe it holds
    closing: ExitStack = field(default_factory=ExitStack)  # closed when the join ends, before the reader is

    def buffer(self, part: str = "disk buffer", most_bytes: int | None = None) -> Buffer:
        """The disk buffer, in the bytes of that share, or in fewer that hold every page."""
        if self.disk is not None and part == "disk buffer":
            return self.disk
        given = self.given[part]
        if most_bytes is not None:
            given = min(given, max(most_bytes, self.reader.largest_page_bytes + 128))
        return self.reader.buffer(self.slab, part, given)

    def buffers(self, part: str, each_bytes: int) -> list[Buffer]:
        """As many disk buffers of that size as the share has room for."""
        count = (self.given[part] - ALIGNMENT) // each_bytes
        return [self.reader.buffer(self.slab, part, each_bytes) for _ in range(count)]

    def pending(self, most: int | None = None, extra_bytes: int = 0) -> Pending:
        """The stream table, in the bytes of its share; at most so many tuples, if the recipe sets itself a limit.

        With `extra_bytes`, so many for each slot are left over for the recipe.
        """
        matches, given = match_count(self.slab.total_bytes), self.given["stream table"]
        given -= extra_bytes * self.rows.slots_in(given, extra_bytes)
        if most is not None:
            given = min(given, self.rows.bytes_for(most))
        return Pending(self.slab, self.rows, given, matches, self.master_codec.width, self.keeper)

    def hot_cache(
        self, eviction: Eviction, words_per_row: float = 1.0, part: str = "hot cache", most_rows: int | None = None
    ) -> HotCache:
        """A cache of master rows, in the bytes of that share; at most so many rows, if the recipe sets itself a limit."""
        matches = match_count(self.slab.total_bytes)
        codec, given = self.master_codec, self.given[part]
        if most_rows is not None:
            row_bytes = row_cost(codec, self.master_row_bytes, words_per_row)
            given = min(given, LEAST_BYTES + int(most_rows * row_bytes))
        return HotCache(self.slab, codec, self.master_row_bytes, given, matches, eviction, words_per_row, part)


Build: TypeAlias = Callable[[Parts], Recipe]
Shares: TypeAlias = Callable[[Reader, int], list[Share]]
WaitingShares: TypeAlias = Callable[[Reader, StreamRows, int, int], list[Share]]


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
    published_shares: Shares | None = field(default=None, repr=False)  # where the published sizes ask for others
    needs_word_order: bool = False
    scans: bool = False  # reads all of the master to let everybody who waits go, however few they are
    ordered: bool = False  # output keeps the order of the stream, asked for or not
    threads: int = 1  # at most; an algorithm with several is `protocols.Stranded`, or
    steps_apart: bool = False  # has steps that may run in the second thread while the first one answers and admits
    waiting_shares: WaitingShares | None = field(default=None, repr=False)  # where tuples do not wait in `Pending`

    def shares_for(self, preset: str) -> Shares:
        """What its parts ask for with these parameters."""
        return self.published_shares if preset == "published" and self.published_shares is not None else self.shares

    @property
    def capabilities(self) -> dict[str, bool | int | str | list[str]]:
        """What it can do and what it needs."""
        return {
            "index": self.needs_index,
            "word_order": self.needs_word_order,
            "sorted": False,
            "unique": False,
            "many_to_many": True,
            "ordered": self.ordered,
            "hows": ["inner", "left", "left_semi", "left_anti"],
            "bound": self.bound,
            "threads": self.threads,
            "presets": list(self.presets),
        }
