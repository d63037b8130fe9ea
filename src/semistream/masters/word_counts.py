"""How many different key words a master has, and how many rows the most frequent one."""

from __future__ import annotations

import numpy as np

from semistream.parts.memory import I64


class WordCounts:
    """Counts words that come in order. Rows without a key count too: they have a word, and a null-safe join matches them.

    >>> counts = WordCounts()
    >>> counts.add(np.array([1, 2, 2])); counts.add(np.array([2, 5]))
    >>> counts.distinct, counts.longest
    (3, 3)
    """

    def __init__(self) -> None:
        self.distinct = self.longest = 0
        self._run, self._last = 0, 0

    def add(self, words: I64) -> None:
        """Count the next words."""
        if not words.size:
            return
        bounds = np.concatenate([np.zeros(1, np.int64), np.flatnonzero(words[1:] != words[:-1]) + 1, [words.size]])
        runs = np.diff(bounds)
        if self._run and words[0] == self._last:
            runs[0] += self._run
            self.distinct -= 1
        self.distinct += runs.size
        self.longest = max(self.longest, int(runs.max()))
        self._run, self._last = int(runs[-1]), int(words[-1])
