"""Choices: which pages HYBRIDJOIN serves next. Oldest first is the plain one; a variant differs in this small object and nothing else.

    entered(slots)          tuples were admitted
    next()                  what to serve: a word of a waiting tuple, or pages
    loaded(begin, end, ..)  pages were read and probed; may let more tuples leave
    left(word)              the tuples of a served word have left

Ages are counted in tuples that entered the stream table. Stamps are positions in the stream, of which a cache may have answered most, so
that positions are scaled by the share that entered.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from semistream.algorithms.record import Parts
from semistream.parts.memory import I64
from semistream.pending import Pending
from semistream.protocols import Buffer, Found, Load


class Turn(NamedTuple):
    """What a step serves: every tuple of a word, or (without one) whoever waits for these pages."""

    word: int | None
    pages: tuple[int, int] = (0, 0)


class Choice(Protocol):
    """Which pages are next."""

    patience: int  # steps that may pass before a tuple leaves

    def start(self, parts: Parts, buffer: Buffer, pending: Pending) -> None:
        """Take memory and get to know the waiting tuples."""

    def entered(self, slots: I64) -> None:
        """Tuples were admitted."""

    def next(self) -> Turn:
        """What to serve; somebody waits."""

    def loaded(self, begin: int, end: int, load: Load, left: int) -> Iterator[Found]:
        """These pages were probed and `left` tuples left. Others that the load has answered may leave now."""

    def left(self, word: int) -> None:
        """The tuples of a word that was looked up have left."""


class OldestFirst:
    """The tuple that has waited longest, and what every other choice falls back to."""

    patience = 1

    def __init__(self) -> None:
        self.arrivals = 0  # tuples that entered

    def start(self, parts: Parts, buffer: Buffer, pending: Pending) -> None:
        """Get to know the waiting tuples."""
        self.pending = pending

    def entered(self, slots: I64) -> None:
        """Count them."""
        self.arrivals += slots.size

    def next(self) -> Turn:
        """The oldest tuple's word."""
        return Turn(self.pending.oldest_word())

    def age(self) -> float:
        """Tuples that entered since the oldest did."""
        since = self.pending.now - self.pending.oldest_position()
        return since * self.arrivals / max(1, self.pending.now)

    def is_due(self, most_age: float = math.inf) -> bool:
        """Whether the oldest tuple has waited for more stream tables of tuples than that, or for as long as the user allows."""
        return self.pending.hurry or self.age() > most_age * self.pending.slots

    def loaded(self, begin: int, end: int, load: Load, left: int) -> Iterator[Found]:
        """Nobody else leaves."""
        return iter(())

    def left(self, word: int) -> None:
        """Nothing is remembered."""
