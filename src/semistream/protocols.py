"""The three small protocols that hold the pieces together: a master, a reader of it, and a recipe.

A *master* is a table that can be opened for reading. A *reader* brings pages of one pinned version into the disk buffer. A *recipe* is one
algorithm: it decides which page is next, which tuples leave, and what stays in memory. Nothing else differs between algorithms.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import pyarrow as pa

from semistream.budget import Share, Slab
from semistream.keys import KeyCodec
from semistream.parts.memory import I64, U8
from semistream.parts.probing import Picked
from semistream.records import RowCodec
from semistream.stream_side import Block, Side


class Load(NamedTuple):
    """Pages in the disk buffer: where each begins in the slab, and the words whose run of rows goes on outside (flag, word, flag, word)."""

    page_at: I64
    open_words: I64


class Found(NamedTuple):
    """Pairs of a stream tuple (`picks` of `side`) and a master row with equal words, and tuples of that side that leave for good once
    the pairs are settled.
    """

    side: Side
    picks: I64
    row_at: I64
    heap_at: I64
    gone: I64


class Order(NamedTuple):
    """The sparse index of a master in word order: the first word of every page, whether the page before ends with the same one, and
    where pages begin (one number more than there are pages).
    """

    first_words: I64
    continues: U8
    page_at: I64


class Buffer(Protocol):
    """A disk buffer: some bytes of the slab, and what has been read into them. One thread at a time uses a buffer."""

    loads: int
    room_bytes: int

    def stop_of(self, first: int) -> int:
        """One behind the last page that fits into the buffer together with page `first`."""

    def partition(self, first: int, stop: int) -> tuple[int, int]:
        """The pages to load for a look-up that said first to stop: they hold page `first`, fit the buffer, and may be more."""

    def read(self, first: int, stop: int) -> Load:
        """Bring pages first to stop - 1 into the buffer."""


class KeyedBuffer(Buffer, Protocol):
    """A disk buffer of a reader that `wants_keys`: it can also bring the rows of many keys by one question."""

    def fetch(self, keys: Sequence[tuple[Any, ...]]) -> Iterator[Load]:
        """All rows of these keys, a buffer full at a time."""


class Reader(Protocol):
    """Pages of one version of a master."""

    pages: int
    indexed: bool  # `look_up` works
    word_order: bool  # rows stand in the order of their words
    runs: bool  # rows of one word stand side by side (or a word has one row): a load knows which words are complete
    wants_keys: bool  # `look_up` needs the key's values, its word is not enough
    largest_page_bytes: int
    order: Order | None  # once attached; None: rows do not stand in word order
    threads: bool  # several buffers may be read at the same time
    gap_bytes: int  # reading so many bytes takes as long as asking once more

    @property
    def loads(self) -> int:
        """Reads, by all buffers."""

    @property
    def pages_read(self) -> int:
        """Pages read, by all buffers."""

    @property
    def bytes_read(self) -> int:
        """Bytes read, by all buffers and of indexes."""

    def shares(self) -> list[Share]:
        """What the reader itself needs of the budget (its in-memory index)."""

    def attach(self, slab: Slab) -> None:
        """Take the index from the slab."""

    def buffer(self, slab: Slab, part: str, given_bytes: int) -> Buffer:
        """A disk buffer in the slab, charged to `part`."""

    def look_up(self, word: int, keys: Sequence[tuple[Any, ...]]) -> list[tuple[int, int]]:
        """Ranges of pages that hold every row of a word, in reading order; empty if it is surely absent.

        `keys` are the keys of that word that somebody waits for, if the reader wants them.
        """

    def brings_all(self, word: int) -> bool:
        """Whether a look-up brings all rows of the word, whichever of its keys is looked up."""

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
    word_order: bool  # rows stand in the order of their words, and readers have an `order`

    @property
    def fingerprint(self) -> str:
        """Of its rows and of where they lie: a saved join goes on over the same only."""

    def reader(self) -> Reader:
        """Pin the current version and open it for one join."""


class Keeper(Protocol):
    """Is shown master rows while tuples wait for them, and may keep copies. Rows in the disk buffer are gone after the call."""

    @property
    def least(self) -> float:
        """Tuples that must wait on a word, for each of its rows that lie side by side, to have it offered."""

    def passes(self, rows: Picked) -> None:
        """All rows of a load that somebody waits for, and some others; what is worth it is offered next."""

    def offer(self, rows: Picked, waiting: I64) -> None:
        """All rows of some words, those of a word side by side, and for each how many tuples wait on its word."""

    def collect(self, word: int, rows: Picked, waiting: int) -> None:
        """Some rows of one word; there may be more calls before `finish`."""

    def finish(self, word: int, waiting: int) -> None:
        """All rows of the word, none perhaps, have been shown to `collect`."""


class Area(Protocol):
    """Where tuples wait: what a report, and the loop, must know of it."""

    slots: int  # tuples that can wait at once
    hurry: bool  # the oldest tuple has waited for as long as it may: it is to be served next

    @property
    def holding(self) -> bool:
        """Whether the first tuple of the block that is being admitted is served from the block: it is to be admitted, and not shed."""

    @property
    def waiting(self) -> int:
        """Tuples that wait."""

    @property
    def wait_histogram(self) -> I64:
        """How long those have waited who left (parts/waits.py)."""

    @property
    def wait_max(self) -> int:
        """The longest wait."""

    def oldest_position(self) -> int:
        """Stream position of the tuple that has waited longest, or -1."""


class Front(Protocol):
    """What answers tuples before they would have to wait."""

    def answer(self, block: Block) -> Generator[Found, None, Block]:
        """Hand out what is found for tuples of the block; returns the block with the picks that are left."""


class Stranded(Protocol):
    """What a recipe with several threads offers besides: an iteration in strands that have nothing in common."""

    def strands(self) -> list[Iterator[Found]]:
        """One iteration, each strand to be followed in a thread of its own; at most as many as the recipe has threads."""

    def answer(self, block: Block, thread: int) -> Generator[Found, None, Block]:
        """As a front does, in a thread of that number."""


@runtime_checkable
class Deciding(Protocol):
    """What a recipe that sets itself up offers besides."""

    def decisions(self) -> list[str]:
        """What it decided, and why, in words."""


class Recipe(Protocol):
    """One algorithm at work. Built with its parts from the ledger; admits tuples and steps.

    If its `steps_apart` (algorithms/record.py), one thread may step while another admits and has the front answer, and asks the area.
    """

    patience: int  # steps that may pass, with tuples waiting, before one leaves

    @property
    def area(self) -> Area:
        """Where its tuples wait."""

    @property
    def front(self) -> Front | None:
        """What answers tuples at once, if there is such a thing."""

    def admit(self, block: Block) -> int:
        """Take as many of the block's tuples as fit now; returns how many."""

    def step(self) -> Iterator[Found]:
        """One iteration: read what is to be read next and hand out what it answers."""
