"""Joins that scan the master: MESHJOIN, R-MESHJOIN, and with a cache in front CMESHJOIN and SSBJ.

A tuple meets all k partitions before it leaves, so an iteration takes in, and lets go, a k-th of the stream table: exactly, whatever is
asked for. SSBJ Eq. 1 and 2 with and without cache.
"""

from __future__ import annotations

from math import sqrt

from semistream.models.costs import one_after_the_other
from semistream.models.memory import Form
from semistream.models.setting import Prediction, Setting


def meshjoin(setting: Setting, form: Form = "corrected") -> Prediction:
    """A chunk is an even share of the stream table."""
    return _scan("meshjoin", setting, form, 0.0)


def r_meshjoin(setting: Setting, form: Form = "corrected") -> Prediction:
    """The same with chunks for every segment of a partition; an iteration is a segment here, and a read is shared by several."""
    return _scan("r_meshjoin", setting, form, 0.0)


def cmeshjoin(setting: Setting, form: Form = "corrected") -> Prediction:
    """A cache of the hottest rows in front."""
    return _scan("cmeshjoin", setting, form, setting.demand.hottest(setting.cached_rows))


def ssbj(setting: Setting, form: Form = "corrected") -> Prediction:
    """The same; which keys are worth caching is in `inequality.py`."""
    return _scan("ssbj", setting, form, setting.demand.hottest(setting.cached_rows))


def _scan(name: str, setting: Setting, form: Form, hit: float) -> Prediction:
    costs, corrected, segments = setting.costs, form == "corrected", max(1, setting.segments)
    if hit >= 1.0:
        hit = 1.0 - 1e-12
    misses = setting.slots / (setting.partitions * segments)
    hits = misses * hit / (1 - hit)
    rows, both = setting.partition_rows / segments, hits + misses
    cached = setting.cached_rows > 0
    output = setting.matches if corrected else 1.0
    moved = setting.moved_rows if corrected else rows  # the print lets every row of every load move into the cache
    terms = {
        "read": costs.read(setting.load_bytes, scanning=True) / segments,
        "probe": rows * costs.probe_s,
        "probe cache": (both if corrected else hits) * costs.cache_probe_s if cached else 0.0,
        "check": rows * costs.check_s if cached and corrected else 0.0,
        "keep": moved * costs.keep_s if cached else 0.0,
        "take": both * setting.take_s,
        "admit": misses * costs.admit_s,
        "leave": misses * costs.leave_s,
        "settle": both * output * setting.settle_s,
        "step": costs.step_s if corrected else 0.0,
    }
    return Prediction(name, form, setting.slots, one_after_the_other(hits, misses, terms), setting.slots)


def best_buffer_rows(memory_bytes: float, row_bytes: float, start_s: float, row_s: float) -> float:
    """The disk buffer, in rows, with the highest rate, when a read costs `start_s` and each of its rows `row_s`, the probe included.

    The rate is (M - b v) b / (start + b row): its derivative is 0 where  row v b^2 + 2 start v b - start M = 0.  Neither the size of the
    master nor what a tuple costs is in it. With w_S = 2 h_S / n the same holds for HYBRIDJOIN; `memory_bytes` is without the cache.
    """
    return (sqrt(start_s**2 + start_s * row_s * memory_bytes / row_bytes) - start_s) / row_s
