"""Memory as the papers count it: how many tuples can wait in what a budget leaves over.

    budget = disk buffers + cache + hand-over buffer + waiting tuples * (bytes in the hash table + bytes in the queue)

The equations of the papers are this identity, with what they call alpha; the content is what they charge for a tuple. The constants are
those that give the table sizes of the published programs. What a tuple really takes here the
recipes' own shares tell.

Published and corrected differ in two places. A cached row stands in a hash table as a tuple does, but only SSBJ charges it so. And the
stream buffer is memory like any other: all papers leave it out, and it is what grows in a burst.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from semistream.errors import BudgetError, UsageError

Form: TypeAlias = Literal["published", "corrected"]
FORMS: tuple[Form, ...] = ("corrected", "published")

STREAM_BUFFER_BYTES = 0.05 * (1 << 20)  # X-HYBRIDJOIN, Optimised X-HYBRIDJOIN, P-CACHEJOIN; ten times as much in SSBJ
_INTEGER = 4


@dataclass(frozen=True)
class Charges:
    """Bytes of a stream tuple and a master row, and what a hash table takes relative to what lies in it."""

    tuple_bytes: int = 20
    row_bytes: int = 120
    fudge: float = 8.0

    def in_chunks(self) -> float:
        """A tuple in the hash table, and a pointer in a chunk of the queue: the MESHJOIN family.

        >>> Charges().in_chunks(), Charges().in_queue()
        (164.0, 204.0)
        """
        return self.fudge * self.tuple_bytes + _INTEGER

    def in_queue(self) -> float:
        """A tuple and the place of its node in the hash table, and a node with two links: the HYBRIDJOIN family."""
        return self.fudge * (self.tuple_bytes + _INTEGER) + 3 * _INTEGER


PUBLISHED = Charges()


@dataclass(frozen=True)
class Layout:
    """What lies in memory beside the waiting tuples, in rows."""

    buffer_rows: float
    buffers: int = 1  # two disk buffers of the same size: OP-CACHEJOIN
    pinned_rows: float = 0.0
    cached_rows: float = 0.0
    handed_tuples: float = 0.0  # room of the buffer between two threads: P-CACHEJOIN
    cache_is_hashed: bool = False  # the paper charges it so: SSBJ


def bytes_beside(layout: Layout, charges: Charges = PUBLISHED, form: Form = "corrected") -> float:
    """Bytes of everything but the waiting tuples."""
    hashed = layout.cache_is_hashed or form == "corrected"
    rows = layout.buffers * layout.buffer_rows + layout.pinned_rows
    rows += layout.cached_rows * (charges.fudge if hashed else 1.0)
    stream_buffer = STREAM_BUFFER_BYTES if form == "corrected" else 0.0
    return rows * charges.row_bytes + layout.handed_tuples * charges.tuple_bytes + stream_buffer


def slots(
    memory_bytes: float, layout: Layout, each_bytes: float, charges: Charges = PUBLISHED, form: Form = "corrected"
) -> float:
    """How many tuples can wait.

    >>> round(slots(50 << 20, Layout(500), Charges().in_queue(), form="published"))
    256710
    """
    beside = bytes_beside(layout, charges, form)
    if memory_bytes - beside < each_bytes:
        needed = int(beside + each_bytes) + 1
        raise BudgetError(
            f"memory={memory_bytes:.0f} bytes: disk buffer, cache and all else beside waiting tuples take {beside:.0f} bytes, and "
            f"a waiting tuple {each_bytes:.0f}; give at least {needed} bytes, or less to the cache",
            part="stream table",
            needed_bytes=needed,
            smallest_bytes=needed,
        )
    return (memory_bytes - beside) / each_bytes


def check_form(form: str) -> None:
    """Refuse a form that there is not."""
    if form not in FORMS:
        raise UsageError(f"form={form!r}: need one of {', '.join(FORMS)}")
