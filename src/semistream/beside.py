"""Beside: a recipe's steps in a thread of their own, for as long as the join lasts.

    caller's thread   encode, answer, admit | encode, answer, admit | ...  -- stands still only if nothing more can be admitted
                                ^ finished batches, few at a time
    thread of steps   step | step | step | step | ...                      -- stands still only if nobody waits, or nobody takes batches

For recipes whose `admit` and front may run in one thread while `step` runs in another. One condition is all that both share; whoever
stands still sleeps on it.
"""

from __future__ import annotations

import atexit
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from threading import Condition, Thread

from semistream.counts import Counts
from semistream.lanes import Batch
from semistream.protocols import Recipe
from semistream.settle import Settler

_READY = 2  # finished batches between the threads, at most


class Beside:
    """The thread of steps, and what its owner may ask of it."""

    saved = ("_settler", "_ready", "begun", "_ended")

    def __init__(self, settler: Settler, recipe: Recipe) -> None:
        self._settler, self._recipe = settler, recipe
        self._changed = Condition()
        self._ready: deque[Batch] = deque()
        self.begun = 0  # steps
        self._ended = 0
        self._flush = self._stop = self._rest = self._at_rest = False
        self._error: BaseException | None = None
        # a join that nobody has closed must not keep the process from ending, nor run on while it does
        self._thread = Thread(target=self._run, name="semistream-steps", daemon=True)
        atexit.register(self.close)
        self._thread.start()

    @property
    def counts(self) -> Counts:
        """What the steps did."""
        return self._settler.counts

    # ------------------------------------------------------------------------------------------------ caller's thread

    def wake(self) -> None:
        """Tuples have been admitted."""
        with self._changed:
            self._changed.notify_all()

    def finished(self) -> Generator[Batch, None, None]:
        """Batches that are ready."""
        return self._until(lambda: True)

    def step(self) -> Generator[Batch, None, None]:
        """Batches, until a step that begins from now on has ended, or nobody waits."""
        wanted = self.begun + 1
        return self._until(lambda: self._ended >= wanted or not self._recipe.area.waiting)

    def flush(self) -> Generator[Batch, None, None]:
        """Batches, the open one among them."""
        with self._changed:
            self._flush = True
            self._changed.notify_all()
        return self._until(lambda: not self._flush)

    def _until(self, met: Callable[[], bool]) -> Generator[Batch, None, None]:
        """Batches as they come until something is so, and those that are there by then; an error of a step, once."""
        left: int | None = None
        while left is None or left:
            with self._changed:
                self._changed.wait_for(lambda: self._ready or self._error or met())
                if left is None and (met() or self._error):
                    left = len(self._ready)
                batch = self._ready.popleft() if self._ready else None
                self._changed.notify_all()
            if batch is not None:
                left = None if left is None else left - 1
                yield batch
        self._raise_error()

    def _raise_error(self) -> None:
        if self._error is not None:  # for good: the thread has ended, and whoever goes on would wait for it
            raise self._error

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Between two steps, and with no batch open, for as long as this lasts."""
        with self._changed:
            self._rest = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._at_rest or self._error)
        try:
            self._raise_error()
            yield
        finally:
            with self._changed:
                self._rest = False
                self._changed.notify_all()

    def close(self) -> None:
        """Let the thread come to rest; what it has not handed out is lost."""
        with self._changed:
            self._stop = True
            self._changed.notify_all()
        self._thread.join()
        atexit.unregister(self.close)

    # ------------------------------------------------------------------------------------------------ thread of steps

    def _run(self) -> None:
        try:
            while self._goes_on():
                for found in self._recipe.step():
                    for batch in self._settler.settle(found):
                        self._put(batch)
                    if self._flush:
                        self._close_batch()
                    if self._stop:
                        return
                with self._changed:
                    self._ended += 1
                    self._changed.notify_all()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the caller is to have it
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _goes_on(self) -> bool:
        """Stand still while nobody waits; False if the join ends."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._stop or self._flush or self._rest or self._recipe.area.waiting)
                if self._stop:
                    return False
                if not self._flush and not self._rest:
                    self.begun += 1
                    return True
            self._close_batch()
            self._sleep()

    def _sleep(self) -> None:
        """Stand still for as long as the owner wants it."""
        with self._changed:
            while self._rest and not self._stop:
                self._at_rest = True
                self._changed.notify_all()
                self._changed.wait()
            self._at_rest = False

    def _put(self, batch: Batch) -> None:
        """Hand a batch over as soon as there is room, unless nobody wants it any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._stop or self._rest or len(self._ready) < _READY)
            self._ready.append(batch)
            self._changed.notify_all()

    def _close_batch(self) -> None:
        """Hand over the open batch, full or not."""
        if (batch := self._settler.flush()) is not None:
            self._put(batch)
        with self._changed:
            self._flush = False
            self._changed.notify_all()
