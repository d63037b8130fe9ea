"""Who leaves a full hot cache: words picked by dice, or those with the fewest hits."""

from __future__ import annotations

import numpy as np

from semistream.parts.compiler import kernel
from semistream.parts.hot_cache import DICE, HITS, ROWS, HotCache, forget
from semistream.parts.memory import Memory
from semistream.parts.stream_table import KEYS, home_of
from semistream.parts.waits import BUCKETS, bucket_of
from semistream.parts.words import spread


@kernel
def forget_any(cache: HotCache, memory: Memory, wanted: int) -> int:
    """Forget words picked by the dice until so many rows are free; returns how many became free."""
    freed, size = 0, cache.records.shape[0]
    for _ in range(size):
        if freed >= wanted or cache.state[KEYS] == 0:
            break
        cache.state[DICE] += 1
        record = home_of(spread(cache.state[DICE]), size)
        for _step in range(size):  # the next one that may go
            if cache.records[record, ROWS] >= 0:
                freed += forget(cache, memory, record)
                break
            record = record + 1 if record + 1 < size else 0
    return freed


@kernel
def weight_of(cache: HotCache, record: int) -> int:
    """What a word counts for when room is made: its rows, and 1 if it has none; 0 for a record that may not go."""
    rows = np.int64(cache.records[record, ROWS])
    return np.int64(1) if rows == 0 else rows if rows > 0 else np.int64(0)


@kernel
def warmth_of(cache: HotCache, record: int, weight: int) -> int:
    """Hits a row, in steps of an eighth of their size."""
    return bucket_of(np.int64(cache.records[record, HITS]) // weight)


@kernel
def forget_coldest(cache: HotCache, memory: Memory, wanted: int) -> int:
    """Forget the words with the fewest hits a row until so many rows are free; returns how many became free.

    The hits of those that stay are halved, so that hits of long ago fade: without it, what once was hot is never replaced. Of equally
    warm words the dice say where to begin.
    """
    size = cache.records.shape[0]
    rows_by_warmth = np.zeros(BUCKETS, np.int64)
    for record in range(size):
        weight = weight_of(cache, record)
        if weight > 0:
            rows_by_warmth[warmth_of(cache, record, weight)] += weight
    cut, left = 0, wanted  # what is colder than `cut` goes, and of `cut` itself so many rows
    while cut < BUCKETS - 1 and rows_by_warmth[cut] < left:
        left -= rows_by_warmth[cut]
        cut += 1
    cache.state[DICE] += 1
    record = home_of(spread(cache.state[DICE]), size)
    freed = 0
    for _step in range(size):
        weight = weight_of(cache, record)
        warmth = warmth_of(cache, record, weight) if weight > 0 else BUCKETS
        if warmth < cut or (warmth == cut and left > 0):
            left -= weight if warmth == cut else 0
            freed += forget(cache, memory, record)
        elif weight > 0:
            cache.records[record, HITS] >>= 1
        record = record + 1 if record + 1 < size else 0
    return freed
