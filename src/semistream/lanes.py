"""Lanes: settling what a recipe finds, in one thread or in several at the same time.

    strand 0 --> settler 0 --> batches ------------------> caller        this thread
    strand 1 --> settler 1 --> batches --> short queue -->               a thread of its own

Strands have nothing in common, and every settler is used by one strand at a time. Batches of other threads wait in a queue of fixed
length: who is not asked for more does no more.
"""

from __future__ import annotations

import queue
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeAlias

import pyarrow as pa

from semistream.counts import Counts
from semistream.parts.memory import I64
from semistream.protocols import Found
from semistream.settle import Settler

Batch: TypeAlias = tuple[pa.RecordBatch | None, I64]
_QUEUED = 2


class Lanes:
    """A settler for every thread; the first belongs to the thread that runs the join."""

    def __init__(self, settlers: Sequence[Settler]) -> None:
        self.settlers = settlers
        self._pool = ThreadPoolExecutor(len(settlers) - 1, "semistream") if len(settlers) > 1 else None
        self._finished: queue.Queue[Batch | None] = queue.Queue(_QUEUED)
        self._stop = False

    @property
    def counts(self) -> Counts:
        """What all lanes did."""
        first, *others = (settler.counts for settler in self.settlers)
        return sum(others, first) if others else first

    def follow(self, strands: Sequence[Iterator[Found]]) -> Generator[Batch, None, list[Any]]:
        """Settle what strands find, at the same time; returns what the strands return."""
        assert len(strands) <= len(self.settlers)
        if len(strands) == 1 or self._pool is None:
            (strand,) = strands
            return [(yield from _settled(strand, self.settlers[0]))]
        others = [
            self._pool.submit(self._follow_apart, strand, settler)
            for strand, settler in zip(strands[1:], self.settlers[1:], strict=False)
        ]
        try:
            first = yield from self._with_queue(_settled(strands[0], self.settlers[0]), others)
        except BaseException:
            self._abandon(others)
            raise
        return [first, *(other.result() for other in others)]

    def _with_queue(
        self, batches: Generator[Batch, None, Any], others: list[Future[Any]]
    ) -> Generator[Batch, None, Any]:
        """Our own batches, and those that other threads finish meanwhile and afterwards."""
        running, returned = len(others), None
        while True:
            try:
                yield next(batches)
            except StopIteration as end:
                returned = end.value
                break
            while not self._finished.empty():
                batch = self._finished.get()
                if batch is not None:
                    yield batch
                running -= batch is None
        while running:
            batch = self._finished.get()
            if batch is not None:
                yield batch
            running -= batch is None
        return returned

    def _follow_apart(self, strand: Iterator[Found], settler: Settler) -> Any:
        """Follow a strand in this thread; a None in the queue says that it has ended, however it did."""
        batches = _settled(self._until_stopped(strand), settler)
        try:
            while True:
                try:
                    batch = next(batches)
                except StopIteration as end:
                    return end.value
                self._put(batch)
        finally:
            self._put(None)

    def _until_stopped(self, strand: Iterator[Found]) -> Generator[Found, None, Any]:
        """A strand, which may go on for long without a batch."""
        while not self._stop:
            try:
                found = next(strand)
            except StopIteration as end:
                return end.value
            yield found

    def _put(self, batch: Batch | None) -> None:
        """Hand a batch over as soon as there is room, unless nobody wants it any more."""
        while not self._stop:
            try:
                self._finished.put(batch, timeout=0.1)
            except queue.Full:
                continue
            return

    def _abandon(self, others: list[Future[Any]]) -> None:
        """The join ends before its stream: let other threads come to rest."""
        self._stop = True
        for other in others:
            other.exception()

    def flush(self) -> Generator[Batch, None, None]:
        """Close all open batches; nobody may be at work."""
        for settler in self.settlers:
            if (batch := settler.flush()) is not None:
                yield batch

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()


def _settled(strand: Iterator[Found], settler: Settler) -> Generator[Batch, None, Any]:
    """Settle what one strand finds."""
    while True:
        try:
            found = next(strand)
        except StopIteration as end:
            return end.value
        yield from settler.settle(found)
