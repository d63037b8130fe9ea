"""A desk: one thread's room for serving tuples that wait in bins."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semistream.budget import Slab
from semistream.parts import page_search, waits
from semistream.parts.memory import I32, I64
from semistream.protocols import Buffer
from semistream.stream_rows import SETTLING_BYTES

_ASKED_BYTES = 4


class Desk(NamedTuple):
    """One thread's room for serving: the disk buffer, lists of tuples, pages and pairs."""

    buffer: Buffer
    picks: I64
    words: I64
    pages: I64
    order: I64
    starts: I64
    absent: I64
    pairs: page_search.Pairs
    asked: I32
    wait_histogram: I64
    longest: I64

    @classmethod
    def of(cls, slab: Slab, buffer: Buffer, tuples: int, asked: int) -> Desk:
        """A desk for so many tuples and, in a load, so many rows."""
        lists = [slab.take("desks", tuples, np.int64) for _ in range(9)]
        slab.charge("desks", SETTLING_BYTES * tuples)
        return cls(
            buffer=buffer,
            picks=lists[0],
            words=lists[1],
            pages=lists[2],
            order=lists[3],
            starts=lists[4],
            absent=lists[5],
            pairs=page_search.Pairs(*lists[6:9]),
            asked=slab.take("desks", asked, np.int32),
            wait_histogram=np.zeros(waits.BUCKETS, np.int64),
            longest=np.zeros(1, np.int64),
        )

    @staticmethod
    def bytes_of(tuples: int, asked: int) -> int:
        """What `of` takes."""
        return tuples * (9 * 8 + SETTLING_BYTES) + asked * _ASKED_BYTES + 10 * 64
