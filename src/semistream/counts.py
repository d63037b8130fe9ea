"""What a join counts: tuples that came in, left, matched, were shed, and rows that went out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Counts:
    """What came in and what left."""

    tuples_in: int = 0
    finished: int = 0
    rows_out: int = 0
    matched: int = 0
    unmatched: int = 0
    pairs_refused: int = 0
    shed: int = 0

    def __add__(self, other: Counts) -> Counts:
        """Both together."""
        return Counts(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))
