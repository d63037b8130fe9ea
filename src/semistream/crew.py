"""The crew: who answers, admits and steps, in one thread or in several.

alone        the recipe's front, then its steps
in strands   parts of a block, and strands of an iteration, each in a lane of its own
apart        front and admission in the caller's thread, steps in another
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import numpy as np

from semistream.beside import Beside
from semistream.counts import Counts
from semistream.lanes import Batch, Lanes
from semistream.protocols import Found, Recipe, Stranded
from semistream.settle import Settler
from semistream.stream_side import Block

_PART_ROWS = 2048  # smaller parts are not worth a thread's while


class Crew:
    """A recipe at work. What it finds comes out settled."""

    saved = ("settlers", "_beside", "recipe")

    def __init__(self, recipe: Recipe, settlers: Sequence[Settler], *, stranded: bool, apart: bool) -> None:
        """A settler for every thread; `stranded`: the recipe offers strands; `apart`: the second thread steps."""
        self.recipe, self.settlers = recipe, list(settlers)
        self._beside = Beside(settlers[1], recipe) if apart else None
        self._lanes = Lanes(settlers[:1] if apart else settlers)
        self._stranded = cast(Stranded, recipe) if stranded else None

    @property
    def counts(self) -> Counts:
        """What all threads did."""
        return self._lanes.counts if self._beside is None else self._lanes.counts + self._beside.counts

    def steps(self, asked: int) -> int:
        """Steps that were done, when the caller asked for so many."""
        return asked if self._beside is None else self._beside.begun

    def answer(self, block: Block) -> Generator[Batch, None, Block]:
        """Let the recipe answer what need not wait; returns what is left of the block."""
        strands: list[Iterator[Found]]
        if self._beside is not None:
            yield from self._beside.finished()
        if self._stranded is not None:
            strands = [self._stranded.answer(part, thread) for thread, part in enumerate(self._parts(block))]
        elif self.recipe.front is not None:
            strands = [self.recipe.front.answer(block)]
        else:
            return block
        left = yield from self._lanes.follow(strands)
        return block._replace(picks=np.concatenate([part.picks for part in left]))

    def _parts(self, block: Block) -> list[Block]:
        """A block in as many parts as there are threads, if that is worth their while."""
        count = max(1, min(len(self.settlers), block.picks.size // _PART_ROWS))
        return [block._replace(picks=picks) for picks in np.array_split(block.picks, count)]

    def admit(self, block: Block) -> int:
        """Let the recipe take what has room; returns how many."""
        taken = self.recipe.admit(block)
        if self._beside is not None:
            self._beside.wake()
        return taken

    def step(self) -> Generator[Batch, None, Any]:
        """One iteration of the recipe."""
        if self._beside is not None:
            return self._beside.step()
        return self._lanes.follow([self.recipe.step()] if self._stranded is None else self._stranded.strands())

    def flush(self) -> Generator[Batch, None, None]:
        """Close all open batches."""
        if self._beside is not None:
            yield from self._beside.flush()
        yield from self._lanes.flush()

    def resting(self) -> AbstractContextManager[None]:
        """While this lasts, nobody is at work."""
        return nullcontext() if self._beside is None else self._beside.resting()

    def close(self) -> None:
        """End the threads."""
        if self._beside is not None:
            self._beside.close()
        self._lanes.close()
