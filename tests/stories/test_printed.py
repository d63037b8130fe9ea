"""The printed forms are what they say: with all faults repaired they are right, so that what is left wrong is the print's."""

from __future__ import annotations

import itertools
import random

import pytest

from tests.stories.printed import hybridjoin, meshjoin, ssbj
from tests.stories.printed.told import mistakes

SAME = ["printed and right answer are the same"]


def wrong_ones(paged, stream, told):
    return mistakes(paged, list(itertools.chain(*stream)), told)


def made(seed, keys=12, pages=4, moments=90, unique=False):
    """Pages with several rows a key, absent keys, and a stream whose hot keys change."""
    dice = random.Random(seed)
    drawn = sorted(
        dice.sample(range(keys * 3), keys) if unique else [dice.randrange(keys) for _ in range(4 * pages + 3)]
    )
    labels = [(key, f"{key}/{number}") for number, key in enumerate(drawn)]
    paged = [list(labels[start : start + 4]) for start in range(0, len(labels), 4)]
    name = itertools.count()
    hot = [dice.randrange(keys + 2) for _ in range(3)]
    stream = [
        [
            (f"t{next(name)}", dice.choice(hot) if dice.random() < 0.7 else dice.randrange(keys + 3))
            for _ in range(dice.randrange(6))
        ]
        for _ in range(moments)
    ]
    return paged, stream


@pytest.mark.parametrize("seed", range(20))
def test_ssbj_with_all_faults_repaired_is_right(seed):
    paged, stream = made(seed)
    told = ssbj.run(paged, stream, "1,2,3,4,5,6", more=2 * len(paged))
    assert wrong_ones(paged, stream, told) == SAME
    assert any("hits" in line for line in told.happened)


@pytest.mark.parametrize(("repaired", "least"), [("", 20), ("2,3,4,5,6", 20), ("1,3", 5)])
def test_the_first_two_faults_of_ssbj_give_wrong_answers(repaired, least):
    wrong = 0
    for seed in range(20):
        paged, stream = made(seed)
        wrong += wrong_ones(paged, stream, ssbj.run(paged, stream, repaired, more=2 * len(paged))) != SAME
    assert wrong >= least


@pytest.mark.parametrize("left", ["3", "4", "5", "6"])
def test_the_other_faults_of_ssbj_cost_memory_or_time_and_no_answer(left):
    changed = 0
    for seed in range(20):
        paged, stream = made(seed)
        repaired = ",".join(fault for fault in "123456" if fault != left)
        told = ssbj.run(paged, stream, repaired, more=2 * len(paged))
        assert wrong_ones(paged, stream, told) == SAME
        changed += told.happened != ssbj.run(paged, stream, "1,2,3,4,5,6", more=2 * len(paged)).happened
    assert changed >= 5


@pytest.mark.parametrize("seed", range(5))
def test_meshjoin_with_both_faults_repaired_is_right(seed):
    paged, stream = made(seed)
    assert wrong_ones(paged, stream, meshjoin.run(paged, stream, "start,key")) == SAME
    assert wrong_ones(paged, stream, meshjoin.run(paged, stream, "start")) != SAME
    assert wrong_ones(paged, stream, meshjoin.run(paged, stream, "key")) != SAME


@pytest.mark.parametrize("seed", range(5))
def test_hybridjoin_is_right_where_its_assumptions_hold(seed):
    paged, stream = made(seed, unique=True)
    known = [key for page in paged for key, _ in page]
    stream = [[(name, known[key % len(known)]) for name, key in moment] for moment in stream]
    told = hybridjoin.run(paged, stream, iterations=1000, slots=16)
    assert [line for line in wrong_ones(paged, stream, told)[1:] if "still waits" not in line] == []
