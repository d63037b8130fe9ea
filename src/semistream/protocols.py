"""The three small protocols that hold the pieces together: a master, a reader of it, and a recipe.

A *master* is a table that can be opened for reading. A *reader* brings pages of one pinned version into the disk buffer. A *recipe* is one
algorithm: it decides which page is next, which tuples leave, and what stays in memory. Nothing else differs between algorithms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from semistream.budget import Share, Slab
from semistream.keys import KeyCodec
from semistream.parts.memory import I64
from semistream.records import Encoded, RowCodec


class Block(NamedTuple):
    """An encoded batch on its way in: `picks` are the rows still to admit, row 0 stands at `position` in the stream."""

    words: I64
    encoded: Encoded
    picks: I64
    position: int


class Load(NamedTuple):
    """Pages in the disk buffer: where each begins in the slab, and the words whose run of rows goes on outside (flag, word, flag, word)."""

    page_at: I64
    open_words: I64


class Found(NamedTuple):
    """Pairs of a pending tuple and a master row with equal words, and tuples that leave for good once the pairs are settled."""

    slots: I64
    row_at: I64
    heap_at: I64
    gone: I64


class Reader(Protocol):
    """Pages of one version of a master."""

    pages: int
    runs: bool  # rows of one word stand side by side (or a word has one row): a load knows which words are complete
    wants_keys: bool  # `look_up` needs the key's values, its word is not enough
    largest_page_bytes: int
    pages_read: int
    bytes_read: int
    loads: int

    def shares(self) -> list[Share]:
        """What the reader itself needs of the budget (its in-memory index)."""

    def attach(self, slab: Slab, buffer_bytes: int) -> None:
        """Take the disk buffer and the index from the slab."""

    def stop_of(self, first: int) -> int:
        """One behind the last page that fits into the disk buffer together with page `first`."""

    def partition(self, first: int, stop: int) -> tuple[int, int]:
        """The pages to load for a look-up that said first to stop: they hold page `first`, fit the disk buffer, and may be more."""

    def read(self, first: int, stop: int) -> Load:
        """Bring pages first to stop - 1 into the disk buffer."""

    def look_up(self, word: int, keys: Sequence[tuple[Any, ...]]) -> list[tuple[int, int]]:
        """Ranges of pages that hold every row of a word, in reading order; empty if it is surely absent.

        `keys` are the keys of that word that somebody waits for, if the reader wants them.
        """

    def close(self) -> None:
        """Let go of the version."""


class Master(Protocol):
    """A master table: what a join must know of it, and a way to read it."""

    name: str
    schema: pa.Schema
    keys: KeyCodec
    codec: RowCodec
    rows: int
    row_bytes: float  # of a packed row, on average
    most_rows_per_key: int
    has_null_keys: bool
    indexed: bool  # readers can look keys up

    def reader(self) -> Reader:
        """Pin the current version and open it for one join."""


class Recipe(Protocol):
    """One algorithm at work. Built with its parts from the ledger; admits tuples and steps."""

    patience: int  # steps that may pass, with tuples waiting, before one leaves

    def admit(self, block: Block) -> int:
        """Take as many of the block's tuples as fit now; returns how many."""

    def step(self) -> Iterator[Found]:
        """One iteration: read what is to be read next and hand out what it answers."""
