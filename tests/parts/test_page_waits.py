"""Groups of pages know who waits for them: against a list of tuples and a scan over it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream.parts import page_waits, stream_table
from tests.parts.made import INT64_MAX, INT64_MIN, admitted, ints, new_table

CLOSED = ints(0, 0, 0, 0)
EVERYTHING = ints(0, 0, 0, 0)
NOTHING = ints(2, 0, 0, 0)
FIRST_WORDS = (-50, -10, 0, 0, 7, 20, 21, 40)


def new_waits(first_words=FIRST_WORDS, pages=1, slots=64):
    groups = max(1, -(-len(first_words) // pages))
    numbers = (np.zeros(groups, np.int64) for _ in range(4))
    waits = page_waits.PageWaits(ints(*first_words), pages, *numbers, np.zeros(slots, np.int32))
    page_waits.reset(waits)
    return waits


def enter(waits, table, words, position=0):
    slots = admitted(table, words, position)
    page_waits.enter(waits, table, ints(*slots))
    return slots


def waiting(waits, group):
    """The chain of a group."""
    slots, slot = [], int(waits.head[group])
    while slot >= 0:
        slots.append(slot)
        slot = int(waits.link[slot])
    assert len(slots) == waits.count[group]
    return slots


def sweep(waits, table, group, edges=EVERYTHING, open_words=CLOSED, room=64):
    """Words that leave."""
    heads = np.zeros(room, np.int64)
    count = page_waits.sweep(waits, table, group, edges, open_words, heads)
    return [int(table.slots.wide[head, 2]) for head in heads[:count]]


@given(
    first=st.lists(st.integers(-20, 20), min_size=1, max_size=12).map(sorted),
    pages=st.integers(1, 5),
    word=st.integers(-25, 25) | st.sampled_from([INT64_MIN, INT64_MAX]),
)
def test_a_word_belongs_to_the_last_group_that_may_have_it(first, pages, word):
    starts = first[::pages]
    expected = max([at for at, begin in enumerate(starts) if begin <= word], default=0)
    assert page_waits.group_of(new_waits(first, pages), np.int64(word)) == expected


def test_an_empty_master_has_one_group():
    waits, table = new_waits(()), new_table(64)
    enter(waits, table, [5, -5])
    assert len(waiting(waits, 0)) == 2


@given(words=st.lists(st.integers(-60, 60), min_size=1, max_size=60), product=st.booleans())
def test_the_longest_wait_is_that_of_a_scan_over_all_tuples(words, product):
    waits, table = new_waits(), new_table(64)
    enter(waits, table, words, position=100)
    now = 100 + len(words)
    scores = [0] * len(FIRST_WORDS)
    for group in range(len(FIRST_WORDS)):
        since = [100 + at for at, word in enumerate(words) if page_waits.group_of(waits, np.int64(word)) == group]
        assert waits.count[group] == len(since)
        assert waits.total[group] == sum(since)
        if since:
            scores[group] = len(since) * (now - min(since)) if product else sum(now - at for at in since)
    assert page_waits.longest_wait(waits, now, product) == scores.index(max(scores))


@pytest.mark.parametrize("room", [1, 2, 64])
@given(words=st.lists(st.integers(0, 12), min_size=1, max_size=60), left=st.sets(st.integers(0, 12)))
def test_after_a_load_its_words_leave_but_those_that_go_on_outside(words, left, room):
    waits, table = new_waits((0,)), new_table(64)
    slots = enter(waits, table, words)
    for word in left:
        stream_table.detach_word(table, np.int64(word))
    edges, open_words = ints(1, 3, 1, 9), ints(1, 3, 0, 5)
    gone = []
    while more := sweep(waits, table, 0, edges, open_words, room):
        gone += more
    answered = {word for word in words if 3 < word < 9}
    assert sorted(gone) == sorted(answered - left)
    stay = [at for at, word in enumerate(words) if word not in left | answered]
    assert sorted(waiting(waits, 0)) == sorted(slots[at] for at in stay)
    assert waits.total[0] == sum(stay)
    assert not stay or waits.first[0] == stay[0]


def test_without_edges_everything_is_inside_and_nothing_leaves_when_told_so():
    waits, table = new_waits((0,)), new_table(64)
    slots = enter(waits, table, [INT64_MIN, 0, INT64_MAX])
    assert sweep(waits, table, 0, NOTHING) == []
    assert sorted(waiting(waits, 0)) == sorted(slots)
    assert sorted(sweep(waits, table, 0)) == [INT64_MIN, 0, INT64_MAX]
    assert waiting(waits, 0) == []
    assert waits.count[0] == waits.total[0] == 0
