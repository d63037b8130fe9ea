"""Probing against nested loops: whatever the size of the lists, the same rows and pairs come out, once."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream.parts import probing, stream_table
from semistream.parts.probing import Picked
from tests.parts.made import EDGES, admitted, chain, clustered_words, ints, new_picked, new_table, pages_of, plain_rows

SLOTS = 12
POOL = (*EDGES[:4], *range(10, 16), *clustered_words(stream_table.entries_for(SLOTS), 3, 4))
WORDS = st.lists(st.sampled_from(POOL), max_size=SLOTS)
ROWS = st.lists(st.sampled_from(POOL), max_size=40)
ROOM = st.integers(1, 7)


def table_of(words):
    table = new_table(SLOTS)
    admitted(table, words)
    return table


def picked_in_pieces(table, memory, page_at, width, room):
    """Every piece that `pick_rows` gives, and whether more followed it."""
    cursor, picked = np.zeros(2, np.int64), new_picked(room)
    pieces = []
    while cursor[0] < page_at.size:
        before = cursor.tolist()
        count = probing.pick_rows(table, memory, page_at, width, cursor, picked)
        assert cursor.tolist() > before, "every call gets further"
        pieces.append((Picked(*(array[:count].copy() for array in picked)), bool(cursor[0] < page_at.size)))
    return pieces


def as_picked(words):
    """Rows with these words; the number of a row is its place."""
    return Picked(ints(*words), np.arange(len(words)) * 8, np.arange(len(words)) * 100)


@given(waiting=WORDS, rows=ROWS, room=ROOM, page_bytes=st.sampled_from([48, 64, 96, 4096]))
def test_no_row_that_somebody_waits_for_is_turned_away(waiting, rows, room, page_bytes):
    table = table_of(waiting)
    memory, page_at, starts = pages_of(plain_rows(rows), page_bytes)
    pieces = picked_in_pieces(table, memory, page_at, 8, room)
    words = np.concatenate([np.zeros(0, np.int64), *(p.words for p, _ in pieces)]).tolist()
    row_at = np.concatenate([np.zeros(0, np.int64), *(p.row_at for p, _ in pieces)]).tolist()
    heap_at = np.concatenate([np.zeros(0, np.int64), *(p.heap_at for p, _ in pieces)]).tolist()
    numbers = [int(memory.b1[at]) for at in row_at]
    assert numbers == sorted(set(numbers)), "every row at most once, in order"
    assert words == [rows[n] for n in numbers]
    assert heap_at == [page_at[np.searchsorted(starts, n, "right") - 1] for n in numbers]
    assert {n for n, word in enumerate(rows) if word in waiting} <= set(numbers)
    assert [more for _, more in pieces] == [True] * (len(pieces) - 1) + [False] * bool(pieces)


def test_hardly_a_row_passes_that_nobody_waits_for():
    table = new_table(1000)
    admitted(table, range(1000))
    memory, page_at, _ = pages_of(plain_rows(range(1000, 6000)), 4096)
    passed = sum(piece.words.size for piece, _ in picked_in_pieces(table, memory, page_at, 8, 512))
    assert passed < 400, "a tag has 7 bits, and a full table shows each row about five of them"


def test_rows_without_columns_are_picked_too():
    memory, page_at, _ = pages_of(plain_rows([5, 6, 7], width=0), 4096)
    ((piece, more),) = picked_in_pieces(table_of([6]), memory, page_at, 0, 10)
    assert 6 in piece.words.tolist()
    assert set(piece.row_at.tolist()) == {int(page_at[0]) + 32 + 3 * 8}
    assert not more


def run_of_probe(table, picked, room):
    """All pairs (row, slot), through a list of `room` pairs."""
    cursor, found, pairs = ints(0, -1), new_picked(room), []
    while cursor[0] < picked.words.size:
        count = probing.probe(table, picked, cursor, found)
        assert count == room or cursor[0] == picked.words.size
        pairs += zip((found.row_at[:count] // 8).tolist(), found.words[:count].tolist(), strict=True)
        assert (found.heap_at[:count] == found.row_at[:count] // 8 * 100).all()
    return pairs


@given(waiting=WORDS, rows=ROWS, room=ROOM)
def test_probing_pairs_every_row_with_every_tuple_of_its_word(waiting, rows, room):
    table = table_of(waiting)
    expected = [(n, slot) for n, word in enumerate(rows) for slot in chain(table, word)]
    assert run_of_probe(table, as_picked(rows), room) == expected
    assert table.state[1] == len(waiting), "probing lets nobody leave"


def run_of_claim(table, pieces, room, heads_room):
    """All pairs and all chains that left, through short lists. The rows of the last word of a piece may go on in the next."""
    pairs, heads_gone, first = [], [], 0
    for number, words in enumerate(pieces):
        picked = as_picked(words)
        cursor, found, heads = ints(0, -1, 0), new_picked(room), np.zeros(heads_room, np.int64)
        while cursor[0] < len(words):
            cursor[2] = 0
            more = number + 1 < len(pieces)
            count = probing.claim(table, picked, cursor, found, heads, more)
            assert count or cursor[2] or cursor[0] == len(words), "every call gets further"
            pairs += zip((first + found.row_at[:count] // 8).tolist(), found.words[:count].tolist(), strict=True)
            heads_gone += heads[: cursor[2]].tolist()
        first += len(words)
    return pairs, heads_gone


@given(waiting=WORDS, rows=ROWS, room=ROOM, heads_room=ROOM, cuts=st.lists(st.integers(0, 40), max_size=3))
def test_claiming_pairs_the_same_and_lets_complete_words_leave(waiting, rows, room, heads_room, cuts):
    rows = sorted(rows)
    table = table_of(waiting)
    chains = {word: chain(table, word) for word in POOL}
    expected = [(n, slot) for n, word in enumerate(rows) for slot in chains[word]]
    bounds = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    pieces = [rows[a:b] for a, b in itertools.pairwise(bounds) if b > a]
    pairs, heads = run_of_claim(table, pieces, room, heads_room)
    assert pairs == expected
    complete = {word for word in waiting if word in rows}
    # a word whose rows end exactly with a piece may have more in the next: it stays for the caller to let go
    undecided = {a[-1] for a, b in itertools.pairwise(pieces) if a[-1] != b[0]} & complete
    left = {word for word in POOL if chains[word] and not chain(table, word)}
    assert left == complete - undecided
    assert sorted(heads) == sorted(chains[word][0] for word in left)
    for word in POOL:
        if word not in left:
            assert chain(table, word) == chains[word]


@pytest.mark.parametrize("more", [False, True])
def test_the_last_word_leaves_only_if_no_more_rows_can_follow(more):
    table = table_of([10, 11, 11])
    cursor, found, heads = ints(0, -1, 0), new_picked(10), np.zeros(10, np.int64)
    assert probing.claim(table, as_picked([10, 11]), cursor, found, heads, more) == 3
    assert cursor.tolist() == [2, -1, 1 if more else 2]
    assert chain(table, 10) == []
    assert len(chain(table, 11)) == (2 if more else 0)


def test_a_word_with_many_rows_and_many_tuples_gives_all_pairs_through_a_list_of_one():
    table = table_of([5] * SLOTS)
    assert len(set(run_of_probe(table, as_picked([5] * 30), 1))) == 30 * SLOTS
    pairs, heads = run_of_claim(table, [[5] * 30], 1, 1)
    assert len(set(pairs)) == 30 * SLOTS
    assert heads == [SLOTS - 1]
    assert table.state[2] == 0
