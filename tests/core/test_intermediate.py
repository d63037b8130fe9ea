"""The intermediate buffer: tuples come out as they went in, however wide, and one that is too wide goes past it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream.intermediate import PART, BothRooms, IntermediateBuffer, share
from semistream.records import RowCodec
from semistream.stream_rows import StreamRows
from tests.core.waiting import WITH_TEXT, Bench


def new_line(bench, heap_bytes=0.0):
    """A line of the smallest size there is, beside the stream table of a bench."""
    rows = StreamRows(RowCodec(bench.schema), heap_bytes)
    given = share(rows, 0).least
    line = IntermediateBuffer(bench.slab, rows, given)
    assert bench.slab.bytes_by_part[PART] <= given + 64
    return line


def move(line, bench, most=100):
    """Tuples go from the line to the stream table of a bench, at most so many at a time."""
    while (arriving := line.arrivals(most)) is not None:
        taken = bench.pending.admit(arriving, arriving.picks.size)
        if not taken:
            return
        line.drop(taken)


@given(st.lists(st.tuples(st.integers(1, 12), st.booleans()), max_size=12), st.sampled_from([1, 3, 100]))
def test_tuples_come_out_as_they_went_in(steps, most):
    bench, arrived = Bench(slots=300), 0
    line = new_line(bench)
    for count, moves in steps:
        block = bench.block(list(range(arrived, arrived + count)))
        taken = line.append(block)
        assert taken == min(count, line.slots - (line.waiting - taken))
        bench.position -= count - taken
        arrived += taken
        assert line.now == arrived
        assert line.oldest_position() == (arrived - line.waiting if line.waiting else -1)
        if moves:
            move(line, bench, most)
            assert line.waiting == 0
    move(line, bench)
    assert bench.by_age() == list(range(arrived))
    slots = np.arange(arrived)
    assert sorted(bench.pending.side.words[slots].tolist()) == list(range(arrived))
    assert sorted((bench.pending.side.stamps[slots] >> 1).tolist()) == list(range(arrived))


@given(
    st.lists(st.tuples(st.lists(st.sampled_from([0, 1, 9, 60]), min_size=1, max_size=6), st.booleans()), max_size=12)
)
def test_text_comes_along(steps):
    bench, texts = Bench(WITH_TEXT, slots=80, heap_bytes=60.0), []
    line = new_line(bench, 12.0)
    for sizes, moves in steps:
        written = [chr(97 + (len(texts) + i) % 26) * size for i, size in enumerate(sizes)]
        block = bench.block([1] * len(sizes), written)
        taken = line.append(block)
        bench.position -= len(sizes) - taken
        texts += written[:taken]
        if moves:
            move(line, bench)
    move(line, bench)
    slots = np.arange(len(texts))
    (column,) = bench.pending.codec.unpack(bench.slab.memory, *bench.pending.side.places(slots), ["text"])
    assert column.to_pylist() == [texts[number] for number in bench.numbers(slots)]


def test_a_row_too_wide_for_the_line_goes_past_it_when_all_before_it_have_gone():
    bench = Bench(WITH_TEXT, slots=40, heap_bytes=200.0)
    line = new_line(bench, 12.0)
    block = bench.block([5, 6, 7], ["short", "w" * 1500, "short"])
    assert line.append(block) == 1
    rest = block._replace(picks=block.picks[1:])
    assert line.append(rest) == 0, "somebody is before it"
    move(line, bench)
    assert (line.append(rest), line.waiting, line.oldest_position()) == (0, 1, 1)
    assert line.append(rest) == 0, "it has not been taken yet"
    move(line, bench)
    assert (line.waiting, line.now) == (0, 2)
    assert line.append(rest) == 1, "it counts as taken now"
    assert line.append(rest._replace(picks=rest.picks[1:])) == 1
    move(line, bench)
    assert bench.by_age() == [0, 1, 2]


@pytest.mark.parametrize("in_table", [True, False])
def test_both_rooms_count_as_one(in_table):
    bench = Bench(slots=300)
    line = new_line(bench)
    rooms = BothRooms(line, bench.pending)
    assert (rooms.waiting, rooms.oldest_position()) == (0, -1)
    assert rooms.slots == line.slots + bench.pending.slots
    line.append(bench.block([1, 2, 3]))
    if in_table:
        move(line, bench, 2)
        rooms.look()
        line.append(bench.block([4]))
    assert (rooms.waiting, rooms.oldest_position()) == (4 if in_table else 3, 0)
    rooms.hurry = True
    assert bench.pending.hurry
    assert rooms.hurry
