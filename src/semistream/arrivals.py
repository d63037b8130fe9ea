"""When tuples came, and whether the oldest of those who wait has waited longer than `max_wait`."""

from __future__ import annotations

import time
from collections import deque

from semistream.plan import Wait


class Arrivals:
    """The clock of `max_wait`. What it saves are seconds of its own: while no join runs, nobody waits longer."""

    saved = ("now", "_came")

    def __init__(self, wait: Wait) -> None:
        self._wait = wait
        self._began = time.monotonic()
        self._came: deque[tuple[int, float]] = deque()  # (position, second): later tuples count as that one

    @property
    def now(self) -> float:
        """Seconds since the join began."""
        return time.monotonic() - self._began

    @now.setter
    def now(self, seconds: float) -> None:
        self._began = time.monotonic() - seconds

    def note(self, position: int) -> None:
        """Remember when this position came, a thousand times per `max_wait` at most: however fast batches come, the list is short."""
        if (seconds := self._wait.seconds) is None:
            return
        now = self.now
        if not self._came or now - self._came[-1][1] > seconds / 1000:
            self._came.append((position, now))

    def overdue(self, oldest: int, read: int) -> bool:
        """Whether the tuple at position `oldest` (-1: nobody waits) has waited for too long; the stream was read up to `read`."""
        wait = self._wait
        if wait.tuples is None and wait.seconds is None:
            return False
        if oldest < 0:
            self._came.clear()  # nobody waits: a front may answer all that comes, for ever
            return False
        if wait.tuples is not None:
            return read - oldest > wait.tuples
        while len(self._came) > 1 and self._came[1][0] <= oldest:
            self._came.popleft()
        return self.now - self._came[0][1] > (wait.seconds or 0.0)
