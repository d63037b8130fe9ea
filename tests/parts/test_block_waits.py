"""Chains of tuples by block against lists."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from semistream.parts import block_waits
from tests.parts.made import admitted, ints, new_table

FIRST_WORDS = ints(0, 10, 20, 20, 30)
BLOCK = np.array([0, 0, 1, 2, 2], np.int32)


def new_waits(slots):
    return block_waits.BlockWaits(
        first_words=FIRST_WORDS,
        block=BLOCK,
        head=np.full(3, -1, np.int32),
        count=np.zeros(3, np.int64),
        asked=np.zeros(3),
        link=np.zeros(slots, np.int32),
    )


def block_of(word):
    """The block of the last page whose first word is not larger; the first block for what comes before."""
    return int(BLOCK[max([page for page, first in enumerate(FIRST_WORDS) if first <= word], default=0)])


@given(words=st.lists(st.integers(-5, 40), max_size=12), room=st.integers(1, 5), served=st.lists(st.integers(0, 2)))
def test_everybody_hangs_on_one_block_and_is_taken_once(words, room, served):
    table, waits = new_table(12), new_waits(12)
    slots = admitted(table, words)
    block_waits.enter(waits, table.slots, ints(*slots))
    waiting = {
        block: {slot for slot, word in zip(slots, words, strict=True) if block_of(word) == block} for block in range(3)
    }
    assert waits.asked.tolist() == [len(waiting[block]) for block in range(3)]
    for block in served:
        assert waits.count.tolist() == [len(waiting[number]) for number in range(3)]
        picks = np.zeros(room, np.int64)
        taken = picks[: block_waits.take(waits, block, picks)].tolist()
        assert len(taken) == min(room, len(waiting[block]))
        assert len(set(taken)) == len(taken)
        assert set(taken) <= waiting[block]
        waiting[block] -= set(taken)
