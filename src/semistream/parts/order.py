"""Which prefix of a window of stream positions is finished."""

from __future__ import annotations

from semistream.parts.compiler import kernel
from semistream.parts.memory import I64, U8


@kernel
def finish(done: U8, positions: I64) -> None:
    """Mark positions as finished; the window is a ring."""
    for position in positions:
        done[position % done.size] = 1


@kernel
def advance(done: U8, due: int, stop: int) -> int:
    """First unfinished position from `due` on, at most `stop`; the finished ones are cleared for the ring's next turn."""
    while due < stop and done[due % done.size]:
        done[due % done.size] = 0
        due += 1
    return due
