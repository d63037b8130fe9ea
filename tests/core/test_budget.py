"""The ledger: never more than was given, never less than was asked for at least."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from semistream.budget import Share, Slab, split
from semistream.errors import BudgetError

SHARES = st.lists(
    st.tuples(st.integers(0, 1000), st.sampled_from([0.0, 0.1, 0.5, 1.0, 3.0]), st.none() | st.integers(0, 5000)),
    min_size=1,
    max_size=6,
).map(lambda asked: [Share(f"part {i}", *each) for i, each in enumerate(asked)])


@given(shares=SHARES, spare=st.integers(0, 20_000))
def test_every_part_gets_what_it_needs_and_nothing_is_given_twice(shares, spare):
    total = sum(share.least for share in shares) + spare
    assume(total)
    given_bytes = split(total, lambda _: shares)
    assert list(given_bytes) == [share.part for share in shares]
    assert sum(given_bytes.values()) <= total
    for share in shares:
        got = given_bytes[share.part]
        assert got >= share.least
        assert share.weight > 0 or got == share.least
        assert share.most is None or got <= max(share.least, share.most)


@given(shares=SHARES, spare=st.integers(0, 20_000))
def test_bytes_are_left_over_only_if_nobody_may_take_them(shares, spare):
    total = sum(share.least for share in shares) + spare
    given_bytes = split(total, lambda _: shares)
    hungry = [s for s in shares if s.weight > 0 and (s.most is None or given_bytes[s.part] < s.most)]
    if hungry:
        assert total - sum(given_bytes.values()) <= len(shares), "rounding, one byte a part at most"


def test_what_capped_parts_leave_goes_to_the_others_by_weight():
    shares = [Share("a", 0, 1.0, 100), Share("b", 0, 1.0), Share("c", 50, 2.0), Share("d", 7)]
    assert split(1057, lambda _: shares) == {"a": 100, "b": 300, "c": 650, "d": 7}


def test_too_small_a_budget_names_the_part_and_a_budget_that_works():
    shares = [Share("index", 600), Share("buffer", 300, 1.0), Share("table", 300, 1.0)]
    with pytest.raises(BudgetError) as caught:
        split(1000, lambda _: shares)
    assert (caught.value.part, caught.value.needed_bytes, caught.value.smallest_bytes) == ("table", 300, 1200)
    assert "table needs 300 bytes and 100 are left" in str(caught.value)
    assert sum(split(1200, lambda _: shares).values()) == 1200
    with pytest.raises(BudgetError, match="index needs 600"):
        split(599, lambda _: shares)


@given(st.integers(1, 10_000))
def test_the_budget_that_is_said_to_work_works_even_if_needs_grow_with_it(total):
    def shares(memory):
        return [Share("index", 100 + memory // 10), Share("table", max(64, memory // 4), 1.0)]

    enough = sum(share.least for share in shares(total)) <= total
    with contextlib.nullcontext() if enough else pytest.raises(BudgetError) as caught:
        split(total, shares)
    if caught is not None:
        smallest = caught.value.smallest_bytes
        assert smallest > total
        assert sum(split(smallest, shares).values()) <= smallest


def test_arrays_of_a_slab_are_zero_aligned_and_apart():
    slab = Slab(1000)
    arrays = [slab.take("a", 3, np.uint8), slab.take("b", 5, np.int64), slab.take("a", 7, np.int32, align=4)]
    for array in arrays:
        assert not array.any()
        array.view(np.uint8)[:] = 0xFF
    assert int((slab.memory.b1 == 0xFF).sum()) == 3 + 40 + 28
    assert [array.ctypes.data % 64 for array in arrays[:2]] == [0, 0]
    assert sum(slab.bytes_by_part.values()) == 64 + 40 + 28, "what alignment skips is counted too"
    assert set(slab.bytes_by_part) == {"a", "b"}


def test_a_slab_gives_its_last_byte_and_not_one_more():
    slab = Slab(4096)
    assert slab.place("a", 4096) == 0
    assert slab.take("b", 0, np.int64).size == 0
    with pytest.raises(AssertionError, match="b wants 1 bytes, 0 of 4096 are left"):
        slab.place("b", 1, 1)


def test_memory_outside_the_slab_is_charged_like_memory_in_it():
    slab = Slab(4096)
    slab.charge("output", 4000)
    with pytest.raises(AssertionError):
        slab.take("table", 97, np.uint8)
    assert slab.bytes_by_part == {"output": 4000}


def test_all_views_of_a_slab_show_the_same_bytes():
    slab = Slab(100)
    slab.memory.b8[1] = 2**64 - 1
    assert slab.memory.b1[8:16].tolist() == [255] * 8
    assert slab.memory.b1.size % 64 == 0
