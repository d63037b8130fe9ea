"""A stage for stories: it stands round the real recipe and writes down what it reads, who meets whom, who leaves and who waits.

Nothing here knows an algorithm. A recipe is built by the join from its `Parts`, as always, only that reader, buffers and
recipe are seen through these wrappers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from typing import Any

import semistream as ss
from semistream.algorithms.record import Parts
from semistream.parts.stamps import positions
from semistream.protocols import Buffer, Found, Load, Reader, Recipe
from semistream.stream_side import Block
from tests.stories.script import shorten


class Diary:
    """What has been written since it was last read, and who waits."""

    def __init__(self, pages: list[list[str]]) -> None:
        self.pages = pages  # the labels of their rows
        self.names: list[str] = []  # of stream tuples, by position
        self.waiting: list[int] = []  # positions, in the order of arrival
        self.steps = 0
        self.recipe: Any = None
        self._lines: list[str] = []

    def write(self, line: str) -> None:
        self._lines.append(line)

    def admit(self, places: list[int]) -> None:
        """Write down who comes in; those who come in one after the other share a line, however a batch is cut."""
        self.waiting += places
        if self._lines and self._lines[-1].startswith("admits"):
            self._lines.pop()
        else:
            self._admitted: list[int] = []
        self._admitted += places
        self.write(f"admits {self.called(self._admitted)}")

    def read(self) -> list[str]:
        """The lines written since the last call."""
        lines, self._lines = self._lines, []
        return lines

    def called(self, places: list[int]) -> str:
        return shorten(self.names[place] for place in places)


class _Seen:
    """Something seen through a wrapper: what the wrapper does not watch is the thing's own."""

    def __init__(self, seen: Any, diary: Diary) -> None:
        self._seen, self._diary = seen, diary

    def __getattr__(self, name: str) -> Any:
        return getattr(self._seen, name)


class _SeenBuffer(_Seen):
    _seen: Buffer

    def read(self, first: int, stop: int) -> Load:
        """Write down which pages come, unless they still lie there."""
        before = self._seen.loads
        load = self._seen.read(first, stop)
        for page in range(first, stop) if self._seen.loads > before else ():
            self._diary.write(f"  reads page {page}: {shorten(self._diary.pages[page])}")
        if self._seen.loads == before:
            self._diary.write(f"  still holds page {shorten(map(str, range(first, stop)))}")
        return load


class _SeenReader(_Seen):
    _seen: Reader

    def buffer(self, *given: Any) -> Any:
        return _SeenBuffer(self._seen.buffer(*given), self._diary)


class _SeenFront(_Seen):
    def __init__(self, seen: Any, diary: Diary, parts: Parts) -> None:
        super().__init__(seen, diary)
        self._parts = parts

    def answer(self, *given: Any) -> Generator[Found, None, Block]:
        """Write down who is answered before waiting."""
        hits = self._seen.answer(*given)
        while True:
            try:
                found = next(hits)
            except StopIteration as end:
                return end.value
            if found.picks.size or found.gone.size:
                self._diary.write("before waiting")
            _write_found(found, self._diary, self._parts)
            yield found


class _SeenRecipe(_Seen):
    _seen: Recipe

    def __init__(self, seen: Recipe, diary: Diary, parts: Parts) -> None:
        super().__init__(seen, diary)
        self._parts = parts
        self.front = None if seen.front is None else _SeenFront(seen.front, diary, parts)
        self.answer = _SeenFront(seen, diary, parts).answer  # of recipes with strands

    def admit(self, block: Block) -> int:
        """Write down who comes in."""
        taken = self._seen.admit(block)
        places = (block.position + block.picks[:taken]).tolist()
        if places:
            self._diary.admit(places)
        assert self._seen.area.waiting == len(self._diary.waiting)
        return taken

    def step(self) -> Iterator[Found]:
        """Write down what a step reads, who meets whom and who leaves."""
        return self._watched(self._seen.step)

    def strands(self) -> list[Iterator[Found]]:
        """As `step`; a story has one thread."""
        return [self._watched(lambda: itertools.chain(*self._seen.strands()))]

    def _watched(self, step: Callable[[], Iterator[Found]]) -> Iterator[Found]:
        diary = self._diary
        diary.steps += 1
        diary.write(f"step {diary.steps}, oldest is {diary.called(diary.waiting[:1])}")
        for found in step():
            _write_found(found, diary, self._parts)
            yield found
        assert self._seen.area.waiting == len(diary.waiting)


def _write_found(found: Found, diary: Diary, parts: Parts) -> None:
    if found.picks.size:
        rows = parts.master_codec.unpack(parts.slab.memory, found.row_at, found.heap_at, ["row"])[0].to_pylist()
        met: dict[int, list[str]] = {}
        for place, row in sorted(
            zip(positions(found.side.stamps, found.picks).tolist(), rows, strict=True), key=lambda pair: pair[0]
        ):
            met.setdefault(place, []).append(row)
        for place, rows in met.items():  # tuples that meet the same rows share a line
            same = [other for other in met if met[other] == rows]
            if place == same[0]:
                diary.write(f"  {diary.called(same)} {'meets' if len(same) == 1 else 'meet'} {shorten(rows)}")
    if found.gone.size:
        gone = sorted(positions(found.side.stamps, found.gone).tolist())
        diary.waiting = [place for place in diary.waiting if place not in set(gone)]
        diary.write(f"  {'leaves' if len(gone) == 1 else 'leave'} {diary.called(gone)}")


def watch(join: ss.Join, diary: Diary) -> None:
    """Put a stage round the recipe of a join that has not run yet."""
    algorithm = join._options.algorithm
    build: Callable[[Parts], Recipe] = algorithm.build

    def built(parts: Parts) -> Any:
        diary.recipe = build(replace(parts, reader=_SeenReader(parts.reader, diary)))
        return _SeenRecipe(diary.recipe, diary, parts)

    join._options = replace(join._options, algorithm=replace(algorithm, build=built))
