"""Words on their way into the hot cache: begun, collected for a round, and kept or dropped by the inequality."""

from __future__ import annotations

import numpy as np
import pytest

from semistream.parts import hot_cache, hot_switching, stream_table
from semistream.parts.hot_switching import COUNT, CYCLE, SHORT_ROWS, SHORT_WORDS, STATE, Ring
from tests.parts.made import admitted, ints, new_table
from tests.parts.test_hot_cache import RECORDS, SLOTS, Kept

COSTS = np.array([10.0, 30.0, 5.0, 2.0])  # a waiting tuple, a row, a word, and the least number of tuples


class Scan:
    """Words that wait, and a cache beside them."""

    def __init__(self, cells=True, room=4):
        self.kept, self.table = Kept(cells), new_table(64)
        self.cache, self.memory = self.kept.cache, self.kept.memory
        records, serials = (np.zeros(room, np.int32) for _ in range(2))
        self.ring = Ring(records, serials, np.zeros(STATE, np.int64), np.zeros(8, np.int64))

    def begin(self, *words, absent_only=False):
        self.slots = ints(*admitted(self.table, list(words)))
        return hot_switching.begin(self.cache, self.table, self.slots, COSTS, self.ring, absent_only)

    def collect(self, *words):
        rows, texts = self.kept.load(list(words))
        hot_switching.collect(self.cache, self.memory, rows, self.ring)
        return [text[1:] for text in texts]

    def finish(self, due):
        hot_switching.finish(self.cache, self.memory, self.table, COSTS, self.ring, due)

    def rows(self, word):
        record = hot_cache.record_of(self.cache, np.int64(word))
        return None if record < 0 else int(self.cache.records[record, hot_cache.ROWS])


@pytest.mark.parametrize(
    ("waiting", "rows"), [(0, -1), (1, -1), (2, 0), (3, 0), (4, 1), (6, 1), (7, 2), (10, 3), (1 << 16, 21845)]
)
def test_the_inequality_says_how_many_rows_are_worth_it(waiting, rows):
    assert hot_switching.most_rows(COSTS, waiting) == rows
    assert rows < 0 or waiting * 10 > rows * 30 + 5


def test_a_word_without_spare_bytes_is_not_worth_its_record():
    assert hot_switching.most_rows(np.array([10.0, 30.0, 20.0, 1.0]), 2) == -1
    assert hot_switching.most_rows(np.array([10.0, 30.0, 0.0, 1.0]), 3) == 0, "as much is not more"


@pytest.mark.parametrize("cells", [True, False])
def test_a_word_answers_when_its_turn_is_over_and_not_before(cells):
    scan = Scan(cells)
    assert scan.begin(5, 5, 5, 5, 5, 5, 5, 6) == 1, "one tuple says nothing of the other word"
    texts = scan.collect(5, 7, 6)[:1] + scan.collect(5)
    assert scan.kept.answers([5])[2] == [0], "it is not whole yet"
    assert scan.rows(5) == -3
    scan.finish(1)
    pairs, gone, missed = scan.kept.answers([5, 6])
    assert sorted(pair[1:] for pair in pairs) == sorted(texts)
    assert (gone, missed) == ([0], [1])
    scan.collect(5)
    assert scan.rows(5) == 2, "rows that come by later are no more of it"


def test_a_word_whose_rows_never_came_is_absent():
    scan = Scan()
    scan.begin(5, 5, 5, 5)
    scan.finish(1)
    assert scan.kept.answers([5])[1] == [0]
    assert scan.rows(5) == 0


def test_a_word_that_is_worth_its_record_only_must_be_suspected():
    scan = Scan()
    assert scan.begin(5, 5, 6, 6) == 0
    hot_switching.suspect(scan.table, scan.slots[:1], scan.ring)
    assert scan.begin(5, 6) == 1
    scan.finish(1)
    assert scan.rows(5) == 0


