"""Showing a recipe's keeper the master rows that tuples wait for, before the tuples leave."""

from __future__ import annotations

import math

import numpy as np

from semistream.parts import probing, stream_table
from semistream.parts.memory import I64
from semistream.parts.stream_table import StreamTable
from semistream.protocols import Keeper

_ENOUGH = 1 << 16  # how far tuples of one word are counted: chains of hot words are long


class Showing:
    """Shows whole words only: a word whose rows come in two pieces of a load has thousands, and is not worth keeping.

    The lists are borrowed: they hold what is shown while it is shown.
    """

    def __init__(self, keeper: Keeper, table: StreamTable, chosen: probing.Picked, waiting: I64) -> None:
        self._keeper, self._table, self._chosen, self._waiting = keeper, table, chosen, waiting
        self._carried: int | None = None  # word whose rows may go on in the next piece

    def piece(self, picked: probing.Picked, open_words: I64, more: bool) -> None:
        """Offer the words of picked rows, those of a word side by side, on which enough tuples wait."""
        self._keeper.passes(picked)
        if self._keeper.least == math.inf:
            return
        picked = probing.closed(picked, open_words)
        carried, self._carried = self._carried, int(picked.words[-1]) if more and picked.words.size else None
        for word in (carried, self._carried):
            if word is not None:
                picked = probing.without(picked, word)
        count = probing.wanted(self._table, picked, self._keeper.least, self._chosen, self._waiting)
        if count:
            self._keeper.offer(probing.Picked(*(array[:count] for array in self._chosen)), self._waiting[:count])

    def rows_of(self, rows: probing.Picked) -> None:
        """Show some rows of words that were looked up."""
        for word in np.unique(rows.words).tolist():
            mine = probing.Picked(*(array[rows.words == word] for array in rows))
            self._keeper.collect(word, mine, stream_table.count_waiting(self._table, word, _ENOUGH))

    def finish(self, word: int) -> None:
        """All rows of a word have been shown; if nobody waits for it they were shown as a piece."""
        waiting = stream_table.count_waiting(self._table, word, _ENOUGH)
        if waiting:
            self._keeper.finish(word, waiting)

    def absent(self, heads: I64) -> None:
        """The master lacks the words of these chains."""
        count = probing.long_chains(self._table, heads, 2, self._chosen.words, self._waiting)
        for word, waiting in zip(self._chosen.words[:count].tolist(), self._waiting[:count].tolist(), strict=True):
            self._keeper.finish(word, waiting)
