"""Zipf ranks follow the exact bounded distribution, for any exponent and size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream.errors import UsageError
from semistream.workloads import Zipf
from semistream.workloads.blocks import generator
from semistream.workloads.zipf import harmonic
from tests.workloads.statistics import KS_LIMIT, LIMIT, chi_square, kolmogorov

EXPONENTS = [0.0, 0.01, 0.25, 0.5, 0.99, 1.0, 1 + 1e-9, 1.2, 2.0, 3.5, 50.0]
DRAWS = 400_000


def draw(zipf, draws=DRAWS, seed=11):
    return zipf.ranks(generator(seed, "test"), draws)


def bars(size, exponent):
    """Every probability, by the definition."""
    heights = np.arange(1, size + 1, dtype=float) ** -exponent
    return heights / heights.sum()


@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("size", [1, 2, 3, 10, 1000, 70_000])
def test_counts_of_ranks_agree_with_the_definition(size, exponent):
    counted = np.bincount(draw(Zipf(size, exponent)), minlength=size + 1)[1:]
    assert chi_square(counted, DRAWS * bars(size, exponent)) < LIMIT


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_a_hundred_million_ranks_follow_the_exact_cdf(exponent):
    zipf = Zipf(100_000_000, exponent)
    ranks = draw(zipf)
    assert ranks.min() >= 1
    assert ranks.max() <= zipf.size
    edges = np.unique(np.concatenate([np.arange(0, 30), np.geomspace(30, zipf.size, 100).astype(int)]))
    edges[-1] = zipf.size
    counted = np.histogram(ranks, edges + 0.5)[0]
    assert chi_square(counted, DRAWS * np.diff(zipf.cdf(edges))) < LIMIT
    assert kolmogorov(ranks, zipf.cdf) < KS_LIMIT


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_cdf_and_probability_are_those_of_the_definition(exponent):
    size = 300_000
    zipf, right = Zipf(size, exponent), bars(size, exponent)
    ranks = np.arange(1, size + 1)
    assert np.allclose(zipf.probability(ranks), right, rtol=1e-12, atol=1e-300)
    assert np.allclose(zipf.cdf(ranks), np.cumsum(right), rtol=1e-11)
    assert zipf.cdf([0, size, size + 5]).tolist() == [0.0, 1.0, 1.0]


@given(st.integers(1, 200_000), st.floats(0, 60))
def test_harmonic_numbers_are_sums(rank, exponent):
    assert np.isclose(harmonic(rank, exponent), (np.arange(1.0, rank + 1) ** -exponent).sum(), rtol=1e-12)


@given(st.integers(1, 1 << 48), st.floats(0, 1000), st.integers(0, 100))
def test_ranks_never_leave_the_domain(size, exponent, seed):
    ranks = draw(Zipf(size, exponent), 500, seed)
    assert ranks.min() >= 1
    assert ranks.max() <= size


def test_the_share_of_the_top_fifth_is_the_published_one():
    shares = [Zipf(2_000_000, exponent).cdf(400_000).round(2) for exponent in (0.25, 0.5, 0.75, 0.9, 1.0)]
    assert shares == [0.30, 0.45, 0.66, 0.81, 0.89]


@pytest.mark.parametrize("exponent", [0.01, 0.5, 1.0, 1.75])
def test_truncated_continuous_follows_its_own_cdf_and_not_the_exact_one(exponent):
    zipf = Zipf(1000, exponent, "truncated_continuous")
    counted = np.bincount(draw(zipf), minlength=1001)[1:]
    expected = zipf.probability(np.arange(1, 1001))
    assert chi_square(counted, DRAWS * expected) < LIMIT
    assert counted[-1] == 0
    if exponent >= 0.5:
        assert chi_square(counted, DRAWS * bars(1000, exponent)) > 2 * LIMIT


def test_truncated_continuous_at_exponent_1_is_the_logarithm_of_the_prototypes():
    zipf = Zipf(2_000_000, 1.0, "truncated_continuous")
    ranks = np.array([1, 10, 1000])
    assert np.allclose(zipf.cdf(ranks), np.log(ranks + 1) / np.log(2_000_000))


@pytest.mark.parametrize("wrong", [0.95, 1.05])
def test_the_statistical_test_notices_an_exponent_that_is_a_little_off(wrong):
    counted = np.bincount(draw(Zipf(1000, 1.0)), minlength=1001)[1:]
    assert chi_square(counted, DRAWS * bars(1000, wrong)) > 3 * LIMIT


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((0,), "size=0"),
        ((10, -0.1), "exponent=-0.1"),
        ((10, float("nan")), "exponent=nan"),
        ((10, 1.0, "fast"), "mode='fast'"),
        ((1, 1.0, "truncated_continuous"), "size >= 2"),
    ],
)
def test_wrong_settings_are_named(arguments, named):
    with pytest.raises(UsageError, match=named):
        Zipf(*arguments)
