"""A story is a text: sentences, a command after each, and what the command gives. This file reads and writes such texts.

    # A sentence or several say what happens and why it is right.
    > command word word setting=value
    what the command prints

Keys and names are written short: `1..4` is 1 2 3 4, `7*3` is 7 7 7, `x1..x3=7` are three tuples x1, x2 and x3 with key 7,
`x1..x3=1..3` three with keys of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import groupby

NUMBERED = re.compile(r"(.*?)(\d+)$")


@dataclass
class Step:
    """One command of a story, the sentences before it, and the lines that it gave when the story was recorded."""

    sentences: list[str]
    command: str
    lines: list[str] = field(default_factory=list)

    @property
    def verb(self) -> str:
        return self.command.split()[0]

    @property
    def words(self) -> list[str]:
        """Words of the command that set nothing, without the verb."""
        return [word for word in self.command.split()[1:] if "=" not in word]

    @property
    def settings(self) -> dict[str, str]:
        return dict(word.split("=", 1) for word in self.command.split()[1:] if "=" in word)


def parse(text: str) -> list[Step]:
    """The steps of a story; a command without a sentence before it is refused."""
    steps: list[Step] = []
    sentences: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#"):
            sentences.append(line[1:].strip())
        elif line.startswith(">"):
            if not sentences:
                raise SyntaxError(f"line {number}: {line!r} has no sentence before it that says what it shows")
            steps.append(Step(sentences, line[1:].strip()))
            sentences = []
        elif line.strip():
            if sentences or not steps:
                raise SyntaxError(f"line {number}: {line!r} is neither a sentence nor the output of a command")
            steps[-1].lines.append(line)
        elif sentences:
            sentences.append("")
    if not steps or any(sentences):
        raise SyntaxError("a story ends with a command and what it gives")
    return steps


def render(steps: Iterable[Step]) -> str:
    """The text of a story."""
    blocks = [
        "\n".join([*(f"# {line}" if line else "" for line in step.sentences), f"> {step.command}", *step.lines])
        for step in steps
    ]
    return "\n\n".join(blocks) + "\n"


def tell(steps: list[Step], perform: Callable[[Step], list[str]]) -> str:
    """The story as it goes now."""
    return render(Step(step.sentences, step.command, perform(step)) for step in steps)


# ------------------------------------------------------------------------------------------------------------ writing


def spread(text: str) -> list[str]:
    """All that a short form stands for.

    >>> spread("1..3"), spread("7*2,9"), spread("x1..x3")
    (['1', '2', '3'], ['7', '7', '9'], ['x1', 'x2', 'x3'])
    """
    found: list[str] = []
    for part in text.split(","):
        word, _, times = part.partition("*")
        first, _, last = word.partition("..")
        if last:
            name, start = NUMBERED.match(first).groups()
            found += [f"{name}{number}" for number in range(int(start), int(NUMBERED.match(last)[2]) + 1)] * int(
                times or 1
            )
        else:
            found += [word] * int(times or 1)
    return found


def shorten(names: Iterable[str]) -> str:
    """Names side by side; three or more that count up are written short.

    >>> shorten(["a", "x1", "x2", "x3", "b"]), shorten(["5/1", "5/2"])
    ('a x1..x3 b', '5/1 5/2')
    """

    def place(item: tuple[int, str]) -> tuple[str, int]:
        found = NUMBERED.match(item[1])
        return (found[1], int(found[2]) - item[0]) if found else (item[1], -item[0])

    words: list[str] = []
    for _, group in groupby(enumerate(names), place):
        run = [name for _, name in group]
        words += [f"{run[0]}..{run[-1]}"] if len(run) > 2 else run
    return " ".join(words)


def arrivals(words: Iterable[str]) -> list[tuple[str, int | None]]:
    """Names and keys of stream tuples.

    >>> arrivals(["a=3", "b=none", "x1..x2=7"])
    [('a', 3), ('b', None), ('x1', 7), ('x2', 7)]
    """
    found: list[tuple[str, int | None]] = []
    for word in words:
        names, _, keys = word.partition("=")
        all_names, all_keys = spread(names), spread(keys)
        all_keys = all_keys * len(all_names) if len(all_keys) == 1 else all_keys
        found += [(name, None if key == "none" else int(key)) for name, key in zip(all_names, all_keys, strict=True)]
    return found
