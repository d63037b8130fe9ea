"""The growth of the process is what was allocated and touched, and only that."""

from __future__ import annotations

import sys
import time

import numpy as np
import pytest

from semistream.bench.memory import MemoryWatch

MEGABYTE = 1 << 20
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def touched(megabytes):
    return np.ones(megabytes * MEGABYTE, np.uint8)


def test_growth_is_what_was_held_at_the_highest_point():
    with MemoryWatch() as watch:
        held = touched(64)
        del held
        held = touched(32)
    assert 62 * MEGABYTE < watch.growth_bytes < 72 * MEGABYTE
    assert len(held) == 32 * MEGABYTE


def test_what_was_there_before_does_not_count():
    before = touched(64)
    with MemoryWatch() as watch:
        before += 1
    assert watch.growth_bytes < 4 * MEGABYTE


def test_a_short_peak_between_two_samples_is_seen():
    with MemoryWatch(interval_s=60) as watch:
        touched(48)
    assert watch.growth_bytes > 46 * MEGABYTE


def test_a_forgotten_peak_leaves_what_is_still_held():
    with MemoryWatch() as watch:
        held = touched(16)
        touched(64)
        watch.forget_peak()
        time.sleep(0.1)
    assert 14 * MEGABYTE < watch.growth_bytes < 26 * MEGABYTE
    assert len(held) == 16 * MEGABYTE
