"""How long tuples waited, as a histogram of fixed size: eight buckets for every doubling, so any quantile is right within 9 %."""

from __future__ import annotations

import numpy as np

from semistream.parts.compiler import kernel
from semistream.parts.memory import I64

BUCKETS = 8 * 56


@kernel
def bucket_of(wait: int) -> int:
    """Bucket of a wait of so many tuples."""
    if wait < 8:
        return max(wait, 0)
    power, left = 0, wait
    for step in (32, 16, 8, 4, 2, 1):
        far = left >> step >= 8
        power += step if far else 0
        left = left >> step if far else left
    return 8 * (power + 1) + (left - 8)


@kernel
def add_waits(histogram: I64, stamps: I64, picks: I64, now: int) -> int:
    """Count the waits of tuples that leave when the stream has come to position `now`; returns the longest."""
    longest = 0
    for slot in picks:
        wait = now - (stamps[np.uint64(slot)] >> 1)
        histogram[np.uint64(bucket_of(wait))] += 1
        longest = max(longest, wait)
    return longest


def quantile(histogram: I64, share: float) -> int:
    """Upper bound of the wait that `share` of all tuples did not exceed."""
    total = int(histogram.sum())
    if not total:
        return 0
    bucket = int(np.searchsorted(np.cumsum(histogram), share * total))
    if bucket < 8:
        return bucket
    power, step = bucket // 8 - 1, bucket % 8
    return int(((8 + step + 1) << power) - 1)
