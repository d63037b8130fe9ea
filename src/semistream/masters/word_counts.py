"""How many different key words a master has, and how many rows the most frequent one."""

from __future__ import annotations

import numpy as np

from semistream.parts.memory import I64


class WordCounts:
    """Counts words that come in order. Rows without a key are told beforehand and left out.

    All null keys of a single key column share one word, which may also be the word of a real key: so the rows of that word are counted
    apart, and the null ones taken off. A key of several columns can miss any of its parts; there, rows with the same missing and present
    parts count as rows of one key, which makes the multiplicity an upper bound.

    >>> counts = WordCounts(single_column=True)
    >>> counts.add(np.array([1, 2, 2])); counts.add(np.array([2, 5]))
    >>> counts.distinct, counts.longest
    (3, 3)
    """

    def __init__(self, single_column: bool) -> None:
        self.null_keys = 0
        self._single = single_column
        self._null_word: int | None = None
        self._null_word_rows = 0
        self._distinct = self._longest = 0
        self._run, self._last = 0, 0

    @property
    def distinct(self) -> int:
        """Different words of rows that have a key."""
        only_nulls = self._null_word is not None and self._null_word_rows == self.null_keys
        return self._distinct - only_nulls

    @property
    def longest(self) -> int:
        """Rows of the most frequent word."""
        return max(self._longest, self._null_word_rows - self.null_keys if self._null_word is not None else 0)

    def leave_out(self, words: I64) -> None:
        """These words stand for rows without a key."""
        self.null_keys += words.size
        if self._single and words.size:
            self._null_word = int(words[0])

    def add(self, words: I64) -> None:
        """Count the next words."""
        if not words.size:
            return
        bounds = np.concatenate([np.zeros(1, np.int64), np.flatnonzero(words[1:] != words[:-1]) + 1, [words.size]])
        runs, first = np.diff(bounds), words[bounds[:-1]]
        if self._run and words[0] == self._last:
            runs[0] += self._run
            self._distinct -= 1
        self._distinct += runs.size
        self._run, self._last = int(runs[-1]), int(words[-1])
        if self._null_word is not None:
            self._null_word_rows += int(np.count_nonzero(words == self._null_word))
            runs = runs[first != self._null_word]
        self._longest = max(self._longest, int(runs.max(initial=0)))
