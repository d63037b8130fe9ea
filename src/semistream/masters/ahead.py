"""Work ahead: while one step handles an item, the step before it prepares the next one in a thread of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Item = TypeVar("Item")

_END: Any = object()


def ahead(items: Iterator[Item], depth: int = 2) -> Iterator[Item]:
    """The same items, prepared at most `depth` ahead; an error in preparing one comes out in its place.

    >>> list(ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    with ThreadPoolExecutor(1, "semistream-ahead") as thread:
        pending = deque(thread.submit(next, items, _END) for _ in range(depth))
        while (item := pending.popleft().result()) is not _END:
            pending.append(thread.submit(next, items, _END))
            yield item
