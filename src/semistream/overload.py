"""What happens to tuples that find no room: the stream waits, or they are shed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from semistream import arranging
from semistream.counts import Counts
from semistream.errors import UsageError
from semistream.stream_side import Block

Told: TypeAlias = Callable[[pa.RecordBatch], object]


@dataclass(frozen=True)
class Overload:
    """How often a piece of the stream may make the join step until it has room, and who is told of what is shed then."""

    name: str
    steps: float
    told: Told | None = None

    def shed(self, piece: pa.RecordBatch, block: Block | None, counts: Counts) -> None:
        """Drop what the block has left of a piece, or (None) a piece that was not let in to become one."""
        dropped = np.arange(piece.num_rows) if block is None else block.picks
        if block is None:
            counts.tuples_in += dropped.size
        counts.shed += dropped.size
        if self.told is not None:
            self.told(arranging.take(piece, dropped))


def parse_overload(value: str | Told) -> Overload:
    """As the user gave it.

    >>> parse_overload("shed"), parse_overload(print).told
    (Overload(name='shed', steps=1, told=None), <built-in function print>)
    """
    if callable(value):
        return Overload("shed", 1, value)
    if value not in ("block", "shed"):
        raise UsageError(
            f"overload={value!r}: need 'block' (the stream waits), 'shed' (what finds no room is dropped and counted), or a function "
            "that takes record batches of what is dropped"
        )
    return Overload(value, math.inf if value == "block" else 1)
