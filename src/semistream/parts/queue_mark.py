"""A mark in the arrival queue: the tuple that stands at a fixed share of the queue, counted from the young end.

    oldest <-> ... <-> [marked] <-> ... <-> newest
                               younger ones ---->

The mark knows how many tuples are younger than it. Every tuple that comes or leaves changes that number, or the wanted one, by one
at most, so the mark moves one place for it: constant work a tuple, and no walk through the queue.
"""

from __future__ import annotations

import numpy as np

from semistream.parts import slots as queue
from semistream.parts.compiler import kernel
from semistream.parts.memory import I64
from semistream.parts.slots import ARRIVED, NEWER, OLDER, Slots

# positions in a mark
SLOT, YOUNGER, COUNT = 0, 1, 2


def reset(mark: I64) -> None:
    """The mark of an empty queue."""
    mark[:] = (-1, 0, 0)


@kernel
def enter(mark: I64, picks: I64) -> None:
    """Tuples were put behind the newest."""
    if picks.size and mark[SLOT] < 0:
        mark[SLOT] = picks[0]
        mark[YOUNGER] = -1
    mark[YOUNGER] += picks.size
    mark[COUNT] += picks.size


@kernel
def dequeue(slots: Slots, ends: I64, mark: I64, picks: I64) -> None:
    """As `slots.dequeue`, and the mark stays on a tuple that waits."""
    for i in range(picks.size):
        slot, marked = picks[i], mark[SLOT]
        if slot == marked:  # its older neighbour has as many younger ones once it is gone
            older = np.int64(slots.links[slot, OLDER])
            mark[SLOT] = older if older >= 0 else np.int64(slots.links[slot, NEWER])
            mark[YOUNGER] -= 0 if older >= 0 else 1
        elif slots.wide[slot, ARRIVED] > slots.wide[marked, ARRIVED]:
            mark[YOUNGER] -= 1
        mark[COUNT] -= 1
        queue.dequeue(slots, ends, picks[i : i + 1])


@kernel
def settle(slots: Slots, mark: I64, share: float) -> int:
    """Move the mark to where `share` of the others are younger; returns its slot, or -1 if nobody waits."""
    if mark[COUNT] == 0:
        return np.int64(-1)
    wanted = np.int64(share * (mark[COUNT] - 1))
    while mark[YOUNGER] > wanted:
        mark[SLOT] = slots.links[mark[SLOT], NEWER]
        mark[YOUNGER] -= 1
    while mark[YOUNGER] < wanted:
        mark[SLOT] = slots.links[mark[SLOT], OLDER]
        mark[YOUNGER] += 1
    return mark[SLOT]
