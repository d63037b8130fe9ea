"""The ring against a list: bytes lie side by side, never over others that are still there."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from semistream.parts import ring
from tests.parts.made import ints, new_memory

ROOM = 96


@given(st.lists(st.lists(st.sampled_from([0, 1, 7, 8, 9, 24, 40, 96, 104]), max_size=5), max_size=30), st.randoms())
def test_bytes_lie_side_by_side_and_none_over_another(steps, dice):
    head = tail = 0
    there: list[tuple[int, int]] = []  # place and size, oldest first
    for sizes in steps:
        places = np.full(len(sizes), -1)
        count, tail = ring.reserve(ROOM, head, tail, ints(*sizes), places)
        there += [(int(place), size) for place, size in zip(places[:count], sizes[:count], strict=True)]
        taken = [place + byte for place, size in there for byte in range(-(-size // 8) * 8)]
        assert len(taken) == len(set(taken)), "two have a byte"
        assert all(0 <= byte < ROOM for byte in taken)
        assert all(place % 8 == 0 for place, _ in there)
        gone = dice.randrange(len(there) + 1)
        head = ring.release(ROOM, head, ints(*(size for _, size in there[:gone])))
        there = there[gone:]
        assert head <= tail
        assert there or head == tail


def test_a_full_ring_takes_no_more_until_the_oldest_have_gone():
    places = np.zeros(5, np.int64)
    count, tail = ring.reserve(ROOM, 0, 0, ints(32, 32, 32, 8, 8), places)
    assert (count, tail) == (3, 96)
    assert ring.reserve(ROOM, 0, tail, ints(8), places)[0] == 0
    head = ring.release(ROOM, 0, ints(32))
    assert ring.reserve(ROOM, head, tail, ints(32, 8), places)[0] == 1
    assert places[0] == 0


def test_rows_and_their_cells_are_copied():
    memory = new_memory(256)
    memory.b1[:64] = np.arange(64)
    ring.move_rows(memory, ints(0, 16), ints(128, 96), 14)  # rows are padded to 8
    assert memory.b1[128:144].tolist() == list(range(16))
    assert memory.b1[96:112].tolist() == list(range(16, 32))
    ring.move_cells(memory, ints(32, 40), ints(160, 168), ints(5, 0))
    assert memory.b1[160:176].tolist() == [*range(32, 37), *([0] * 11)]
