"""Arrivals have the rate, the burstiness and the self-similarity that were asked for."""

from __future__ import annotations

import math
from itertools import islice

import numpy as np
import pyarrow as pa
import pytest

from semistream.errors import UsageError
from semistream.workloads import BModel, Constant, OnOff, Poisson, counts, hurst_estimate, in_steps, timestamps
from tests.workloads.statistics import LIMIT, chi_square, share_off

STEPS = 1 << 17
PROCESSES = [
    Constant(rate_per_s=2000),
    Poisson(rate_per_s=2000),
    OnOff(rate_per_s=2000, hurst=0.75),
    BModel(rate_per_s=2000, bias=0.7),
]
each = pytest.mark.parametrize("process", PROCESSES, ids=lambda process: type(process).__name__)


@each
def test_the_mean_rate_is_the_one_asked_for(process):
    arrived = counts(process, STEPS, seed=1)
    assert arrived.min() >= 0
    off = 0.05 if isinstance(process, OnOff) else 0.005  # means of self-similar traffic settle slowly
    assert abs(arrived.mean() / 20 - 1) < off


@each
def test_the_same_seed_gives_the_same_arrivals_and_more_steps_begin_with_the_fewer(process):
    assert (counts(process, 10_000, seed=5) == counts(process, 50_000, seed=5)[:10_000]).all()
    if not isinstance(process, Constant):
        assert (counts(process, 10_000, seed=5) != counts(process, 10_000, seed=6)).any()


@each
def test_timestamps_are_the_counts_in_microseconds(process):
    start = 1_700_000_000_000_000
    moments = np.concatenate(list(islice(timestamps(process, 3, start), 5)))
    assert (np.diff(moments) >= 0).all()
    step = (moments - start) // 10_000
    right = counts(process, int(step.max()), seed=3)  # without the last, which may be cut
    assert (np.bincount(step)[: len(right)] == right).all()


def test_fractions_of_a_tuple_are_carried_over_exactly():
    arrived = counts(Constant(rate_per_s=7, step_ms=10), 100_000)
    assert arrived.sum() == 7000
    assert arrived.max() == 1
    assert (np.abs(np.cumsum(arrived) - 0.07 * np.arange(1, 100_001)) < 1.001).all()


def test_poisson_counts_follow_the_poisson_law():
    mean = 20
    arrived = counts(Poisson(rate_per_s=2000), STEPS, seed=2)
    law = [math.exp(-mean + k * math.log(mean) - math.lgamma(k + 1)) for k in range(61)]
    expected = STEPS * np.array([*law, 1 - sum(law)])
    assert chi_square(np.bincount(np.minimum(arrived, 61), minlength=62), expected) < LIMIT


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("hurst", [0.6, 0.7, 0.8, 0.9])
def test_on_off_traffic_has_the_hurst_parameter_asked_for(hurst, seed):
    process = OnOff(rate_per_s=20_000, hurst=hurst, sources=32, period_ms=20)
    estimate = hurst_estimate(counts(process, 1 << 19, seed), least_steps=64)
    assert abs(estimate - hurst) < 0.07


def test_independent_arrivals_have_a_hurst_parameter_of_one_half():
    assert abs(hurst_estimate(counts(Poisson(rate_per_s=2000), 1 << 18, seed=1)) - 0.5) < 0.04


@pytest.mark.parametrize("period_ms", [50, 200])
def test_on_off_sources_start_in_equilibrium(period_ms):
    process = OnOff(rate_per_s=1e5, hurst=0.9, sources=1, period_ms=period_ms)
    first = np.array([counts(process, 1, seed)[0] for seed in range(2000)])
    full = 2000  # tuples in a step of 10 ms when the one source talks twice as loud as the mean rate
    assert abs(first.mean() / full - 0.5) < 0.05
    # What is left of a running period outlasts one step with this probability: the integral of the periods' tail over their mean.
    tail, mean = 3 - 2 * 0.9, period_ms / 10
    shortest = mean * (tail - 1) / tail
    outlasts = 1 - 1 / mean if shortest > 1 else shortest ** (tail - 1) / tail
    assert abs(share_off(np.isin(first, [0, full]).sum(), 2000, outlasts)) < LIMIT


def test_on_off_never_exceeds_all_sources_talking():
    arrived = counts(OnOff(rate_per_s=2000, sources=4), STEPS, seed=1)
    assert arrived.max() <= 41
    assert arrived.min() == 0


@pytest.mark.parametrize("bias", [0.5, 0.6, 0.8])
def test_every_halving_of_the_b_model_splits_by_its_bias(bias):
    arrived = counts(BModel(rate_per_s=1e9, bias=bias), 1 << 14, seed=4).astype(float)
    assert np.allclose(arrived.reshape(-1, 4096).sum(axis=1), 4096 * 1e7)
    volume, left = arrived, []
    while len(volume) > 4:
        pair = volume.reshape(-1, 2)
        volume = pair.sum(axis=1)
        large = pair.sum(axis=1) > 1e4  # where whole numbers do not blur the split
        assert np.allclose((pair.max(axis=1) / volume)[large], bias, atol=1e-3)
        left.append((pair[:, 0] > pair[:, 1])[large])
    if bias > 0.5:
        which = np.concatenate(left)
        assert abs(share_off(which.sum(), len(which), 0.5)) < LIMIT


def test_the_b_model_is_burstier_the_larger_its_bias():
    peaks = [counts(BModel(rate_per_s=2000, bias=bias), STEPS, seed=1).max() for bias in (0.5, 0.6, 0.7, 0.8)]
    assert peaks == sorted(peaks)
    assert peaks[0] == 20
    assert peaks[-1] > 1000


def test_a_stream_in_steps_is_the_same_stream_cut_by_the_counts():
    rows = pa.table({"n": range(1000)})
    arrived = counts(Poisson(rate_per_s=100), 4096, seed=1)
    steps = list(in_steps(rows.to_batches(max_chunksize=64), Poisson(rate_per_s=100), seed=1))
    sizes = [0 if batch is None else batch.num_rows for batch in steps]
    last = max(step for step, size in enumerate(sizes) if size)  # may find fewer rows than its count
    assert sizes[:last] == arrived[:last].tolist()
    assert 0 < sizes[last] <= arrived[last]
    assert None in steps
    assert pa.Table.from_batches([batch for batch in steps if batch is not None]).equals(rows)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Constant(rate_per_s=-1), "rate_per_s=-1"),
        (lambda: Poisson(rate_per_s=1e-5), "step_ms"),
        (lambda: Constant(rate_per_s=10, step_ms=0), "step_ms=0"),
        (lambda: OnOff(rate_per_s=10, hurst=0.5), "hurst=0.5"),
        (lambda: OnOff(rate_per_s=10, sources=0), "sources=0"),
        (lambda: OnOff(rate_per_s=10, period_ms=1), "period_ms=1"),
        (lambda: BModel(rate_per_s=10, bias=0.4), "bias=0.4"),
        (lambda: hurst_estimate(np.ones(100, np.int64)), "at least 1024 steps"),
    ],
)
def test_wrong_settings_are_named(make, named):
    with pytest.raises(UsageError, match=named):
        make()
