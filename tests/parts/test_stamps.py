"""Stamps: the position of a tuple, and whether it has matched."""

from __future__ import annotations

import numpy as np

from semistream.parts import stamps
from tests.parts.made import ints


def test_a_tuple_matches_for_the_first_time_only_once():
    held = np.zeros((4, 3), np.int64)[:, 1]  # one column of wider records
    held[:] = ints(0, 5, 2**40, 7) << 1
    first = np.zeros(4, np.uint8)
    assert stamps.mark_matched(held, ints(2, 0, 2, 2), first) == 2
    assert first.tolist() == [1, 1, 0, 0]
    assert stamps.mark_matched(held, ints(1, 2), first) == 1
    assert first[:2].tolist() == [1, 0]
    assert stamps.unmatched(held, ints(3, 2, 1, 0)).tolist() == [3]
    assert stamps.unmatched(held, ints()).tolist() == []
    assert stamps.positions(held, ints(2, 3, 1)).tolist() == [2**40, 7, 5], "the flag does not touch the position"
