"""What HYBRIDJOIN and its page-choice variants have in common beyond the contract."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

import semistream as ss
from semistream.algorithms.choice import OldestFirst
from semistream.algorithms.published import HYBRIDJOIN_TUPLE_BYTES, slots_in
from tests.contract.harness import opened_master
from tests.contract.small_cases import plain_case


def published_slots(memory, rows):
    return slots_in(memory, rows, HYBRIDJOIN_TUPLE_BYTES)


VARIANTS = ("hybridjoin", "hybridjoin_l", "hybridjoin_pq", "hybridjoin_lwf")


@pytest.mark.parametrize("algorithm", VARIANTS)
def test_the_tuple_that_may_wait_no_longer_is_served_next(algorithm):
    case = plain_case(400, 10_000, [1] * 400, 8000, how="left", max_wait=60)
    steps = []
    with opened_master("key", case.master, case.master_key) as master:
        join = ss.Join(master, on="key0", algorithm=algorithm, memory=1 << 18, how="left", max_wait=60)

        def one_by_one():
            for item in case.items:
                yield item
                steps.append(join.report()["steps"])

        list(join(one_by_one()))
        assert join.report()["stream_slots"] > 400  # nothing but `max_wait` makes anybody leave
    assert steps[-1] > 20
    assert max(after - before for before, after in itertools.pairwise(steps)) == 1  # one comes, one is due


def test_published_sizes_are_those_of_the_published_runs():
    assert published_slots(50 << 20, 500) == pytest.approx(256_710, abs=1)  # HYBRIDJOIN, 50 MB
    assert published_slots(100 << 20, 1500 + 950) == pytest.approx(512_567, abs=1)  # X-HYBRIDJOIN, 100 MB
    assert published_slots(50 << 20, 850 + 2500) == pytest.approx(255_017, abs=16)  # CACHEJOIN, 50 MB


@pytest.mark.parametrize(
    ("algorithm", "rows"),
    [
        ("hybridjoin", 500),
        ("hybridjoin_l", 500),
        ("hybridjoin_pq", 68),
        ("x_hybridjoin", 950 + 1500),
        ("optimised_x_hybridjoin", 850 + 2500),
        ("cachejoin", 850 + 2500),
        ("sscj", 850 + 2500),
    ],
)
def test_the_published_preset_has_the_published_number_of_slots(algorithm, rows):
    case = plain_case(50, 400, [])
    slots, memory = {}, 3_000_000  # the parts of these rows may have an eighth of it
    with opened_master("key", case.master, case.master_key) as master:
        for preset in ("published", "tuned"):
            join = ss.Join(master, on="key0", algorithm=algorithm, memory=memory, preset=preset)
            list(join(case.items))
            slots[preset] = join.report()["stream_slots"]
    assert slots["published"] == published_slots(memory, rows)
    assert slots["published"] < slots["tuned"]


def test_ages_count_the_tuples_that_entered_and_not_those_that_a_cache_has_answered():
    choice = OldestFirst()
    choice.pending = SimpleNamespace(now=1000, oldest_position=lambda: 500, hurry=False, slots=10)
    choice.arrivals = 100  # nine of ten were answered before
    assert choice.age() == 50
    assert not choice.is_due(most_age=5)
    assert choice.is_due(most_age=4.9)
    choice.pending.hurry = True
    assert choice.is_due()
