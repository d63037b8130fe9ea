"""The tile cache, against a dictionary: a key answers with all its rows or not at all, and every tile is somebody's."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream.parts import tile_cache, tile_items, tiles
from tests.parts.made import EDGES, INT64_MAX, clustered_words, ints, new_memory, new_tiles, pages_of, plain_rows

TILE = 256
KEYS = (*EDGES, *range(100, 104))
CELL = 8


class Bench:
    """A cache over a pool; rows of 16 bytes, a number and a cell (or 8 bytes without one), and what they ought to be."""

    def __init__(self, tile_count=6, most=None, keys=64, width=16, rows_most=tile_cache.ROWS_MOST, entries=None):
        self.memory = new_memory(1 << 16)
        self.pool = new_tiles(tile_count, TILE, at=64)
        self.scratch = 64 + tile_count * TILE
        self.buffer_at = self.scratch + TILE
        entries = entries or int(keys * tile_cache.ENTRIES_PER_KEY) + 8
        self.cache = tile_cache.TileCache(
            tag=np.ones(entries, np.uint8),
            entry=np.zeros((entries, 2), np.int64),
            state=np.zeros(5, np.int64),
            tile=np.zeros((tile_count, 2), np.int64),
        )
        tile_cache.reset(self.cache, tile_count if most is None else most)
        self.shape = tile_items.Shape(width, ints(CELL) if width == 16 else ints(), rows_most)
        self.keys_most, self.numbers, self.known = keys, 0, {}

    def chosen(self, items):
        """Rows of (word, texts) in the disk buffer; row numbers go up."""
        columns = [[], [], [], []]
        at, width = self.buffer_at, self.shape.width
        self.memory.b1[at:] = 0xAA
        self.written = {}
        for word, texts in items:
            heap_at, row_at = at + 8, at + 8 + width * len(texts)
            end = row_at + width * len(texts)
            for column, value in zip(columns, (word, row_at, heap_at, len(texts)), strict=True):
                column.append(value)
            rows = []
            for number, text in enumerate(texts, self.numbers):
                cell = struct.pack("<II", end - heap_at, len(text)) if width == 16 else b""
                self.memory.b1[row_at : row_at + width] = np.frombuffer(struct.pack("<q", number) + cell, np.uint8)
                if width == 16:
                    self.memory.b1[end : end + len(text)] = np.frombuffer(text, np.uint8)
                    end += len(text)
                rows.append((number, text if width == 16 else b""))
                row_at += width
            self.numbers += len(texts)
            self.written[word] = rows
            at = -(-end // 8) * 8 + 8
        assert at < self.memory.b1.size
        return tile_items.Chosen(*(ints(*column) for column in columns))

    def keep(self, items, now=0):
        """Keep these keys; returns how many were come to, and learns which are known now."""
        chosen = self.chosen(items)
        held = set(self.words())
        reached = int(
            tile_items.keep(self.cache, self.pool, self.memory, self.shape, chosen, 0, np.int64(now), self.keys_most)
        )
        for word in set(self.words()) - held:
            self.known[word] = self.written[word]
        return reached

    def empty_oldest(self, hits_for_bytes, now=0):
        """Empty the oldest tile; returns how many items stay."""
        stay = tile_items.empty_oldest(
            self.cache, self.pool, self.memory, self.scratch, float(hits_for_bytes), np.int64(now)
        )
        self.known = {word: self.known[word] for word in self.words()}
        return int(stay)

    def words(self):
        """Words that have an entry."""
        return self.cache.entry[self.cache.tag != 0, tile_cache.WORD].tolist()

    def ask(self, words, room=8):
        """(tuple, row) pairs, tuples that are answered and tuples that are missed."""
        answers = tile_cache.Answers(*(np.zeros(size, np.int64) for size in (room, room, room, len(words), len(words))))
        cursor, pairs, done = np.zeros(4, np.int64), [], []
        while cursor[0] < len(words):
            before, cursor[1:3] = int(cursor[0]), 0
            tile_cache.answer(
                self.cache, ints(*words), np.arange(len(words)), np.int64(self.shape.width), cursor, answers
            )
            assert cursor[0] > before
            found = (column[: cursor[1]].tolist() for column in answers[:3])
            pairs += [(pick, self.row(row_at, heap_at)) for pick, row_at, heap_at in zip(*found, strict=True)]
            done += answers.done[: cursor[2]].tolist()
        return pairs, done, answers.missed[: cursor[3]].tolist()

    def row(self, row_at, heap_at):
        """The number and the text of a row."""
        number, *cell = struct.unpack(
            "<qII" if self.shape.width == 16 else "<q", self.memory.b1[row_at:][: self.shape.width]
        )
        return number, self.memory.b1[heap_at + cell[0] :][: cell[1]].tobytes() if cell else b""

    def check(self, asked=KEYS, room=8):
        """What is known is answered with all its rows, everybody else is missed, and the tiles add up."""
        pairs, done, missed = self.ask(asked, room)
        assert pairs == [(n, row) for n, word in enumerate(asked) for row in self.known.get(word, ())]
        assert done == [n for n, word in enumerate(asked) if word in self.known]
        assert missed == [n for n, word in enumerate(asked) if word not in self.known]
        oldest, newest, held, keys, most = self.cache.state.tolist()
        assert keys == len(self.known)
        assert held + int(self.pool.state[tiles.FREE]) == self.pool.link.size
        assert held <= most
        chain, tile = [], oldest
        while tile >= 0:
            chain.append(tile)
            tile = int(self.pool.link[tile])
        assert len(chain) == held
        assert (chain[-1] if chain else -1) == newest


TEXTS = st.lists(st.binary(max_size=70), max_size=8)
ITEMS = st.lists(st.tuples(st.sampled_from(KEYS), TEXTS), max_size=8, unique_by=lambda item: item[0])
VERBS = st.one_of(
    st.tuples(st.just("keep"), ITEMS),
    st.tuples(st.just("ask"), st.lists(st.sampled_from(KEYS), max_size=20)),
    st.tuples(st.just("empty"), st.sampled_from([0, 0.001, 0.01, 0.05, 1e9])),
    st.tuples(st.just("lend"), st.integers(0, 2)),
)


@given(verbs=st.lists(VERBS, max_size=12), width=st.sampled_from([8, 16]), most=st.integers(1, 5))
def test_the_cache_answers_as_a_dictionary_would(verbs, width, most):
    bench, lent = Bench(tile_count=5, most=most, width=width), []
    for verb, given_ in verbs:
        if verb == "keep":
            before = set(bench.known)
            reached = bench.keep(given_)
            refused = [word for word, _ in given_[:reached] if word not in bench.known]
            assert all(size_of(bench, dict(given_)[word]) > TILE for word in refused)
            assert before <= set(bench.known)
        elif verb == "ask":
            bench.ask(given_)
        elif verb == "lend":  # bins take tiles too
            lent += [tile for tile in (tiles.take(bench.pool) for _ in range(given_)) if tile >= 0]
        elif bench.cache.state[tile_cache.HELD]:
            held = len(bench.known)
            stay = bench.empty_oldest(given_)
            assert given_ or len(bench.known) == held, "an item left that had earned its room"
            assert stay <= len(bench.known)
        while lent and verb != "lend":
            tiles.give(bench.pool, lent.pop())
        if not lent:
            bench.check()


def size_of(bench, texts):
    """Bytes of an item with these rows."""
    heap = sum(map(len, texts)) if bench.shape.width == 16 else 0
    return tile_cache.HEADER_BYTES + bench.shape.width * len(texts) + -(-heap // 8) * 8


def test_only_a_tuple_s_whole_answer_enters_the_list_of_pairs():
    bench = Bench()
    bench.keep([(1, [b"a", b"b", b"c"]), (2, []), (3, [b"d", b"e"])])
    for room in (3, 4, 5, 9):
        bench.check([1, 2, 9, 3, 1, 3, 2, 1], room)


def test_a_key_with_more_rows_than_may_be_answered_at_once_is_passed_over():
    bench = Bench(rows_most=3)
    assert bench.keep([(1, [b""] * 4), (2, [b""] * 3)]) == 2
    assert set(bench.known) == {2}
    bench.check(room=3)


def test_items_as_large_as_a_tile_are_kept_and_larger_ones_are_passed_over():
    bench = Bench()
    room = TILE - tile_cache.HEADER_BYTES - 16
    assert bench.keep([(1, [b"x" * room]), (2, [b"x" * (room + 1)]), (3, [b"y" * room])]) == 3
    assert set(bench.known) == {1, 3}
    bench.check()


def test_a_full_cache_says_which_key_found_no_tile_and_takes_it_once_a_tile_is_empty():
    bench = Bench(tile_count=3, most=2)
    large = [(word, [b"x" * 200]) for word in (1, 2, 3)]
    assert bench.keep(large) == 2
    bench.check()
    assert bench.empty_oldest(1e9) == 0
    assert set(bench.known) == {2}
    assert bench.keep([large[2], large[0]]) == 1
    assert set(bench.known) == {2, 3}
    bench.check()


def test_when_all_items_of_the_oldest_tile_stay_it_takes_no_more_tiles_than_before():
    bench = Bench(tile_count=2, most=2)
    items = [(word, [bytes([word]) * 20]) for word in range(1, 9)]
    assert bench.keep(items) == 8
    for _ in range(7):
        assert bench.empty_oldest(0) == 4
        bench.check(range(10))


def test_the_only_tile_can_be_emptied():
    bench = Bench()
    bench.keep([(1, [b"a"]), (2, [b"b"])])
    bench.ask([2])
    assert bench.empty_oldest(0.01) == 1
    bench.check()
    assert set(bench.known) == {2}
    assert bench.empty_oldest(1e9) == 0
    assert bench.cache.state[:4].tolist() == [-1, -1, 0, 0]
    bench.check()


def test_hits_count_from_the_moment_an_item_was_written():
    bench = Bench()
    bench.keep([(1, [b"a"]), (2, [b"b"])])
    bench.ask([1, 2])
    assert bench.empty_oldest(0.01) == 2
    bench.ask([2])
    assert bench.empty_oldest(0.01) == 1
    assert set(bench.known) == {2}


def test_hits_are_counted_up_to_a_number_and_whoever_has_so_many_stays():
    bench = Bench()
    bench.keep([(1, [b"a"]), (2, [b"b"])])
    bench.ask([1] * (int(tile_cache.HITS_MOST) + 9) + [2] * (int(tile_cache.HITS_MOST) - 1))
    bench.check([1, 2])
    assert bench.empty_oldest(1e9) == 2, "`check` has asked for both"
    bench.ask([1] * int(tile_cache.HITS_MOST) + [2] * (int(tile_cache.HITS_MOST) - 1))
    assert bench.empty_oldest(1e9) == 1
    assert set(bench.known) == {1}


def test_a_cleared_cache_knows_nothing_gives_its_tiles_back_and_can_be_filled_again():
    bench = Bench()
    bench.keep([(word, [b"x" * 50]) for word in range(8)])
    tile_cache.clear(bench.cache, bench.pool)
    bench.known = {}
    bench.check(range(8))
    bench.keep([(word, [b"y" * 50]) for word in range(8)])
    assert len(bench.known) == 8
    bench.check(range(8))


def test_no_key_is_taken_in_when_as_many_are_held_as_may_be():
    bench = Bench(keys=3)
    assert bench.keep([(word, []) for word in range(5)]) == 5
    assert bench.cache.state[tile_cache.KEYS] == 3
    bench.check(range(5))


@pytest.mark.parametrize("home", [0, 5, 15])
def test_clustered_words_are_found_after_some_of_them_were_dropped(home):
    words = clustered_words(16, home, 8)
    bench = Bench(keys=8, entries=16)
    for word in words:
        bench.keep([(word, [b"%d" % word, b"x" * 60])], now=0)
    bench.check(words)
    for _ in range(20):
        bench.cache.entry[:, tile_cache.WHAT] &= ~0xFFFF  # `check` asks for everybody
        bench.ask(list(bench.known)[1::2])
        if bench.known:
            bench.empty_oldest(0.001)
        bench.check(words)
    assert not bench.known


def test_a_word_is_kept_once():
    bench = Bench()
    bench.keep([(INT64_MAX, [b"first"])])
    assert bench.keep([(INT64_MAX, [b"second"])]) == 1
    bench.check()


# ------------------------------------------------------------------------------------------------------------ choosing


@given(
    words=st.lists(st.integers(0, 9), min_size=1, max_size=40).map(sorted),
    per_page=st.integers(1, 8),
    least=st.integers(1, 3),
    room=st.integers(1, 4),
    asked=st.lists(st.integers(0, 9), max_size=20),
)
def test_keys_asked_for_often_enough_are_chosen_with_all_their_rows(words, per_page, least, room, asked):
    memory, page_at, starts = pages_of(plain_rows(words), 32 + 16 * per_page)
    first_words = ints(*(words[at] for at in starts[:-1]))
    continues = np.array([at > 0 and words[at - 1] == words[at] for at in starts[:-1]], np.uint8)
    whole = np.full(len(words), 7, np.int32)
    tile_items.ask_all(memory, page_at, first_words, continues, np.int64(0), whole)
    page_of = np.searchsorted(starts, np.arange(len(words)), "right")
    in_one_page = {word for word in words if len({page_of[n] for n in range(len(words)) if words[n] == word}) == 1}
    assert whole.tolist() == [int(word in in_one_page) for word in words]
    counted = np.array([asked.count(word) if word in in_one_page else 0 for word in words], np.int32)
    cursor, found = ints(0, 0), []
    while cursor[0] < page_at.size:
        chosen = tile_items.Chosen(*(np.zeros(room, np.int64) for _ in range(4)))
        count = tile_items.choose(memory, page_at, np.int64(8), counted, np.int64(least), cursor, chosen)
        for word, row_at, heap_at, rows in zip(*(column[:count].tolist() for column in chosen), strict=True):
            assert heap_at in page_at
            found.append((word, memory.b1[row_at : row_at + 8 * rows : 8].tolist()))
        assert count == room or cursor[0] == page_at.size
    right = [word for word in dict.fromkeys(words) if word in in_one_page and asked.count(word) >= least]
    assert found == [(word, [n for n in range(len(words)) if words[n] == word]) for word in right]


def test_asking_for_all_of_a_load_in_the_middle_knows_the_pages_round_it():
    words = [1, 1, 2, 3, 3, 3, 4, 5, 6]
    memory, page_at, _ = pages_of(plain_rows(words), 32 + 16 * 2)
    first_words, continues = ints(1, 2, 3, 4, 6), np.array([0, 0, 1, 0, 0], np.uint8)
    asked = np.full(4, 7, np.int32)
    tile_items.ask_all(memory, page_at[1:3], first_words, continues, np.int64(1), asked)
    assert asked.tolist() == [1, 0, 0, 0]
