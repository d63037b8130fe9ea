"""The two statistical tests the workloads are held to, with limits that a right generator passes 999 times in 1000."""

from __future__ import annotations

import numpy as np

LIMIT = 3.29  # standard deviations: two-sided 0.1 %
KS_LIMIT = 1.95  # Kolmogorov's distribution at 0.1 %


def chi_square(counted, expected):
    """How many standard deviations too large chi-square is (Wilson-Hilferty); bins of fewer than 10 are merged."""
    counted, expected = np.asarray(counted, float), np.asarray(expected, float)
    assert abs(counted.sum() - expected.sum()) <= 1e-6 * max(1.0, expected.sum())
    bins = np.floor(np.cumsum(expected) / 10).astype(int)  # a run of small bins ends when it has gathered 10
    bins = np.unique(bins, return_inverse=True)[1]
    counted, expected = np.bincount(bins, counted), np.bincount(bins, expected)
    enough = expected >= 5
    if not enough.all():  # what is left over at an end
        counted = np.append(counted[enough], counted[~enough].sum())
        expected = np.append(expected[enough], expected[~enough].sum())
    freedom = len(expected) - 1
    if freedom == 0:
        return 0.0
    total = ((counted - expected) ** 2 / expected).sum()
    return ((total / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / np.sqrt(2 / (9 * freedom))


def kolmogorov(sample, cdf):
    """The largest distance between a sample of whole numbers and its cdf, times the root of the sample's size."""
    values, times = np.unique(sample, return_counts=True)
    seen = np.cumsum(times) / len(sample)
    before = seen - times / len(sample)
    distance = max(np.abs(seen - cdf(values)).max(), np.abs(before - cdf(values - 1)).max())
    return distance * np.sqrt(len(sample))


def share_off(hits, total, share):
    """How many standard deviations a counted share lies from the right one."""
    return (hits - total * share) / np.sqrt(total * share * (1 - share))
