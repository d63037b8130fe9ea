"""The list of frequent pages against a dictionary."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from semistream.parts import due_pages

CALLS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 50), st.integers(1, 50), st.booleans()), max_size=40)


def new_pages(room=6):
    numbers = (np.zeros(room, kind) for kind in (np.int64, np.int64, np.float64, np.float64, np.float64))
    return due_pages.DuePages(*numbers, np.zeros(1, np.int64))


def note(pages, first, due, chance):
    """Note pages, or note them again; whether there was room."""
    at = due_pages.find(pages, first)
    at = due_pages.room(pages, chance) if at < 0 else at
    if at >= 0:
        pages.first[at], pages.stop[at], pages.due[at], pages.chance[at] = first, first + 1, due, chance
    return at >= 0


@given(calls=CALLS)
def test_the_soonest_is_found_and_rarer_pages_make_room(calls):
    pages, known = new_pages(), {}
    for first, due, chance, strike in calls:
        if strike:
            at = due_pages.find(pages, first)
            assert (at >= 0) == (first in known)
            if at >= 0:
                due_pages.remove(pages, at)
                del known[first]
        else:
            least = min((chance for _, chance in known.values()), default=0)
            fits = first in known or len(known) < 6 or least < chance
            assert note(pages, first, due, chance) == fits
            if fits and first not in known and len(known) == 6:
                held = set(pages.first[:6].tolist())
                (lost,) = set(known) - held
                assert known[lost][1] == least
                del known[lost]
            if fits:
                known[first] = due, chance
        assert pages.size[0] == len(known)
        at = due_pages.soonest(pages)
        assert (pages.due[at] if at >= 0 else None) == min((due for due, _ in known.values()), default=None)


def test_pages_that_are_being_loaded_are_not_due():
    pages = new_pages()
    note(pages, 3, np.inf, 1)
    assert due_pages.soonest(pages) == -1
    note(pages, 5, 10, 1)
    assert pages.first[due_pages.soonest(pages)] == 5


def test_a_list_without_room_takes_nothing():
    assert not note(new_pages(0), 1, 1, 1)
