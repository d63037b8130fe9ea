"""The histogram of waits: quantiles at most 1/8 too high, never too low."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream.parts import waits
from tests.parts.made import ints

WAITS = st.lists(st.integers(0, 20) | st.integers(0, 10**6) | st.integers(0, 2**50), min_size=1, max_size=30)


def histogram_of(numbers):
    histogram = np.zeros(waits.BUCKETS, np.int64)
    for number in numbers:
        histogram[waits.bucket_of(number)] += 1
    return histogram


def test_buckets_follow_each_other_without_a_gap():
    buckets = [waits.bucket_of(number) for number in range(5000)]
    assert buckets[:9] == list(range(9))
    assert set(np.diff(buckets).tolist()) == {0, 1}
    assert waits.bucket_of(-3) == 0


@pytest.mark.parametrize("number", [2**k + d for k in range(4, 57) for d in (-1, 0, 1)])
def test_the_upper_bound_of_a_bucket_is_its_last_number(number):
    bound = waits.quantile(histogram_of([number]), 1.0)
    assert number <= bound <= number * 9 / 8
    assert waits.bucket_of(bound) == waits.bucket_of(number)
    assert waits.bucket_of(bound + 1) == waits.bucket_of(number) + 1


@given(numbers=WAITS, share=st.sampled_from([0.0, 0.1, 0.5, 0.9, 0.99, 1.0]))
def test_a_quantile_is_never_too_low_and_hardly_too_high(numbers, share):
    exact = sorted(numbers)[max(0, int(np.ceil(share * len(numbers))) - 1)]
    found = waits.quantile(histogram_of(numbers), share)
    assert found >= exact or share == 0.0
    assert found <= exact * 9 / 8


def test_nobody_waited():
    assert waits.quantile(np.zeros(waits.BUCKETS, np.int64), 0.99) == 0


def test_waits_are_counted_from_arrival_to_now_with_or_without_a_match():
    stamps = ints(0, 90 << 1, 99 << 1 | 1, 5)
    histogram = np.zeros(waits.BUCKETS, np.int64)
    assert waits.add_waits(histogram, stamps, ints(1, 2), 100) == 10
    assert waits.add_waits(histogram, stamps, ints(), 100) == 0
    assert (histogram == histogram_of([10, 1])).all()
