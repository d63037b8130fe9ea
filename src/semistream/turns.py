"""Whose turn it is: the stream's, the join's or the caller's. The seconds of the join are counted."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator
from typing import TypeVar

from semistream.errors import UsageError

Item = TypeVar("Item")
Output = TypeVar("Output")


class Turns:
    """The clock of one run."""

    def __init__(self) -> None:
        self.busy_s = 0.0  # neither the stream's nor the caller's
        self.asking = False  # the stream: all that was answered is with the caller, and nobody is at work
        self._clock = 0.0

    def check_asking(self) -> None:
        """Refuse to save a join that may be at work."""
        if not self.asking:
            raise UsageError(
                "save() while the join does not ask its stream for an item: call it in the generator that the join reads, between two items"
            )

    def given(self, batches: Generator[Output, None, None]) -> Iterator[Output]:
        """What the join gives; while the caller has it the clock stands still."""
        try:
            while True:
                self._clock = time.perf_counter()
                batch = next(batches, None)
                self.busy_s += time.perf_counter() - self._clock
                if batch is None:
                    return
                yield batch
        finally:
            batches.close()

    def asked(self, stream: Iterable[Item]) -> Iterator[Item]:
        """What the stream gives; while it is asked the clock stands still."""
        self.asking = True
        try:
            for item in stream:
                self.asking = False
                self._clock = time.perf_counter()
                yield item
                self.busy_s += time.perf_counter() - self._clock
                self.asking = True
        finally:
            self.asking = False
        self._clock = time.perf_counter()
