"""What the printed forms work on, and how their answers are laid beside the right ones.

A printed form is pseudo-code of a paper, line by line and faults included, on plain Python lists: nobody should run it for its answers.
It gets the pages of the master and what arrived before every rest of the stream: one iteration of its outer loop is one rest, as it is one
step of the real thing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeAlias

from tests.stories.script import shorten

Pages: TypeAlias = list[list[tuple[int | None, str]]]  # key and label of every row of every page
Moment: TypeAlias = list[tuple[str, int | None]]  # name and key of what arrives before an iteration


@dataclass
class Told:
    """What a printed form did, the pairs it gave, and who still waits."""

    happened: list[str] = field(default_factory=list)  # one entry an iteration
    pairs: list[tuple[str, str]] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)

    def lines(self, since: int = 1) -> list[str]:
        """One line an iteration, equal neighbours in one."""
        lines, first = [], since
        for text, group in groupby(self.happened[since - 1 :]):
            last = first + len(list(group)) - 1
            lines.append(f"iteration {first}: {text}" if first == last else f"iterations {first} to {last}: {text}")
            first = last + 1
        return lines


def right_answer(pages: Pages, arrived: Moment) -> dict[str, list[str]]:
    """The rows that every tuple must meet: each is compared with each."""
    rows = [row for page in pages for row in page]
    return {name: [label for row_key, label in rows if key is not None and row_key == key] for name, key in arrived}


def mistakes(pages: Pages, arrived: Moment, told: Told) -> list[str]:
    """Every tuple whose answer is wrong, the right one beside it."""
    met: dict[str, list[str]] = {}
    for name, label in told.pairs:
        met.setdefault(name, []).append(label)
    wrong = []
    for name, rows in right_answer(pages, arrived).items():
        if Counter(rows) == Counter(met.get(name, [])) and (name not in told.waiting or rows):
            continue
        state = ", and still waits" if name in told.waiting else ""
        wrong.append((name, shorten(rows) or "nothing", (shorten(met.get(name, [])) or "nothing") + state))
    if not wrong:
        return ["printed and right answer are the same"]
    widths = [max(map(len, column)) for column in zip(("tuple", "right", ""), *wrong, strict=True)]
    table = [("tuple", "right", "printed"), *wrong]
    return [f"{name:<{widths[0]}}  {right:<{widths[1]}}  {printed}" for name, right, printed in table]
