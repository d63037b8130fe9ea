"""Scattering is a bijection that looks random; domains give every row a key and never an absent one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream.errors import UsageError
from semistream.workloads import Domain, Popularity, Scatter
from tests.workloads.statistics import LIMIT, chi_square, share_off


@given(st.integers(1, 5000), st.integers(0, 1000))
def test_scattering_is_a_bijection(size, seed):
    assert np.sort(Scatter(size, seed)(np.arange(1, size + 1))).tolist() == list(range(1, size + 1))


@given(st.integers(1, 1 << 62), st.integers(0, 10))
def test_scattering_stays_in_domains_of_any_size(size, seed):
    numbers = np.unique(np.linspace(1, min(size, 1 << 52), 50).astype(np.int64))
    places = Scatter(size, seed)(numbers)
    assert places.min() >= 1
    assert places.max() <= size
    assert len(np.unique(places)) == len(numbers)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_popular_ranks_are_spread_evenly_over_a_large_domain(seed):
    places = Scatter(100_000_000, seed)(np.arange(1, 20_001))
    counted = np.histogram(places, 200, (0, 100_000_000))[0]
    assert abs(chi_square(counted, np.full(200, 100.0))) < LIMIT  # neither clustered nor combed


def test_neighbouring_ranks_are_not_neighbours_after_scattering():
    size = 1_000_000
    steps = np.diff(Scatter(size, 5)(np.arange(1, 100_001))) % size
    counted = np.histogram(steps, 100, (0, size))[0]
    assert chi_square(counted, np.full(100, counted.sum() / 100)) < LIMIT


def test_another_seed_scatters_differently():
    numbers = np.arange(1, 1001)
    same = (Scatter(1000, 1)(numbers) == Scatter(1000, 2)(numbers)).sum()
    assert same < 10


@given(st.integers(1, 3000), st.integers(1, 50))
def test_keys_are_ascending_and_absent_keys_belong_to_no_row(size, gap):
    domain, numbers = Domain(size, gap), np.arange(1, size + 1)
    keys, absent = domain.keys(numbers), domain.absent(numbers)
    assert (np.diff(keys) > 0).all()
    assert not set(keys.tolist()) & set(absent.tolist())
    assert keys.min() >= 1
    if gap > 1:
        assert max(keys.max(), absent.max()) <= size * gap
        assert (
            absent <= numbers * gap
        ).all()  # inside the range of the keys, so that no minimum or maximum gives them away


def test_a_key_lies_anywhere_in_its_gap():
    numbers = np.arange(1, 100_001)
    domain = Domain(100_000, gap=16)
    for keys, shares in ((domain.keys(numbers), 16), (domain.absent(numbers), 16)):
        assert chi_square(np.bincount((keys - 1) % 16), np.full(16, 100_000 / shares)) < LIMIT


@pytest.mark.parametrize("gap", [1, 7])
def test_the_share_of_absent_keys_is_the_one_asked_for(gap):
    domain = Domain(10_000, gap)
    keys = Popularity(absent_share=0.3).keys(domain, seed=4, block=2)
    known = np.isin(keys, domain.keys(np.arange(1, 10_001)))
    assert abs(share_off((~known).sum(), len(keys), 0.3)) < LIMIT


def test_absent_keys_do_not_change_which_keys_the_other_tuples_ask_for():
    domain = Domain(10_000)
    with_absent, without = (Popularity(absent_share=share).keys(domain, 4, 2) for share in (0.3, 0.0))
    same = with_absent <= 10_000
    assert (with_absent[same] == without[same]).all()


def test_absent_tuples_are_chosen_anew_in_every_block():
    absent = [Popularity(absent_share=0.3).keys(Domain(10_000), 4, block) > 10_000 for block in (0, 1)]
    both = (absent[0] & absent[1]).sum()
    assert abs(share_off(both, len(absent[0]), 0.09)) < LIMIT


def test_all_tuples_may_be_absent():
    assert Popularity(absent_share=1.0).keys(Domain(100), 1, 0).min() > 100


def test_sorted_popularity_gives_the_smallest_keys_and_scattered_popularity_does_not():
    domain = Domain(100_000)
    in_order, scattered = (Popularity(scattered=choice).keys(domain, 3, 0) for choice in (False, True))
    assert np.bincount(in_order).argsort()[::-1][:3].tolist() == [1, 2, 3]
    assert np.bincount(scattered).argmax() == Popularity().hottest(1, 100_000)[0]
    assert (in_order <= 50_000).mean() > 0.9
    assert 0.2 < (scattered <= 50_000).mean() < 0.8


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Domain(0), "master_rows=0"),
        (lambda: Domain(10, gap=0), "gap=0"),
        (lambda: Domain(True), "master_rows=True"),
        (lambda: Scatter(10, seed=-1), "seed=-1"),
        (lambda: Popularity(absent_share=1.1), "absent_share=1.1"),
    ],
)
def test_wrong_settings_are_named(make, named):
    with pytest.raises(UsageError, match=named):
        make()
