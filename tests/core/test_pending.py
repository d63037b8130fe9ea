"""Pending tuples against lists: who waits, who is found, who leaves, and in which order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream.errors import BudgetError
from semistream.records import RowCodec
from semistream.stream_rows import StreamRows
from tests.core.waiting import SCHEMA, WITH_TEXT, Bench
from tests.parts.made import ints

WORDS = st.lists(st.sampled_from([-5, 0, 1, 2, 3, 4, 2**63 - 1]), max_size=20)
MASTER = st.lists(st.sampled_from([-5, 0, 1, 2, 3, 9, 2**63 - 1]), max_size=60)


def pairs_of(words, rows):
    """What a join of tuples and master rows gives."""
    return sorted((tuple_, row) for tuple_, word in enumerate(words) for row, other in enumerate(rows) if word == other)


@given(words=WORDS, rows=MASTER, matches=st.sampled_from([1, 3, 64]))
def test_a_scan_finds_every_pair_and_nobody_leaves(words, rows, matches):
    bench = Bench(matches=matches)
    bench.admit(words)
    pairs, gone = bench.run(bench.pending.probe(bench.load(rows)))
    assert sorted(pairs) == pairs_of(words, rows)
    assert gone == []
    assert bench.by_age() == list(range(len(words)))


@given(words=WORDS, rows=MASTER, matches=st.sampled_from([1, 3, 64]), page_bytes=st.sampled_from([64, 256]))
def test_claiming_finds_every_pair_and_lets_all_go_that_found_one(words, rows, matches, page_bytes):
    bench, rows = Bench(matches=matches), sorted(rows)
    bench.admit(words)
    pairs, gone = bench.run(bench.pending.claim(bench.load(rows, page_bytes)))
    assert sorted(pairs) == pairs_of(words, rows)
    assert sorted(gone) == [n for n, word in enumerate(words) if word in rows]
    assert bench.by_age() == [n for n, word in enumerate(words) if word not in rows]


@given(words=WORDS, rows=MASTER, matches=st.sampled_from([1, 3]), edges=st.tuples(st.booleans(), st.booleans()))
def test_words_that_go_on_outside_the_load_are_left_alone(words, rows, matches, edges):
    bench, rows = Bench(matches=matches), sorted(rows)
    bench.admit(words)
    outside = {word for flag, word in zip(edges, (rows[:1], rows[-1:]), strict=True) if flag for word in word}
    open_words = ints(edges[0], rows[0], edges[1], rows[-1]) if rows else ints(0, 0, 0, 0)
    pairs, gone = bench.run(bench.pending.claim(bench.load(rows, open_words=open_words)))
    closed = [row if row not in outside else None for row in rows]
    assert sorted(pairs) == pairs_of(words, closed)
    assert sorted(gone) == [n for n, word in enumerate(words) if word in closed]


@given(words=WORDS, rows=MASTER, word=st.sampled_from([-5, 0, 9]), matches=st.sampled_from([1, 4]))
def test_one_word_is_probed_alone_and_then_leaves_matched_or_not(words, rows, word, matches):
    bench = Bench(matches=matches)
    bench.admit(words)
    pairs, gone = bench.run(bench.pending.probe_word(bench.load(rows), word))
    assert sorted(pairs) == [pair for pair in pairs_of(words, rows) if words[pair[0]] == word]
    assert gone == []
    pairs, gone = bench.run(bench.pending.leave_word(word))
    assert pairs == []
    assert sorted(gone) == [n for n, other in enumerate(words) if other == word]
    assert bench.by_age() == [n for n, other in enumerate(words) if other != word]
    assert bench.run(bench.pending.leave_word(word)) == ([], [])


@given(
    words=WORDS, rows=MASTER, some=st.sets(st.sampled_from([-5, 0, 2, 9]), min_size=1), matches=st.sampled_from([1, 4])
)
def test_some_words_are_probed_together_and_then_leave_matched_or_not(words, rows, some, matches):
    bench, asked = Bench(matches=matches), ints(*sorted(some))
    bench.admit(words)
    pairs, gone = bench.run(bench.pending.probe_words(bench.load(rows), asked))
    assert sorted(pairs) == [pair for pair in pairs_of(words, rows) if words[pair[0]] in some]
    assert gone == []
    pairs, gone = bench.run(bench.pending.leave_words(asked))
    assert pairs == []
    assert sorted(gone) == [n for n, word in enumerate(words) if word in some]
    assert bench.by_age() == [n for n, word in enumerate(words) if word not in some]
    assert [bench.pending.waits_for(word) for word in asked] == [False] * asked.size


@given(words=WORDS, count=st.integers(0, 30), matches=st.sampled_from([3, 64]))
def test_the_words_of_the_oldest_are_named_once_each_in_order(words, count, matches):
    bench = Bench(matches=matches)
    bench.admit(words)
    assert bench.pending.oldest_words(count).tolist() == sorted(set(words[: min(count, matches)]))
    assert {word for word in words if not bench.pending.waits_for(word)} == set()


@given(words=WORDS, counts=st.lists(st.integers(0, 9), max_size=6), matches=st.sampled_from([1, 4]))
def test_the_oldest_leave_first_whatever_their_words(words, counts, matches):
    bench, left = Bench(matches=matches), list(range(len(words)))
    bench.admit(words)
    for count in counts:
        assert bench.run(bench.pending.leave_oldest(count)) == ([], left[:count])
        left = left[count:]
        assert bench.by_age() == left


@given(words=WORDS, picked=st.sets(st.integers(0, 19), max_size=9))
def test_tuples_leave_one_by_one_whoever_shares_their_word(words, picked):
    bench, picked = Bench(), sorted(number for number in picked if number < len(words))
    bench.admit(words)
    slots = bench.pending.admitted
    assert bench.numbers(slots) == list(range(len(words)))
    assert bench.run(bench.pending.leave(slots[picked])) == ([], picked)
    assert bench.by_age() == [number for number in range(len(words)) if number not in picked]


TEXTS = st.lists(st.tuples(st.sampled_from([0, 1, 2, 3]), st.text(max_size=40)), max_size=12)


@given(st.lists(TEXTS | st.integers(0, 3), max_size=14))
def test_rows_stay_what_they_are_while_others_come_and_go(steps):
    """Tuples carry text in a heap that has room for few of them: it is compacted again and again."""
    bench, model = Bench(WITH_TEXT, slots=16, matches=4, heap_bytes=12.0), {}
    for step in steps:
        if isinstance(step, int):
            bench.run(bench.pending.leave_word(step))
            model = {number: row for number, row in model.items() if row[0] != step}
        elif step:
            first = bench.position
            block = bench.block([word for word, _ in step], [text for _, text in step])
            taken = bench.pending.admit(block, len(step))
            model |= {first + i: row for i, row in enumerate(step[:taken])}
        everybody = np.flatnonzero(np.isin(np.arange(bench.pending.slots), waiting_slots(bench)))
        columns = bench.pending.codec.unpack(bench.slab.memory, *bench.pending.side.places(everybody))
        assert {n: (k, t) for k, n, t in zip(*(c.to_pylist() for c in columns), strict=True)} == model
        assert bench.by_age() == sorted(model)


def waiting_slots(bench):
    """All slots in the queue."""
    slots, slot = [], bench.pending.oldest()
    while slot >= 0:
        slots.append(slot)
        slot = int(bench.pending.records.links[slot, 3])
    return slots


# ------------------------------------------------------------------------------------------------------------ admitting


def test_only_picked_tuples_come_in_and_know_their_place_in_the_stream():
    bench = Bench()
    bench.position = 100
    block = bench.block([7, 8, 9, 7], picks=[1, 3])
    assert bench.pending.admit(block, 10) == 2
    slots = ints(*waiting_slots(bench))
    assert (bench.pending.side.stamps[slots] >> 1).tolist() == [101, 103]
    assert bench.pending.side.words[slots].tolist() == [8, 7]
    assert bench.numbers(slots) == [101, 103]
    assert bench.pending.now == 104


def test_no_more_come_in_than_was_asked_for_or_than_have_room():
    bench = Bench(slots=24)
    room = bench.pending.slots
    assert bench.pending.admit(bench.block([1] * 5), 3) == 3
    assert bench.pending.admit(bench.block([1] * 5), 0) == 0
    assert bench.pending.admit(bench.block(range(100)), 100) == room - 3
    assert bench.pending.waiting == room
    assert bench.pending.admit(bench.block([1]), 1) == 0


def test_a_full_table_takes_new_tuples_only_when_some_can_come_together():
    bench = Bench(slots=192)
    room = bench.pending.slots
    assert bench.pending.refill == room // 48 > 1
    bench.admit([1] * room)
    bench.run(bench.pending.leave_oldest(bench.pending.refill - 1))
    assert bench.pending.admit(bench.block([2] * 30), 30) == 0
    assert bench.pending.admit(bench.block([2]), 1) == 1, "a single one need not wait for company"
    bench.run(bench.pending.leave_oldest(2))
    assert bench.pending.admit(bench.block([2] * 30), 30) == bench.pending.refill


def test_a_row_wider_than_all_room_for_text_is_refused_with_a_cure():
    bench = Bench(WITH_TEXT, slots=16, heap_bytes=8.0)
    with pytest.raises(
        BudgetError, match="one row has 5000 bytes of text or binary values and all waiting rows"
    ) as caught:
        bench.pending.admit(bench.block([1, 2], ["x" * 5000, ""]), 2)
    assert caught.value.part == "stream rows"
    assert caught.value.needed_bytes == 5000
    assert caught.value.smallest_bytes > bench.slab.total_bytes


def test_a_row_too_wide_for_now_waits_for_others_to_leave():
    bench = Bench(WITH_TEXT, slots=16, heap_bytes=8.0)
    state = bench.pending.heap.state
    wide = "x" * (int(state[1] - state[0]) - 16)
    bench.admit([1], ["y" * 20])
    block = bench.block([2], [wide])
    assert bench.pending.admit(block, 1) == 0
    bench.run(bench.pending.leave_oldest(1))
    assert bench.pending.admit(block, 1) == 1
    texts = bench.pending.codec.unpack(
        bench.slab.memory, *bench.pending.side.places(ints(*waiting_slots(bench))), ["text"]
    )
    assert texts[0].to_pylist() == [wide]


@pytest.mark.parametrize("schema", [SCHEMA, WITH_TEXT, pa.schema([("number", pa.int64())])])
@pytest.mark.parametrize("slots", [16, 17, 100, 1000])
def test_all_arrays_fit_the_bytes_that_were_given(schema, slots):
    bench = Bench(schema, slots=slots, heap_bytes=20.0)
    matches = 8
    rows = bench.pending.codec
    assert bench.pending.slots >= slots
    assert bench.slab.bytes_by_part["matches"] <= (8 * 8 + 5 * 8) * matches + 16 * 64
    assert (bench.pending.heap is not None) == bool(rows.cells)


# ---------------------------------------------------------------------------------------------------------- waits, keys


def test_waits_are_counted_in_stream_tuples():
    bench = Bench()
    bench.admit([1, 2, 3])
    bench.admit([4] * 10)
    bench.run(bench.pending.leave_oldest(2))
    assert bench.pending.wait_max == 13
    assert int(bench.pending.wait_histogram.sum()) == 2
    bench.run(bench.pending.leave_oldest(100))
    assert int(bench.pending.wait_histogram.sum()) == 13
    assert bench.pending.wait_max == 13


def test_the_keys_that_wait_on_a_word_are_named_once_each():
    bench = Bench(WITH_TEXT, heap_bytes=8.0)
    bench.admit([5, 5, 6, 5, 5], ["a", "b", "c", "a", None])
    assert sorted(bench.pending.keys_of([5], ["text"]), key=str) == [("a",), ("b",), (None,)]
    assert bench.pending.keys_of([6], ["text", "key"]) == [("c", 6)]
    assert bench.pending.keys_of([7], ["text"]) == []
    assert sorted(bench.pending.keys_of([5, 7, 6], ["text"]), key=str) == [("a",), ("b",), ("c",), (None,)]
    assert bench.pending.keys_of([], ["text"]) == []


@pytest.mark.parametrize("heap_bytes", [0.0, 12.3])
def test_so_many_tuples_wait_in_the_bytes_for_them(heap_bytes):
    rows = StreamRows(RowCodec(WITH_TEXT if heap_bytes else SCHEMA), heap_bytes)
    for slots in (16, 17, 100, 256_709):
        assert rows.slots_in(rows.bytes_for(slots)) == slots
        fewer = rows.slots_in(rows.bytes_for(slots), extra_bytes=4)
        assert rows.bytes_for(fewer) + 4 * fewer <= rows.bytes_for(slots) + 4 * 16


def test_a_consumer_that_stops_early_leaves_the_rest_waiting():
    bench = Bench(matches=2)
    bench.admit([1] * 10)
    finds = bench.pending.leave_oldest(10)
    assert bench.numbers(next(finds).gone) == [0, 1]
    assert bench.pending.waiting == 10, "a tuple is freed only when its item has been dealt with"
    assert bench.numbers(next(finds).gone) == [2, 3]
    assert bench.pending.waiting == 8
    finds.close()
    assert bench.pending.waiting == 8
