"""HYBRIDJOIN as printed: Algorithm 1 of the X-HYBRIDJOIN paper (KAIS 2013) without its first inner loop, as its note says.

 2: w <- h_S
 3: while (true) do
 4:   if (available stream tuples >= w) then
 5:     READ w tuples from the stream buffer, load them into H and enqueue their join attribute values into Q
 6:     w <- 0
15:   READ the oldest join attribute value from Q
16:   LOAD a disk partition of R using the join attribute value as an index
17:   for each tuple r in the partition do
18:     if r in H then
19:       OUTPUT r joined with H
20:       w <- w + number of matching tuples found in H
21:       DELETE all matched tuples from H and the corresponding nodes from Q
"""

from __future__ import annotations

from tests.stories.printed.told import Moment, Pages, Told
from tests.stories.script import shorten


def run(pages: Pages, moments: list[Moment], slots: int, iterations: int = 10) -> Told:
    """So many iterations with room for `slots` tuples; all that arrives in a story is available from the start."""
    told = Told()
    stream = [one for moment in moments for one in moment]
    queue: Moment = []  # H and Q in one: what waits, oldest first
    w = slots  # line 2
    for _ in range(iterations):
        if len(stream) >= w:  # line 4
            queue += stream[:w]  # line 5
            del stream[:w]
            w = 0  # line 6
        if not queue:
            told.happened.append(
                f"{w} must be there to enter and {len(stream)} are; Q is empty, and line 15 has nothing to read"
            )
            break
        oldest = queue[0]  # line 15
        number = _look_up(pages, oldest[1])  # line 16
        met = []
        for row_key, label in pages[number]:  # line 17
            matched = [one for one in queue if one[1] == row_key]
            if matched:  # line 18
                told.pairs += [(name, label) for name, _ in matched]  # line 19
                met += [f"{name}+{label}" for name, _ in matched]
                w += len(matched)  # line 20
                queue = [one for one in queue if one not in matched]  # line 21
        told.happened.append(f"oldest is {oldest[0]}, reads page {number}, gives {shorten(met) or 'nothing'}")
    told.waiting = [name for name, _ in [*queue, *stream]]
    return told


def _look_up(pages: Pages, key: int | None) -> int:
    """The page that holds the key, or where it would stand."""
    below = [number for number, page in enumerate(pages) if page[0][0] <= key]
    holding = [number for number, page in enumerate(pages) if any(row_key == key for row_key, _ in page)]
    return (holding or below[-1:] or [0])[0]
