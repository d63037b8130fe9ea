"""Answers from kept pages against nested loops: complete, or left over."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from semistream.parts import kept_pages
from tests.parts.made import EDGES, ints, pages_of, plain_rows

POOL = (*EDGES[:4], *range(10, 16))
ROWS = st.lists(st.sampled_from(POOL), min_size=1, max_size=40).map(sorted)


@given(
    rows=ROWS,
    stays=st.sets(st.integers(0, 12)),
    asked=st.lists(st.sampled_from([*POOL, 9, 12]), max_size=12),
    skipped=st.integers(0, 3),
    room=st.integers(1, 7),
    page_bytes=st.sampled_from([48, 64, 96, 4096]),
)
def test_a_tuple_gets_all_its_rows_or_is_left_over(rows, stays, asked, skipped, room, page_bytes):
    memory, page_at, starts = pages_of(plain_rows(rows), page_bytes)
    pages = [rows[a:b] for a, b in itertools.pairwise(starts)]
    kept = kept_pages.KeptPages(
        first_words=ints(*(page[0] for page in pages)),
        continues=np.array([i > 0 and pages[i - 1][-1] == page[0] for i, page in enumerate(pages)], np.uint8),
        at=np.array([at if number in stays else -1 for number, at in enumerate(page_at)], np.int64),
        block=np.zeros(len(pages), np.int32),
        asked=np.zeros(1),
    )
    picks = np.arange(min(skipped, len(asked)), len(asked))
    questions = kept_pages.Questions(ints(*asked), picks, np.zeros(picks.size, np.int64))
    found = kept_pages.Answers(*(np.zeros(room, np.int64) for _ in range(4)))
    cursor, pairs, gone = ints(0, -1, 0, 0, 0), [], []
    while cursor[kept_pages.PICK] < picks.size:
        before = cursor.tolist()
        count = kept_pages.answer(kept, memory, 8, questions, cursor, found)
        assert cursor.tolist() != before or count, "every call gets further"
        pairs += zip(found.picks[:count].tolist(), memory.b1[found.row_at[:count]].tolist(), strict=True)
        assert set(found.heap_at[:count].tolist()) <= set(page_at.tolist())
        gone += found.gone[: cursor[kept_pages.GONE]].tolist()
        assert {pick for pick, _ in pairs} - set(gone) <= {int(picks[cursor[kept_pages.PICK] % picks.size])}
    left = questions.left[: cursor[kept_pages.LEFT]].tolist()
    assert sorted(gone + left) == picks.tolist()
    assert left == sorted(left)
    assert sorted(pairs) == [(pick, row) for pick in gone for row, word in enumerate(rows) if word == asked[pick]]
    assert kept.asked[0] == len(gone)
    for pick in left:
        holding = [number for number, page in enumerate(pages) if asked[pick] in page]
        before = asked[pick] < rows[0]
        assert before or not {*holding, *(n for n, page in enumerate(pages) if page[0] <= asked[pick])} <= stays
