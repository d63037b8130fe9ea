"""The stream table against a dict of lists: the newest tuple of a word stands first in its chain."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream.parts import stream_table
from tests.parts.made import EDGES, admitted, chain, clustered_words, ints, new_table

SLOTS = 8
ENTRIES = stream_table.entries_for(SLOTS)
LAST = ENTRIES - 1
POOLS = {
    "edges": EDGES,
    "in sequence": tuple(range(12)),
    "one home": clustered_words(ENTRIES, 7, 10),
    "homes round the end": clustered_words(ENTRIES, LAST, 6) + clustered_words(ENTRIES, 0, 4),
    "three homes in a row": tuple(word for home in (4, 5, 6) for word in clustered_words(ENTRIES, home, 4)),
    "one home and one tag": clustered_words(ENTRIES, LAST - 1, 5, tag=0x55),
}


def check(table, model):
    """The table says what the model says, for every word the test knows."""
    for words in POOLS.values():
        for word in words:
            assert chain(table, word) == model.get(word, [])
    waiting = sum(map(len, model.values()))
    assert table.state.tolist()[1:3] == [waiting, len(model)]
    assert int((table.tag != 0).sum()) == len(model)


def admit(table, model, words, position):
    """Admit into both; as many find a slot as were free."""
    free = SLOTS - sum(map(len, model.values()))
    taken = admitted(table, words, position)
    assert len(taken) == min(free, len(words))
    assert len(set(taken)) == len(taken)
    for i, (word, slot) in enumerate(zip(words, taken, strict=False)):
        assert all(slot not in slots for slots in model.values())
        model.setdefault(word, []).insert(0, slot)
        assert table.slots.wide[slot, 2:4].tolist() == [word, (position + i) << 1]


def leave(table, model, slots):
    """Tuples leave by identity."""
    stream_table.detach(table, ints(*slots))
    for word in list(model):
        model[word] = [slot for slot in model[word] if slot not in slots]
        if not model[word]:
            del model[word]
    check_chains_only(table, model)
    stream_table.free(table, ints(*slots))


def check_chains_only(table, model):
    for word, slots in model.items():
        assert chain(table, word) == slots


def leave_word(table, model, word):
    """All tuples of a word leave."""
    head = stream_table.detach_word(table, np.int64(word))
    slots = model.pop(word, [])
    assert head == (slots[0] if slots else -1)
    assert chain(table, word) == []
    gone = flattened(table, [head])
    assert gone == slots
    stream_table.free(table, ints(*gone))


def flattened(table, heads, room=3):
    """Detached chains as one list, through a list that is too short for them."""
    heads, gone, all_gone = ints(*heads), np.zeros(room, np.int64), []
    while count := stream_table.unchain(table, heads, gone):
        all_gone += gone[:count].tolist()
    return all_gone


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["admit", "admit", "leave", "leave word"]),
        st.lists(st.integers(0, 11), min_size=1, max_size=5),
    ),
    max_size=25,
)


@given(pool=st.sampled_from(list(POOLS)), steps=STEPS)
def test_any_coming_and_going_keeps_every_word_findable(pool, steps):
    table, model, words = new_table(SLOTS), {}, POOLS[pool]
    for position, (step, numbers) in enumerate(steps):
        if step == "admit":
            admit(table, model, [words[n % len(words)] for n in numbers], position * 10)
        elif step == "leave":
            waiting = [slot for slots in model.values() for slot in slots]
            leave(table, model, list({waiting[n % len(waiting)] for n in numbers if waiting}))
        else:
            leave_word(table, model, words[numbers[0] % len(words)])
        check(table, model)


@pytest.mark.parametrize("pool", list(POOLS))
def test_a_full_table_empties_in_any_order(pool):
    words = (POOLS[pool] * 2)[:SLOTS]
    for seed in range(20):
        table, model = new_table(SLOTS), {}
        admit(table, model, words, 0)
        check(table, model)
        order = [slot for slots in model.values() for slot in slots]
        random.Random(seed).shuffle(order)
        for slot in order:
            leave(table, model, [slot])
            check_chains_only(table, model)
        check(table, {})


def test_entries_that_wrapped_round_the_end_move_back_when_one_before_them_leaves():
    words = clustered_words(ENTRIES, LAST, 4)
    table = new_table(SLOTS)
    admitted(table, words)
    assert [stream_table.find(table, np.int64(word)) for word in words] == [LAST, 0, 1, 2]
    stream_table.detach_word(table, np.int64(words[0]))
    assert [stream_table.find(table, np.int64(word)) for word in words[1:]] == [LAST, 0, 1]


def test_an_entry_at_its_own_home_stays_when_one_that_wrapped_leaves():
    wrapped, at_home = clustered_words(ENTRIES, LAST, 2), clustered_words(ENTRIES, 1, 1)
    table = new_table(SLOTS)
    admitted(table, [*wrapped, *at_home])
    stream_table.detach_word(table, np.int64(wrapped[1]))
    assert stream_table.find(table, np.int64(at_home[0])) == 1
    assert chain(table, at_home[0]) == [2]


def test_only_the_picked_rows_are_admitted():
    table = new_table(SLOTS)
    taken = np.zeros(2, np.int64)
    assert stream_table.admit(table, ints(10, 11, 12, 13), ints(200, 202, 204, 206), ints(1, 3), taken) == 2
    assert [chain(table, word) for word in (10, 11, 12, 13)] == [[], [taken[0]], [], [taken[1]]]
    assert (table.slots.wide[taken, 3] >> 1).tolist() == [101, 103]


def test_a_chain_holds_every_tuple_of_a_word_however_many():
    table = new_table(500)
    taken = admitted(table, [-1] * 500)
    assert chain(table, -1) == taken[::-1]
    assert table.state.tolist()[1:3] == [500, 1]
    assert admitted(table, [-1]) == []


def test_several_chains_flatten_through_one_short_list():
    table = new_table(SLOTS)
    admitted(table, [1, 2, 1, 3, 1, 2])
    heads = [stream_table.detach_word(table, np.int64(word)) for word in (1, 2, 3)]
    for room in (1, 2, 4, 100):
        assert flattened(table, heads, room) == [4, 2, 0, 5, 1, 3]


def test_a_reset_table_is_as_new():
    table = new_table(SLOTS)
    admitted(table, range(SLOTS))
    stream_table.reset(table)
    check(table, {})
    assert sorted(admitted(table, range(SLOTS + 3))) == list(range(SLOTS))


def test_one_slot_is_enough():
    table = new_table(1)
    for word in (*EDGES, *range(50)):
        assert admitted(table, [word, word]) == [0]
        assert chain(table, word) == [0]
        stream_table.detach(table, ints(0))
        stream_table.free(table, ints(0))
    assert table.state.tolist()[1:3] == [0, 0]


def test_back_links_can_serve_another_chain():
    table = new_table(8)
    links = stream_table.take_back_links(table)
    first = admitted(table, [7, 8, 7])
    assert links[first].tolist() == [-1] * 3
    links[first] = 5
    second = admitted(table, [7, 9])
    assert links[first].tolist() == [5] * 3
    assert chain(table, 7) == [second[0], first[2], first[0]]
    stream_table.reset(table)
    (old, new) = admitted(table, [1, 1])
    assert table.slots.links[old, 1] == new
