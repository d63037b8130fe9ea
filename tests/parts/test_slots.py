"""Slots: the arrival queue against a list."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from semistream.parts import slots
from tests.parts.made import ints, new_slots

COUNT = 9


def queue_of(records, ends):
    """The queue from the oldest to the newest, read both ways."""
    forth, slot = [], int(ends[0])
    while slot >= 0:
        forth.append(slot)
        slot = int(records.links[slot, slots.NEWER])
    back, slot = [], int(ends[1])
    while slot >= 0:
        back.append(slot)
        slot = int(records.links[slot, slots.OLDER])
    assert back == forth[::-1]
    return forth


@given(
    steps=st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, COUNT - 1), min_size=1, max_size=4)), max_size=20)
)
def test_the_queue_keeps_the_order_of_arrival_whoever_leaves(steps):
    records, ends, model = new_slots(COUNT), ints(-1, -1), []
    for coming, numbers in steps:
        free = [slot for slot in range(COUNT) if slot not in model]
        choice = free if coming else model
        picks = list(dict.fromkeys(choice[n % len(choice)] for n in numbers)) if choice else []
        (slots.enqueue if coming else slots.dequeue)(records, ends, ints(*picks))
        model = model + picks if coming else [slot for slot in model if slot not in picks]
        assert queue_of(records, ends) == model
        for room in (1, 3, COUNT + 2):
            oldest = np.full(room, -7, np.int64)
            count = slots.oldest(records, ends, oldest)
            assert oldest[:count].tolist() == model[:room]
            assert (oldest[count:] == -7).all()


def test_records_are_multiples_of_eight_bytes_and_hold_what_they_say():
    assert [slots.record_bytes(width, has_cells=False) for width in (0, 1, 8, 9)] == [32, 40, 40, 48]
    assert [slots.record_bytes(width, has_cells=True) for width in (0, 1, 8, 9)] == [40, 48, 48, 56]
