"""A loader: a disk buffer that is filled while its owner does something else.

empty -- begin --> being filled, by a thread of its own --> full -- serve, from `buffer` --> busy -- empty --> empty
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from semistream.algorithms.choice import Turn
from semistream.protocols import Buffer, Load


class Loader:
    """A buffer and what is to be served from it. Without a thread the buffer is filled when it is read."""

    saved = ("word", "pages")  # what was being read is read again when it is served

    def __init__(self, buffer: Buffer, thread: ThreadPoolExecutor | None) -> None:
        self.buffer, self._thread = buffer, thread
        self.turn: Turn | None = None
        self.pages = (0, 0)
        self.coming: Future[Load] | None = None

    @property
    def word(self) -> int | None:
        """Whose turn it is; None: the buffer is empty."""
        return None if self.turn is None else self.turn.word

    @word.setter
    def word(self, word: int | None) -> None:
        self.turn = None if word is None else Turn(word)

    def begin(self, turn: Turn, pages: tuple[int, int]) -> None:
        """Have the first pages of a turn brought; none if both numbers are the same."""
        self.turn, self.pages = turn, pages
        if self._thread is not None and pages[0] < pages[1]:
            # the disk buffer remembers what lies there: to read these pages again is to find them
            self.coming = self._thread.submit(self.buffer.read, *pages)

    @property
    def full(self) -> bool:
        """Whether its turn can be served."""
        return self.turn is not None and (self.coming is None or self.coming.done())

    def empty(self) -> None:
        """It has been served, or nobody waits for it any more."""
        self.turn = self.coming = None


def first_full(loaders: Sequence[Loader]) -> Loader:
    """A loader that is full, the first one of those; stands still until there is one. An error of its thread comes out here."""
    busy = [loader for loader in loaders if loader.turn is not None]
    if not any(loader.full for loader in busy):
        wait([loader.coming for loader in busy if loader.coming is not None], return_when=FIRST_COMPLETED)
    loader = next(loader for loader in busy if loader.full)
    if loader.coming is not None:
        loader.coming.result()
    return loader
