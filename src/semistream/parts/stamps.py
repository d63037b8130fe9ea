"""Stamps: for every stream tuple its position * 2, plus 1 once a match was found."""

from __future__ import annotations

import numpy as np

from semistream.parts.compiler import quick_kernel
from semistream.parts.memory import I64, U8


@quick_kernel
def positions(stamps: I64, picks: I64) -> I64:
    """Stream positions of tuples."""
    found = np.empty(picks.size, np.int64)
    for i in range(picks.size):
        found[i] = stamps[np.uint64(picks[i])] >> 1
    return found


@quick_kernel
def mark_matched(stamps: I64, picks: I64, first: U8) -> int:
    """Note that these tuples have a match; `first` is 1 where a tuple had none before. Returns how many had none."""
    count = 0
    for i in range(picks.size):
        place = np.uint64(picks[i])
        before = stamps[place]
        first[i] = 1 - (before & 1)
        count += 1 - (before & 1)
        stamps[place] = before | 1
    return count


@quick_kernel
def unmatched(stamps: I64, picks: I64) -> I64:
    """Those of the tuples that have no match."""
    found = np.empty(picks.size, np.int64)
    count = 0
    for pick in picks:
        found[np.uint64(count)] = pick  # written in any case: no branch to mispredict
        count += 1 - (stamps[np.uint64(pick)] & 1)
    return found[:count]
