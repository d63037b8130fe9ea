"""Popularity curves against exact sums and samples."""

from __future__ import annotations

import numpy as np
import pytest

import semistream as ss
from semistream.models.popularity import empirical, zipf


def exact(keys, exponent):
    chance = 1 / np.arange(1, keys + 1) ** exponent
    return chance / chance.sum()


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 1.7])
def test_a_curve_of_some_thousand_points_is_exact_enough(exponent):
    demand, chance = zipf(50_000, exponent), exact(50_000, exponent)
    for count in (1, 10, 3000, 20_000, 50_000):
        assert demand.hottest(count) == pytest.approx(chance[:count].sum(), abs=2e-6)
    keys, share = demand.classes()
    assert (keys.sum(), (keys * share).sum()) == (pytest.approx(50_000), pytest.approx(1.0))
    assert keys.size < 6000


def test_partitions_of_a_sorted_master_are_sums_of_neighbours():
    needed, chance = zipf(10_000, 1.0, sorted_master=True).needed(500, beyond=1000), exact(10_000, 1.0)[1000:]
    assert needed == pytest.approx(chance.reshape(-1, 500).sum(axis=1) / chance.sum(), rel=1e-3)


def test_over_an_unsorted_master_hot_keys_fall_anywhere():
    needed = zipf(10_000, 1.0).needed(500)
    assert needed.size == 20
    assert needed.sum() == pytest.approx(1.0)
    assert needed.argmax() != 0
    assert needed.max() > exact(10_000, 1.0)[0]


def test_a_sample_tells_the_curve_and_what_it_has_not_seen():
    chance = exact(20_000, 1.0)
    sample = np.random.default_rng(2).choice(20_000, 30_000, p=chance)
    demand = empirical(np.unique(sample, return_counts=True)[1], 20_000)
    for count in (1, 100, 1000):
        assert demand.hottest(count) == pytest.approx(chance[:count].sum(), rel=0.05)
    unseen = np.ones(20_000, bool)
    unseen[sample] = False
    seen = np.unique(sample).size
    assert 1 - demand.hottest(seen) == pytest.approx(chance[unseen].sum(), rel=0.1)


def test_samples_that_say_nothing_and_samples_that_say_little():
    with pytest.raises(ss.UsageError, match="the stream sample is empty"):
        empirical([], 100)
    one_key = empirical([500], 100)
    assert one_key.hottest(1) == 1.0
    nothing_twice = empirical(np.ones(50), 100)
    assert nothing_twice.hottest(10) == pytest.approx(0.1)
