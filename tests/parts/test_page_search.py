"""Searching in word order, against the standard library's bisection and plain loops."""

from __future__ import annotations

import bisect
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream.parts import page, page_search
from tests.parts.made import EDGES, INT64_MAX, INT64_MIN, ints, pages_of, plain_rows

FAR = st.integers(INT64_MIN, INT64_MAX)
NEAR = st.sampled_from([0, 1 << 60, INT64_MIN, INT64_MAX - 300]).flatmap(lambda at: st.integers(at, at + 300))
WORD = st.sampled_from(EDGES) | NEAR | FAR
SORTED = st.lists(WORD, max_size=60).map(sorted)


def beside(words):
    """These words and their neighbours."""
    found = {word + step for word in words for step in (-1, 0, 1)} | {INT64_MIN, INT64_MAX}
    return sorted(word for word in found if INT64_MIN <= word <= INT64_MAX)


# --------------------------------------------------------------------------------------------------------------- words


@given(words=SORTED)
def test_words_are_counted_as_bisection_counts_them(words):
    for word in beside(words):
        assert page_search.words_up_to(ints(*words), np.int64(word)) == bisect.bisect_right(words, word)
        assert page_search.first_row(ints(*words), np.int64(word)) == bisect.bisect_left(words, word)


@pytest.mark.parametrize("first", [1 << 60, -(1 << 60), INT64_MIN, INT64_MAX - 99])
def test_words_that_are_one_floating_point_number_are_told_apart(first):
    words = first + np.arange(100, dtype=np.int64)
    assert float(words[0]) == float(words[40])
    assert [page_search.words_up_to(words, word) for word in words] == list(range(1, 101))


@pytest.mark.parametrize("steep", [lambda n: n, lambda n: n**7, lambda n: (1 << n // 2) - 1, lambda n: n // 10])
def test_words_that_lie_unevenly_are_found_too(steep):
    words = [steep(n) for n in range(120)]
    for word in beside(words)[1:-1]:
        assert page_search.words_up_to(ints(*words), np.int64(word)) == bisect.bisect_right(words, word)


# ---------------------------------------------------------------------------------------------------------------- bins


def bins_of(bounds, words):
    bounds = ints(*bounds)
    finder = page_search.finder_over(bounds, np.empty(page_search.finder_steps(bounds.size), np.int32))
    found = np.full(len(words), -1, np.int64)
    page_search.bins_of(finder, ints(*words), np.arange(len(words)), found)
    return found.tolist()


@given(bounds=st.lists(WORD, min_size=1, max_size=60).map(sorted), asked=st.lists(WORD, max_size=10))
def test_a_word_falls_into_the_last_range_that_begins_with_it_or_before(bounds, asked):
    words = beside(bounds) + asked
    assert bins_of(bounds, words) == [max(0, bisect.bisect_right(bounds, word) - 1) for word in words]


def test_the_whole_range_of_words_makes_one_sequence():
    bounds = [INT64_MIN, INT64_MIN, -1, 0, 0, 0, 1, INT64_MAX, INT64_MAX]
    assert bins_of(bounds, [INT64_MIN, -2, -1, 0, 1, 2, INT64_MAX]) == [1, 1, 2, 5, 6, 6, 8]
    assert bins_of([5], [INT64_MIN, 4, 5, 6, INT64_MAX]) == [0] * 5


def test_a_finder_over_nothing_can_be_made():
    assert page_search.finder_over(ints(), np.zeros(page_search.finder_steps(0), np.int32)).bounds.size == 0


# --------------------------------------------------------------------------------------------------------------- pages


class Paged:
    """Rows with these words, some a page."""

    def __init__(self, words, per_page):
        self.words = words
        self.memory, self.page_at, starts = pages_of(plain_rows(words), 32 + 16 * per_page)
        self.bounds = list(itertools.pairwise(starts.tolist()))
        self.first_words = ints(*(words[first] for first, _ in self.bounds))
        self.continues = np.array([f > 0 and words[f - 1] == words[f] for f, _ in self.bounds], np.uint8)

    def pages(self, word):
        """Pages with rows of this word."""
        return [at for at, (first, stop) in enumerate(self.bounds) if word in self.words[first:stop]]


FEW = st.lists(st.sampled_from([INT64_MIN, -3, 0, 1, 2, 3, 4, INT64_MAX]), max_size=40).map(sorted)


@given(words=FEW, per_page=st.integers(1, 5))
def test_a_word_is_on_one_page_or_several_or_surely_nowhere(words, per_page):
    paged, asked = Paged(words, per_page), [INT64_MIN, -4, -3, -1, 0, 1, 2, 3, 4, 9, INT64_MAX]
    found = np.empty(len(asked), np.int64)
    several = page_search.pages_of(paged.first_words, paged.continues, ints(*asked), found)
    assert several == (found == -2).sum()
    for word, page_found in zip(asked, found.tolist(), strict=True):
        pages = paged.pages(word)
        if len(pages) > 1:
            assert page_found == -2
        elif pages:
            assert page_found == pages[0]
        else:  # the page where it would stand, if there is one
            assert page_found == bisect.bisect_right(paged.first_words.tolist(), word) - 1


@given(pages=st.lists(st.integers(-2, 5), max_size=30))
def test_tuples_are_sorted_by_page_and_those_of_one_page_stay_in_order(pages):
    order = np.empty(len(pages), np.int64)
    elsewhere = page_search.by_page(ints(*pages), np.empty(8, np.int64), order)
    assert elsewhere == sum(at < 0 for at in pages)
    assert order.tolist() == sorted(range(len(pages)), key=lambda at: max(-1, pages[at]))


@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=12),
    asked=st.data(),
    room=st.integers(4, 20),
    gap=st.integers(0, 6),
)
def test_a_load_has_neighbours_as_far_as_room_and_gaps_allow(sizes, asked, room, gap):
    pages = sorted(asked.draw(st.lists(st.integers(0, len(sizes) - 1), min_size=1, max_size=12)))
    page_at, order, at, loads = ints(*np.cumsum([0, *sizes])), np.arange(len(pages)), 0, []
    while at < len(pages):
        first, stop, end = page_search.next_load(ints(*pages), order, at, page_at, room, gap)
        assert end > at
        assert page_at[stop] - page_at[first] <= room
        assert pages[at] == first
        assert pages[end - 1] == stop - 1, "pages behind the last one asked for are not read"
        assert all(page_at[b] - page_at[a + 1] <= gap for a, b in itertools.pairwise(pages[at:end]) if b > a + 1)
        if end < len(pages):
            too_far = page_at[pages[end]] - page_at[stop] > gap
            assert too_far or page_at[pages[end] + 1] - page_at[first] > room
        loads.append((first, stop))
        at = end
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(loads)), "a page is read twice"


