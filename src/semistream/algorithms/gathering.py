"""Gathering: keeping whole words of a master whose rows of a key lie strewn, while it is scanned round and round.

load f: enough tuples wait for a word      -> its rows are collected from the next load on
load f again, one round later              -> all rows have passed: the word answers from now on
"""

from __future__ import annotations

from collections import deque

from semistream.algorithms.admission import Admission
from semistream.parts.memory import I64
from semistream.parts.probing import Picked
from semistream.protocols import Buffer, Load

_LEARNING = 1 / 16  # share of the newest word in the guess how many rows words have
_MOST_AT_ONCE = 1024  # words that are collected at the same time


class Gathering:
    """The disk buffer of a scan, and the `Keeper` of what it passes."""

    def __init__(self, admission: Admission, buffer: Buffer) -> None:
        self._cache, self._buffer = admission.cache, buffer
        self._least_a_row, self._rows = admission.least, 1.0  # rows that words of this master have, as far as was seen
        self._most = min(_MOST_AT_ONCE, self._cache.slots // 8)
        self._begun: deque[tuple[int, int, int]] = deque()  # (first page of the load, word, tuples that waited)
        self._listed: set[int] = set()  # a word that found no room must not begin again before its old round ends
        self._first, self.loads, self.room_bytes = 0, 0, buffer.room_bytes

    def stop_of(self, first: int) -> int:
        """See `Buffer`."""
        return self._buffer.stop_of(first)

    def partition(self, first: int, stop: int) -> tuple[int, int]:
        """See `Buffer`."""
        return self._buffer.partition(first, stop)

    def read(self, first: int, stop: int) -> Load:
        """Read, collect, and finish the words that were begun at this place a round ago."""
        load = self._buffer.read(first, stop)
        self._first, self.loads = first, self.loads + 1
        if self._begun:
            self._cache.gather(load)
        while self._begun and self._begun[0][0] == first:
            _, word, waiting = self._begun.popleft()
            self._listed.remove(word)
            self._rows += _LEARNING * (max(1, self._cache.collected(word)) - self._rows)
            self._cache.finish(word, waiting / self._least_a_row)
        return load

    @property
    def least(self) -> float:
        """Tuples that must wait on a word: for the rows it has, which is a guess before they are collected."""
        return self._least_a_row * self._rows

    def passes(self, rows: Picked) -> None:
        """What is worth keeping is offered."""

    def offer(self, rows: Picked, waiting: I64) -> None:
        """Begin to collect words on which enough tuples wait: these rows are some of theirs, perhaps not all."""
        for word, count in zip(rows.words.tolist(), waiting.tolist(), strict=True):
            if len(self._begun) >= self._most:
                return
            if word not in self._listed and self._cache.begin(word, count):
                self._begun.append((self._first, word, count))
                self._listed.add(word)

    def collect(self, word: int, rows: Picked, waiting: int) -> None:
        """A scan looks nothing up."""

    def finish(self, word: int, waiting: int) -> None:
        """A scan looks nothing up."""
