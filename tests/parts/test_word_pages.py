"""Pages of words against a list of pages: no row of a word stands on a page that is not named."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from semistream.parts import word_pages
from tests.parts.made import EDGES, admitted, ints, new_table

POOL = (*EDGES, 5, 6, 7, 8)
PAGES = st.lists(st.lists(st.sampled_from(POOL), min_size=1, max_size=4), max_size=7)


def in_order(pages):
    """The same page sizes with all words in order, and the sparse index over them."""
    words = sorted(word for page in pages for word in page)
    cut, at = [], 0
    for page in pages:
        cut.append(words[at : at + len(page)])
        at += len(page)
    continues = [int(i > 0 and cut[i - 1][-1] == page[0]) for i, page in enumerate(cut)]
    return cut, ints(*(page[0] for page in cut)), np.array(continues, np.uint8)


@given(pages=PAGES, word=st.sampled_from([*POOL, 9, -7]))
def test_the_pages_from_first_to_last_hold_every_row_of_a_word(pages, word):
    pages, first_words, continues = in_order(pages)
    last = word_pages.last_page(first_words, word)
    first = word_pages.first_page(first_words, continues, word, last)
    holding = [number for number, page in enumerate(pages) if word in page]
    assert all(first <= number <= last for number in holding)
    assert last - first <= max(0, len(holding) - 1), "no page more than needed"
    assert (last == -1) == (not pages or word < pages[0][0])


@given(pages=PAGES, words=st.lists(st.sampled_from([*POOL, 9, -7]), max_size=10))
def test_exactly_the_pages_that_somebody_may_wait_for_are_marked(pages, words):
    pages, first_words, continues = in_order(pages)
    table, marks = new_table(12), np.zeros(len(pages), np.uint8)
    admitted(table, words)
    word_pages.mark_pages(table, first_words, continues, marks)
    wanted = set()
    for word in words:
        last = word_pages.last_page(first_words, word)
        if last >= 0:
            wanted.update(range(word_pages.first_page(first_words, continues, word, last), last + 1))
    assert np.flatnonzero(marks).tolist() == sorted(wanted)
