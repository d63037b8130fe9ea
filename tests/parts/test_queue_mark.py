"""The mark stands where a walk through the queue would put it, whoever comes and leaves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream.parts import queue_mark, slots
from tests.parts.made import ints, new_slots

STEPS = st.lists(st.tuples(st.integers(0, 6), st.lists(st.integers(0, 40), max_size=6), st.booleans()), max_size=25)


class Queue:
    """An arrival queue with a mark."""

    def __init__(self, count=200):
        self.slots, self.ends, self.mark = new_slots(count), ints(-1, -1), np.zeros(3, np.int64)
        self.waiting, self.arrived = [], 0
        queue_mark.reset(self.mark)

    def enter(self, count):
        """New slots for new tuples."""
        picks = np.arange(self.arrived, self.arrived + count)
        self.slots.wide[picks, slots.ARRIVED] = 2 * picks + picks % 2
        slots.enqueue(self.slots, self.ends, picks)
        queue_mark.enter(self.mark, picks)
        self.waiting += picks.tolist()
        self.arrived += count

    def leave(self, places):
        """Tuples at these places leave, in this order."""
        gone = list(dict.fromkeys(self.waiting[place % len(self.waiting)] for place in places if self.waiting))
        queue_mark.dequeue(self.slots, self.ends, self.mark, ints(*gone))
        self.waiting = [slot for slot in self.waiting if slot not in gone]

    def marked(self, share):
        """The marked tuple."""
        return queue_mark.settle(self.slots, self.mark, share)

    def at_share(self, share):
        """The same by counting."""
        return self.waiting[::-1][int(share * (len(self.waiting) - 1))] if self.waiting else -1


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 1.0])
@given(steps=STEPS)
def test_the_mark_stands_at_its_share_of_the_queue(share, steps):
    queue = Queue()
    for count, places, look in steps:
        queue.enter(count)
        queue.leave(places)
        assert queue.mark[queue_mark.COUNT] == len(queue.waiting)
        if look:
            assert queue.marked(share) == queue.at_share(share)
    assert queue.marked(share) == queue.at_share(share)


@given(steps=STEPS)
def test_the_queue_is_the_one_without_a_mark(steps):
    queue = Queue()
    for count, places, _look in steps:
        queue.enter(count)
        queue.leave(places)
        found = np.zeros(len(queue.waiting) + 1, np.int64)
        assert found[: slots.oldest(queue.slots, queue.ends, found)].tolist() == queue.waiting


def test_the_mark_begins_again_when_everybody_has_left():
    queue = Queue()
    queue.enter(3)
    queue.leave([1, 0, 2])
    assert queue.marked(0.5) == -1
    queue.enter(2)
    assert (queue.marked(0.0), queue.marked(1.0)) == (4, 3)
