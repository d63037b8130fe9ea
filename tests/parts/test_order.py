"""The finished prefix of a window of positions, against a set."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from semistream.parts import order
from tests.parts.made import ints


@given(window=st.integers(1, 9), choices=st.lists(st.lists(st.integers(0, 8), max_size=4), max_size=40))
def test_the_prefix_moves_exactly_over_what_is_finished(window, choices):
    done, due, finished = np.zeros(window, np.uint8), 0, set()
    for numbers in choices:
        now = {due + number % window for number in numbers} - finished
        order.finish(done, ints(*sorted(now)))
        finished |= now
        due = order.advance(done, due, due + window)
        expected = next(position for position in range(due + 1) if position not in finished)
        assert due == expected, "the first that is not finished"
        assert int(done.sum()) == len([position for position in finished if position >= due])


def test_a_whole_window_may_finish_at_once_and_is_clean_for_its_next_turn():
    done = np.zeros(4, np.uint8)
    for due in (0, 4, 8):
        order.finish(done, np.arange(due, due + 4))
        assert order.advance(done, due, due + 4) == due + 4
        assert not done.any()


def test_the_prefix_stops_where_it_is_told():
    done = np.ones(8, np.uint8)
    assert order.advance(done, 2, 5) == 5
    assert done.tolist() == [1, 1, 0, 0, 0, 1, 1, 1]