# --------------------------------------------------------------------------------------------------------------- match


@given(words=FEW.filter(bool), asked=FEW, per_page=st.integers(1, 6), room=st.integers(1, 5))
def test_tuples_meet_the_rows_of_their_page_however_short_the_list_of_pairs(words, asked, per_page, room):
    paged = Paged(words, per_page)
    at = {word: paged.pages(word) for word in asked}
    asked = [word for word in asked if len(at[word]) == 1 or (not at[word] and word >= words[0])]
    pages = [bisect.bisect_right(paged.first_words.tolist(), word) - 1 for word in asked]
    wanted = page_search.Wanted(100 + np.arange(len(asked)), ints(*asked), ints(*pages), np.empty(len(asked), np.int64))
    pairs = page_search.Pairs(*(np.empty(room, np.int64) for _ in range(3)))
    counted, cursor, order = np.zeros(len(words), np.int32), ints(0, -1, 0), np.arange(len(asked))[::-1].copy()
    met = []
    while cursor[0] < order.size:
        count = page_search.match(paged.memory, paged.page_at, 0, 8, wanted, order, cursor, pairs, counted)
        rows = paged.memory.b1[pairs.row_at[:count]].tolist()
        met += zip(pairs.picks[:count].tolist(), rows, strict=True)
        assert set(pairs.heap_at[:count].tolist()) <= set(paged.page_at.tolist())
    right = [(100 + n, row) for n in order.tolist() for row in range(len(words)) if words[row] == asked[n]]
    assert met == right
    assert counted.tolist() == [asked.count(word) for word in words]
    assert wanted.absent[: cursor[2]].tolist() == [n for n in order.tolist() if asked[n] not in words]


def test_rows_of_a_load_are_numbered_from_its_first_page():
    paged = Paged(list(range(10)), 2)
    assert page.count_rows(paged.memory.b4, paged.page_at[2:4]) == 4
    counted, pairs = np.zeros(4, np.int32), page_search.Pairs(*(np.empty(4, np.int64) for _ in range(3)))
    wanted = page_search.Wanted(ints(0), ints(7), ints(3), ints(0))
    cursor = ints(0, -1, 0)
    assert page_search.match(paged.memory, paged.page_at[2:4], 2, 8, wanted, ints(0), cursor, pairs, counted) == 1
    assert counted.tolist() == [0, 0, 0, 1]
