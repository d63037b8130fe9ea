"""The row heap against a dict: bytes stay what they are, wherever compaction moves them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from semistream.parts import row_heap, slots
from tests.parts.made import ints, new_memory, new_slots

COUNT, START, STOP = 10, 64, 64 + 200


def new_heap():
    heap = row_heap.RowHeap(np.zeros(4, np.int64))
    row_heap.reset(heap, START, STOP)
    memory = new_memory(STOP + 64)
    memory.b1[:START] = memory.b1[STOP:] = 0xAA
    return heap, memory, new_slots(COUNT)


def fill(heap, memory, records, model, sizes, seed):
    """Reserve for free slots as many rows of these sizes as there is room for, and write their bytes."""
    free = [slot for slot in range(COUNT) if slot not in model]
    sizes = sizes[: len(free)]
    fit = row_heap.room(heap, ints(*sizes))
    taken = free[:fit]
    row_heap.reserve(heap, memory, records.wide[:, slots.HEAP], ints(*taken), ints(*sizes[:fit]))
    for slot, size in zip(taken, sizes, strict=False):
        at = int(records.wide[slot, slots.HEAP])
        assert at >= START + 8
        assert at + size <= STOP
        model[slot] = bytes((seed * 31 + slot * 7 + i) % 251 for i in range(size))
        memory.b1[at : at + size] = np.frombuffer(model[slot], np.uint8)
    return fit


def record(size):
    return 8 + -(-size // 8) * 8


def check(heap, memory, records, model):
    assert (memory.b1[:START] == 0xAA).all()
    assert (memory.b1[STOP:] == 0xAA).all()
    for slot, data in model.items():
        at = int(records.wide[slot, slots.HEAP])
        assert memory.b1[at : at + len(data)].tobytes() == data
    assert heap.state[row_heap.LIVE] == sum(record(len(data)) for data in model.values())
    assert START <= heap.state[row_heap.TAIL] <= STOP


@given(
    st.lists(
        st.lists(st.integers(0, 60), min_size=1, max_size=5) | st.sets(st.integers(0, COUNT - 1), min_size=1),
        max_size=25,
    )
)
def test_bytes_survive_whatever_comes_and_goes(steps):
    heap, memory, records = new_heap()
    model = {}
    for seed, step in enumerate(steps):
        if isinstance(step, list):
            free = STOP - START - sum(record(len(data)) for data in model.values())
            sizes = step[: COUNT - len(model)]
            fit = fill(heap, memory, records, model, step, seed)
            assert fit == next((n for n in range(len(sizes)) if sum(map(record, sizes[: n + 1])) > free), len(sizes))
        else:
            gone = [slot for slot in step if slot in model]
            row_heap.release(heap, memory, records.wide[:, slots.HEAP], ints(*gone))
            for slot in gone:
                del model[slot]
        check(heap, memory, records, model)


def test_a_hole_too_small_for_the_next_row_is_joined_with_the_rest_by_moving_rows():
    heap, memory, records = new_heap()
    model = {}
    assert fill(heap, memory, records, model, [32, 32, 32, 32, 32, 32], 1) == 5
    row_heap.release(heap, memory, records.wide[:, slots.HEAP], ints(0, 2))
    del model[0], model[2]
    assert fill(heap, memory, records, model, [72], 2) == 1
    check(heap, memory, records, model)
    assert records.wide[[1, 3, 4, 0], slots.HEAP].tolist() == [START + 8, START + 48, START + 88, START + 128]


def test_compaction_alone_loses_nothing_and_leaves_no_hole():
    heap, memory, records = new_heap()
    model = {}
    fill(heap, memory, records, model, [0, 1, 8, 9, 16], 3)
    row_heap.release(heap, memory, records.wide[:, slots.HEAP], ints(1, 3))
    del model[1], model[3]
    row_heap.compact(heap, memory, records.wide[:, slots.HEAP])
    check(heap, memory, records, model)
    assert heap.state[row_heap.TAIL] - START == heap.state[row_heap.LIVE]


def test_an_empty_heap_starts_again_at_its_beginning():
    heap, memory, records = new_heap()
    model = {}
    fill(heap, memory, records, model, [40, 40], 4)
    row_heap.release(heap, memory, records.wide[:, slots.HEAP], ints(0, 1))
    assert heap.state.tolist() == [START, STOP, START, 0]


def test_the_largest_row_that_fits_is_the_heap_without_one_record_head():
    heap, memory, records = new_heap()
    assert row_heap.room(heap, ints(STOP - START)) == 0
    model = {}
    assert fill(heap, memory, records, model, [STOP - START - 8], 5) == 1
    check(heap, memory, records, model)
    assert row_heap.room(heap, ints(0)) == 0
