"""Frequent pages and when each is due: a list of fixed length, searched from end to end once a load.

A heap would find the next one faster, and cost more to keep: a load takes ten times as long as a look at a thousand numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semistream.parts.compiler import kernel
from semistream.parts.memory import F64, I64

PAGE_BYTES = 5 * 8


class DuePages(NamedTuple):
    """Ranges of pages, `size[0]` in use. When they are due and were loaded last, counted in tuples; the chance that a tuple needs them."""

    first: I64
    stop: I64
    due: F64
    loaded: F64
    chance: F64
    size: I64


@kernel
def soonest(pages: DuePages) -> int:
    """The entry that is due first, or -1."""
    best, due = -1, np.inf
    for at in range(pages.size[0]):
        if pages.due[at] < due:
            best, due = at, pages.due[at]
    return best


@kernel
def find(pages: DuePages, first: int) -> int:
    """The entry of the pages that begin with this one, or -1."""
    for at in range(pages.size[0]):
        if pages.first[at] == first:
            return at
    return -1


@kernel
def room(pages: DuePages, chance: float) -> int:
    """An entry for pages with this chance: a new one, else that of the least frequent pages; -1 if these are at least as frequent."""
    if pages.size[0] < pages.first.size:
        pages.size[0] += 1
        return pages.size[0] - 1
    least = 0
    for at in range(pages.size[0]):
        if pages.chance[at] < pages.chance[least]:
            least = at
    return least if pages.first.size and pages.chance[least] < chance else -1


@kernel
def remove(pages: DuePages, at: int) -> None:
    """Give an entry up."""
    last = pages.size[0] - 1
    pages.first[at], pages.stop[at] = pages.first[last], pages.stop[last]
    pages.due[at], pages.loaded[at], pages.chance[at] = pages.due[last], pages.loaded[last], pages.chance[last]
    pages.size[0] = last
