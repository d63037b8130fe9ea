"""The hot cache against a dict of lists: whole words or none, whatever comes, leaves, and moves in the heap."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream.parts import hot_cache, hot_collecting, hot_victims, row_heap, stream_table
from semistream.parts.probing import Picked
from tests.parts.made import EDGES, clustered_words, ints, new_memory, new_picked

SLOTS, RECORDS, WIDTH, HEAP = 12, 8, 16, 256
CACHE_AT, HEAP_AT, PAGE_AT = 64, 1024, 2048
POOL = (*EDGES[:4], *range(10, 14), *clustered_words(stream_table.entries_for(RECORDS), 3, 4))


class Kept:
    """A small cache over rows (a word, a text), and what it should hold."""

    def __init__(self, cells=True):
        self.cells = cells
        header = hot_cache.slot_header_bytes(cells)
        self.memory, entries = new_memory(8192), stream_table.entries_for(RECORDS)
        slots = self.memory.b1[CACHE_AT : CACHE_AT + SLOTS * (header + WIDTH)]
        self.cache = hot_cache.HotCache(
            tag=np.zeros(entries, np.uint8),
            entry_word=np.zeros(entries, np.int64),
            entry_head=np.zeros(entries, np.int32),
            record_word=np.zeros(RECORDS, np.int64),
            records=np.zeros((RECORDS, 4), np.int32),
            links=slots.view(np.int32).reshape(SLOTS, -1),
            wide=slots.view(np.int64).reshape(SLOTS, -1),
            heap=row_heap.RowHeap(np.zeros(4, np.int64)),
            cells=ints(8) if cells else ints(),
            state=np.zeros(hot_cache.STATE, np.int64),
        )
        hot_cache.reset(self.cache, CACHE_AT + header, WIDTH, seed=7)
        row_heap.reset(self.cache.heap, HEAP_AT, HEAP_AT + HEAP)
        self.rows = 0

    def load(self, words, text_bytes=()):
        """Rows with these words in the disk buffer; row i of all rows ever has number i, and a text that tells it."""
        row_at, texts, heap = [], [], PAGE_AT + 64 * WIDTH
        for place, word in enumerate(words):
            size = text_bytes[place % len(text_bytes)] if text_bytes else 3
            text = bytes((self.rows * 37 + i) % 251 for i in range(size))
            at = PAGE_AT + place * WIDTH
            self.memory.b1[at : at + 16] = np.frombuffer(struct.pack("<qII", self.rows, heap - PAGE_AT, size), np.uint8)
            self.memory.b1[heap : heap + size] = np.frombuffer(text, np.uint8)
            heap += size
            row_at.append(at)
            texts.append((word, self.rows, text if self.cells else b""))
            self.rows += 1
        return Picked(ints(*words), ints(*row_at), np.full(len(words), PAGE_AT)), texts

    def row(self, at, heap):
        """Number and text of a row in the cache."""
        number, start, size = struct.unpack("<qII", self.memory.b1[at : at + 16].tobytes())
        return number, self.memory.b1[heap + start : heap + start + size].tobytes() if self.cells else b""

    def answers(self, words, room=3, gone_room=2):
        """Pairs, tuples that are gone, and misses, through short lists."""
        picks, cursor = np.arange(len(words)), ints(0, -1, 0, 0)
        found, gone_list, pairs, gone = new_picked(room), np.zeros(gone_room, np.int64), [], []
        while cursor[0] < picks.size:
            before = cursor.copy()
            cursor[3] = 0
            count = hot_cache.answer(self.cache, ints(*words), picks, cursor, found, gone_list)
            assert (cursor[:3] != before[:3]).any(), "every call gets further"
            for pick, at, heap in zip(*(array[:count].tolist() for array in found), strict=True):
                assert pick not in gone, "a tuple was gone before its last pair"
                pairs.append((pick, *self.row(at, heap)))
            gone += gone_list[: cursor[3]].tolist()
        return pairs, gone, picks[: cursor[2]].tolist()

    def check(self, model):
        """The cache holds the model, and every slot and record is either used or free."""
        words = list(POOL) * 2
        pairs, gone, missed = self.answers(words)
        expected = [(n, *row) for n, word in enumerate(words) for row in model.get(word, [])]
        assert sorted(pairs) == sorted(expected)
        assert gone == [n for n, word in enumerate(words) if word in model]
        assert missed == [n for n, word in enumerate(words) if word not in model]
        assert self.cache.state[stream_table.KEYS] == len(model)
        assert self.cache.state[hot_cache.FREE_SLOTS] == SLOTS - sum(map(len, model.values()))
        assert chain(self.cache.links[:, 0], self.cache.state[hot_cache.FREE_SLOT]) == SLOTS - sum(
            map(len, model.values())
        )
        assert chain(self.cache.records[:, 0], self.cache.state[hot_cache.FREE_RECORD]) == RECORDS - len(model)

    def held(self):
        """The words that the cache says it has."""
        return {word for word in POOL if hot_cache.record_of(self.cache, np.int64(word)) >= 0}


def chain(following, at):
    """Length of a list of free places, each of which is on it once."""
    seen = set()
    while at >= 0:
        assert at not in seen
        seen.add(int(at))
        at = int(following[at])
    return len(seen)


def keep(kept, model, words, text_bytes):
    """Keep whole words, as far as there is room; the model is told which."""
    words = sorted(words, key=POOL.index)
    rows, texts = kept.load(words, text_bytes)
    done = hot_cache.keep(kept.cache, kept.memory, rows, np.full(len(words), 5), 1)
    for word in dict.fromkeys(words[:done]):
        model.setdefault(word, [(number, text) for w, number, text in texts if w == word])
    assert done == len(words) or words[done] not in model
    assert done in (0, len(words)) or words[done] != words[done - 1], "half a word was kept"


def remove(kept, model, wanted, victims):
    """Let some words go, and see that they went whole and were enough."""
    before = dict(model)
    freed = victims(kept.cache, kept.memory, wanted)
    for word in set(model) - kept.held():
        del model[word]
    gone = sum(max(1, len(rows)) for word, rows in before.items() if word not in model)
    assert freed == gone
    assert gone >= min(wanted, sum(max(1, len(rows)) for rows in before.values()))


STEPS = st.one_of(
    st.tuples(st.just("keep"), st.lists(st.sampled_from(POOL), min_size=1, max_size=8)),
    st.tuples(st.just("absent"), st.sampled_from(POOL)),
    st.tuples(st.just("forget"), st.sampled_from(POOL)),
    st.tuples(st.just("any"), st.integers(1, 5)),
    st.tuples(st.just("coldest"), st.integers(1, 5)),
)


@pytest.mark.parametrize("cells", [True, False])
@given(steps=st.lists(STEPS, max_size=20), text_bytes=st.lists(st.integers(0, 40), min_size=1, max_size=3))
def test_words_are_kept_whole_whatever_comes_and_goes(cells, steps, text_bytes):
    kept, model = Kept(cells), {}
    for verb, what in steps:
        if verb == "keep":
            keep(kept, model, what, text_bytes)
        elif verb == "absent":
            if what not in model and kept.cache.state[hot_cache.FREE_RECORD] >= 0:
                hot_cache.open_record(kept.cache, np.int64(what), 0, 3, 1)
                model[what] = []
        elif verb == "forget":
            if what in model:
                hot_cache.forget(kept.cache, kept.memory, hot_cache.record_of(kept.cache, np.int64(what)))
                del model[what]
        else:
            remove(kept, model, what, hot_victims.forget_any if verb == "any" else hot_victims.forget_coldest)
        kept.check(model)


@given(text_bytes=st.lists(st.integers(0, 30), min_size=1, max_size=4), room=st.integers(1, 5), gone=st.integers(1, 3))
def test_answers_come_in_pieces_of_any_size(text_bytes, room, gone):
    kept, model = Kept(), {}
    keep(kept, model, [10, 10, 10, 10, 11], text_bytes)
    words = [10, 99, 11, 10, 99]
    pairs, left, missed = kept.answers(words, room, gone)
    assert sorted(pairs) == sorted((n, *row) for n, word in enumerate(words) for row in model.get(word, []))
    assert (left, missed) == (
        [n for n, word in enumerate(words) if word in model],
        [n for n, w in enumerate(words) if w not in model],
    )


def test_a_word_that_is_being_collected_answers_nobody_until_it_is_complete():
    kept = Kept()
    record = hot_cache.open_record(kept.cache, np.int64(10), -1, 1, 1)
    first, texts = kept.load([10, 11, 10])
    assert hot_collecting.collect(kept.cache, kept.memory, first) == 0
    assert kept.answers([10]) == ([], [], [0])
    second, more = kept.load([12, 10])
    hot_collecting.collect(kept.cache, kept.memory, second)
    hot_collecting.complete(kept.cache, record)
    pairs, gone, _ = kept.answers([10])
    assert sorted(pairs) == [(0, n, text) for word, n, text in texts + more if word == 10]
    assert gone == [0]


def test_a_collected_word_without_rows_is_absent_and_one_without_room_is_forgotten():
    kept = Kept()
    hot_collecting.complete(kept.cache, hot_cache.open_record(kept.cache, np.int64(10), -1, 1, 1))
    assert kept.answers([10]) == ([], [0], [])
    hot_cache.open_record(kept.cache, np.int64(11), -1, 1, 1)
    rows, _ = kept.load([11] * (SLOTS + 1))
    assert hot_collecting.collect(kept.cache, kept.memory, rows) == 1
    kept.check({10: []})


def test_of_many_rows_those_of_collected_words_are_picked_in_order():
    kept = Kept()
    hot_cache.open_record(kept.cache, np.int64(10), -1, 1, 1)
    whole, _ = kept.load([11])
    hot_cache.keep(kept.cache, kept.memory, whole, ints(1), 1)
    rows, _ = kept.load([12, 10, 11, 10, 13])
    places = rows.row_at.tolist()
    assert hot_collecting.pick_collected(kept.cache, rows) == 2
    assert rows.row_at[:2].tolist() == [places[1], places[3]]
    assert rows.words[:2].tolist() == [10, 10]


def test_a_word_that_is_being_collected_is_no_victim():
    for victims in (hot_victims.forget_any, hot_victims.forget_coldest):
        kept = Kept()
        hot_cache.open_record(kept.cache, np.int64(10), -1, 1, 1)
        rows, _ = kept.load([11, 12, 12])
        hot_cache.keep(kept.cache, kept.memory, rows, np.full(3, 9), 1)
        assert victims(kept.cache, kept.memory, 100) == 3
        assert kept.held() == {10}


def test_the_coldest_leave_first_and_old_hits_fade():
    kept = Kept()
    rows, _ = kept.load([10, 11, 12, 12, 13])
    hot_cache.keep(kept.cache, kept.memory, rows, ints(6, 2, 6, 6, 8), 1)
    assert hot_victims.forget_coldest(kept.cache, kept.memory, 1) == 1
    assert kept.held() == {10, 12, 13}
    assert hot_victims.forget_coldest(kept.cache, kept.memory, 1) == 2, "two rows share the hits of their word"
    assert kept.held() == {10, 13}
    hits = [
        int(kept.cache.records[hot_cache.record_of(kept.cache, np.int64(word)), hot_cache.HITS]) for word in (10, 13)
    ]
    assert hits == [1, 2], "halved twice"


def test_every_hit_is_counted():
    kept = Kept()
    rows, _ = kept.load([10, 11])
    hot_cache.keep(kept.cache, kept.memory, rows, ints(3, 3), 1)
    kept.answers([10, 10, 11, 99, 10], room=1, gone_room=1)
    hits = [
        int(kept.cache.records[hot_cache.record_of(kept.cache, np.int64(word)), hot_cache.HITS]) for word in (10, 11)
    ]
    assert hits == [6, 4]


def test_a_cache_without_a_slot_keeps_nothing_and_misses_everybody():
    kept = Kept()
    none = kept.cache._replace(
        record_word=ints(), records=np.zeros((0, 4), np.int32), links=kept.cache.links[:0], wide=kept.cache.wide[:0]
    )
    hot_cache.reset(none, CACHE_AT, WIDTH, seed=7)
    rows, _ = kept.load([10])
    assert hot_cache.keep(none, kept.memory, rows, ints(9), 1) == 0
    assert hot_victims.forget_any(none, kept.memory, 1) == 0
    assert hot_victims.forget_coldest(none, kept.memory, 1) == 0
    kept.cache = none
    assert kept.answers([10, 11]) == ([], [], [0, 1])
