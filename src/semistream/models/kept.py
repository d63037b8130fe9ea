"""What a cache holds in the long run where its victims are picked at random, and what that does to the loads behind it (CACHEJOIN).

A random victim may be hot. It comes back when enough tuples wait for it at a load of its partition. So right after a load the hot keys of
its partition are cached, one after the other they are lost again, and those who wait came rather late: they occupy less than tuples
that come evenly would, and a load answers more. `oldest_first` alone is some percent low, and the hottest rows alone answer too much.

Partitions are taken to be alike in what is left to them, as they are where hot keys lie strewn or the cache is large.
"""

from __future__ import annotations

from math import lgamma
from typing import NamedTuple

import numpy as np

from semistream.models.setting import Demand
from semistream.parts.memory import F64

_POINTS = 16  # of time between two loads
_SINGLE, _CLASSES = 64.0, 200  # hottest keys that stand for themselves, and classes of the others


class Kept(NamedTuple):
    """Cache and loads in balance: the share of hits, and tuples that a load answers."""

    hit_share: float
    per_load: float


def by_chance(demand: Demand, partition_rows: float, slots: float, room: float, least: float) -> Kept:
    """A cache with room for `room` keys that takes what `least` tuples wait for."""
    keys, share = _coarse(*demand.classes())
    partitions = max(1.0, demand.keys / partition_rows)
    low, high = slots / 10, slots * 1e3
    for _ in range(40):  # the time between two loads of a partition, in tuples of the stream
        every = (low * high) ** 0.5
        waiting, per_load, misses = _between_loads(keys, share, every, room, least)
        if waiting + per_load / partitions / 2 < slots:
            low = every
        else:
            high = every
        if high / low < 1.0005:
            break
    return Kept(1 - misses, per_load / partitions)


def _coarse(keys: F64, share: F64) -> tuple[F64, F64]:
    """Fewer classes: neighbours are nearly alike."""
    ends, total = np.cumsum(keys), np.cumsum(keys * share)
    bounds = np.unique(
        np.append(np.arange(1.0, min(_SINGLE, ends[-1]) + 1), np.geomspace(min(_SINGLE, ends[-1]), ends[-1], _CLASSES))
    )
    count = np.diff(bounds, prepend=0.0)
    return count, np.diff(np.interp(bounds, np.append(0.0, ends), np.append(0.0, total)), prepend=0.0) / count


def _between_loads(keys: F64, share: F64, every: float, room: float, least: float) -> tuple[float, float, float]:
    """Tuples that wait at a time, tuples that one load of every partition answers, and the share of misses."""
    times = (np.arange(_POINTS) + 0.5) * every / _POINTS
    low, high = 0.0, 1e3 / every
    cached = _cached_after_load(share, times, every, 0.0, least)
    held = cached
    if float((keys * cached).sum()) > room:  # the rate at which each key is put out is such that the room is full
        for _ in range(40):
            goes = (low + high) / 2
            cached = _cached_after_load(share, times, every, goes, least)
            held = cached * np.exp(-goes * times[:, None]).mean(axis=0)
            low, high = (goes, high) if float((keys * held).sum()) > room else (low, goes)
    missing = (keys * share * (1 - cached * np.exp(-high * times[:, None] * (high < 1e3 / every)))).sum(axis=1)
    misses = float(missing.mean())
    waiting = float((missing * (every - times)).mean())
    return waiting, misses * every, misses


def _cached_after_load(share: F64, times: F64, every: float, goes: float, least: float) -> F64:
    """The chance of each key to be cached right after a load of its partition.

    It was cached before, or enough tuples have come since it went (`late`), or in the whole time if it was not cached at all (`never`).
    """
    never = _at_least(share * every, least)
    if goes == 0.0:
        return np.where(never > 0, 1.0, 0.0)
    stays = np.exp(-goes * every)
    weights = goes * np.exp(-goes * times) * every / times.size
    late = sum(weight * _at_least(share * (every - at), least) for weight, at in zip(weights, times, strict=True))
    return np.asarray(never / (1 - stays - late + never))


def _at_least(mean: F64, least: float) -> F64:
    """P(Poisson(mean) >= least)."""
    log_mean = np.log(np.maximum(mean, 1e-300))
    below = sum(np.exp(count * log_mean - mean - lgamma(count + 1)) for count in range(int(least)))
    return np.clip(1 - below, 0.0, 1.0)
