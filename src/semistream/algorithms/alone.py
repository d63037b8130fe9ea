"""A recipe without threads, where one with threads is expected."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from semistream.protocols import Area, Found, Recipe
from semistream.stream_side import Block


class Alone:
    """A recipe without threads, where one with threads is expected; `reason` says why it is there."""

    def __init__(self, recipe: Recipe, reason: str) -> None:
        self._recipe, self._reason = recipe, reason
        self.patience, self.front, self.admit, self.step = recipe.patience, recipe.front, recipe.admit, recipe.step

    @property
    def area(self) -> Area:
        """Where its tuples wait."""
        return self._recipe.area

    def answer(self, block: Block, thread: int) -> Generator[Found, None, Block]:
        """What the recipe's front answers."""
        if self.front is None:
            return block
        return (yield from self.front.answer(block))

    def decisions(self) -> list[str]:
        """Why it is there."""
        return [self._reason]

    def strands(self) -> list[Iterator[Found]]:
        """One."""
        return [self._recipe.step()]