def test_a_word_with_too_many_rows_gives_its_room_back_at_once_and_may_begin_anew():
    scan = Scan()
    scan.begin(5, 5, 5, 5)  # worth one row
    scan.collect(5, 5)
    assert scan.rows(5) is None
    scan.kept.check({})
    assert scan.begin(5) == 1, "whoever comes now sees all rows as well"
    scan.finish(1)
    assert scan.rows(5) == -1, "its own turn is not over"
    assert scan.ring.state[SHORT_ROWS] == 0


def test_a_record_that_serves_another_word_has_another_turn():
    scan = Scan()
    scan.begin(5, 5, 5, 5)
    scan.collect(5, 5)
    assert scan.begin(6, 6, 6, 6) == 1
    assert scan.ring.records[0] == scan.ring.records[1]
    scan.finish(1)
    assert scan.rows(6) == -1
    scan.finish(1)
    assert scan.rows(6) == 0


def test_only_suspects_are_begun_to_find_out_that_they_are_absent():
    scan = Scan()
    assert scan.begin(5, 5, 6, 6, absent_only=True) == 0
    hot_switching.suspect(scan.table, scan.slots, scan.ring)
    assert scan.begin(5, 6, 7, 7, absent_only=True) == 2
    scan.collect(6)
    scan.finish(2)
    assert (scan.rows(5), scan.rows(6), scan.rows(7)) == (0, None, None)


def test_words_are_weighed_with_all_their_rows():
    scan = Scan()
    rows, _ = scan.kept.load([5, 6, 6, 7])
    assert hot_switching.weigh(rows, ints(4, 4, 4, 3), COSTS) == 1
    assert rows.words[0] == 5


def test_who_is_asked_for_no_more_when_its_turn_is_over_goes():
    scan = Scan()
    scan.begin(5, 5, 5, 5)
    scan.collect(5)
    stream_table.free(scan.table, ints(*stream_table.chain_of(scan.table, np.int64(5)).tolist()))
    stream_table.detach_word(scan.table, np.int64(5))
    scan.finish(1)
    scan.kept.check({})


def test_turns_end_in_the_order_of_their_beginning_round_and_round():
    scan = Scan(room=3)
    for word in range(10, 24, 2):
        assert scan.begin(*([word, word + 1] * 4)) == 2
        scan.finish(2)
        assert scan.ring.state[COUNT] == 0
        for kept in (word, word + 1):
            assert scan.rows(kept) == 0
            hot_cache.forget(scan.cache, scan.memory, hot_cache.record_of(scan.cache, np.int64(kept)))


def test_what_finds_no_room_is_told():
    scan = Scan(room=RECORDS + 1)
    words = [word for word in range(100, 101 + RECORDS) for _ in range(4)]
    assert scan.begin(*words) == RECORDS
    assert scan.ring.state[SHORT_WORDS] == 1
    scan = Scan(cells=False, room=8)
    scan.begin(*([5] * 50))
    scan.collect(*([5] * (SLOTS + 1)))
    assert scan.ring.state[SHORT_ROWS] == 1
    assert scan.rows(5) is None


@pytest.mark.parametrize(
    ("cycle", "hits", "stays"),
    [(0, 0, True), (1, 3, False), (1, 4, True), (2, 7, False), (2, 8, True), (40, 35, False), (40, 36, True)],
)
def test_a_word_is_judged_by_its_hits_over_its_age_ten_cycles_at_most(cycle, hits, stays):
    scan = Scan()
    scan.begin(5, 5, 5, 5)
    scan.collect(5)
    scan.ring.state[CYCLE] = 7
    scan.finish(1)
    scan.kept.answers([5] * hits)
    assert hot_switching.review(scan.cache, scan.memory, COSTS, 7 + cycle, 10, False) == (0 if stays else 1)
    assert (scan.rows(5) == 1) == stays
    if stays and cycle:
        assert hot_switching.review(scan.cache, scan.memory, COSTS, 7 + cycle, 10, True) == 0
        assert hot_switching.review(scan.cache, scan.memory, COSTS, 7 + cycle, 10, True) == 1, "hits are counted anew"
