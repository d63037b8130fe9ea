"""MESHJOIN as printed: the disk stage of Algorithm 1 in the SSBJ paper (2019), which takes it over from MESHJOIN unchanged.

    15: READ w stream tuples from the stream buffer
    21:   ADD t into H_S and pointer to t into Q
    24: READ a partition of R into the disk buffer
    25: for each tuple r in the disk buffer do
    26:   if H_S.lookup(r.partID) then
    27:     OUTPUT all matching tuples from H_S
    39: for each of oldest w_old pointers (t.partID) in Q do
    40:   DELETE t.partID from Q with tuples from H_S

Two faults, either of which can be repaired to look at the other alone:

    start   lines 39-40 run in every iteration, also in the first ones, when no chunk has seen all partitions yet
    key     line 40 deletes by key, as the published prototypes do: younger tuples of the same key go too
"""

from __future__ import annotations

from collections import deque

from tests.stories.printed.told import Moment, Pages, Told
from tests.stories.script import shorten


def run(pages: Pages, moments: list[Moment], repaired: str = "") -> Told:
    """An iteration for every moment, then as many as it takes until nobody waits."""
    told = Told()
    waiting: dict[int | None, list[str]] = {}  # H_S
    queue: deque[Moment] = deque()  # Q, chunk by chunk
    for iteration, chunk in enumerate([*moments, *([[]] * len(pages))]):
        if iteration >= len(moments) and not any(waiting.values()):
            break
        queue.append(chunk)  # lines 15-21
        for name, key in chunk:
            waiting.setdefault(key, []).append(name)
        number = iteration % len(pages)  # line 24
        met = []
        for row_key, label in pages[number]:  # line 25
            for name in waiting.get(row_key, []):  # lines 26-27
                told.pairs.append((name, label))
                met.append(f"{name}+{label}")
        gone = []
        if "start" not in repaired or len(queue) == len(pages):
            for name, key in queue.popleft():  # lines 39-40
                left = [name] if "key" in repaired else list(waiting.get(key, []))
                waiting[key] = [one for one in waiting.get(key, []) if one not in left]
                gone += left
        told.happened.append(
            f"reads page {number}, gives {shorten(met) or 'nothing'}, deletes {shorten(gone) or 'nobody'}"
        )
    told.waiting = [name for names in waiting.values() for name in names]
    return told
