"""Who has waited too long: `max_wait`, as a number of stream tuples or as a time."""

from __future__ import annotations

import time
from collections import deque

from semistream.plan import Wait
from semistream.protocols import Area


class Overdue:
    """Remembers when tuples came, as far as `max_wait` asks for it."""

    def __init__(self, wait: Wait) -> None:
        self._wait = wait
        self._arrivals: deque[tuple[int, float]] = deque()  # (position, time): later tuples count as that one

    def note(self, position: int) -> None:
        """Remember when this position came, a thousand times per `max_wait` at most: however fast batches come, the list is short."""
        if (seconds := self._wait.seconds) is None:
            return
        now = time.monotonic()
        if not self._arrivals or now - self._arrivals[-1][1] > seconds / 1000:
            self._arrivals.append((position, now))

    def somebody_is(self, area: Area, position: int) -> bool:
        """Whether the oldest tuple has waited too long, now that the stream is at this position."""
        wait = self._wait
        if wait.tuples is None and wait.seconds is None:
            return False
        arrived = area.oldest_position()
        if arrived < 0:
            self._arrivals.clear()  # nobody waits: a front may answer all that comes, for ever
            return False
        if wait.tuples is not None:
            return position - arrived > wait.tuples
        while len(self._arrivals) > 1 and self._arrivals[1][0] <= arrived:
            self._arrivals.popleft()
        return time.monotonic() - self._arrivals[0][1] > (wait.seconds or 0.0)
