"""Popularity changes when and how it was told to, and stays Zipf all the while."""

from __future__ import annotations

import numpy as np
import pytest

from semistream.errors import UsageError
from semistream.workloads import Domain, Drift, Popularity, Zipf
from semistream.workloads.blocks import BLOCK_ROWS
from tests.workloads.statistics import LIMIT, chi_square

SIZE = 10_000


def drawn(drift, blocks=2, **options):
    popularity = Popularity(drift=drift, scattered=False, **options)
    return np.concatenate([popularity.keys(Domain(SIZE), seed=9, block=block) for block in range(blocks)])


def ranks_now(keys, row, shift):
    """Undo a shift of the hot set, by the definition: `shift` newcomers have come in."""
    return (keys - 1 + shift) % SIZE + 1


def test_without_drift_every_stretch_has_the_same_hot_set():
    keys = drawn(Drift())
    for part in np.split(keys, 4):
        expected = Zipf(SIZE).probability(np.arange(1, SIZE + 1)) * len(part)
        assert chi_square(np.bincount(part, minlength=SIZE + 1)[1:], expected) < LIMIT


def test_a_moving_hot_set_is_zipf_relative_to_its_newest_key():
    keys = drawn(Drift(moves_per_row=0.01))
    rows = np.arange(len(keys))
    ranks = ranks_now(keys, rows, rows // 100)
    expected = Zipf(SIZE).probability(np.arange(1, SIZE + 1)) * len(keys)
    assert chi_square(np.bincount(ranks, minlength=SIZE + 1)[1:], expected) < LIMIT
    assert chi_square(np.bincount(keys, minlength=SIZE + 1)[1:], expected) > 100


def test_the_hottest_key_moves_gradually():
    keys = drawn(Drift(moves_per_row=0.001))
    early, late = (set(np.bincount(part).argsort()[-50:]) for part in (keys[:20_000], keys[-20_000:]))
    between = set(np.bincount(keys[40_000:60_000]).argsort()[-50:])
    assert len(early & between) > len(early & late)


def test_a_jump_replaces_the_hot_set_at_its_tuple():
    at = BLOCK_ROWS + 1234
    keys = drawn(Drift(jumps=(at,)))
    hot = [set(np.bincount(part, minlength=SIZE).argsort()[-20:].tolist()) for part in (keys[:at], keys[at:])]
    assert not hot[0] & hot[1]
    assert hot[0] == set(range(1, 21))
    shifted = (keys[at:] - 1 - int(SIZE * 0.6180339887498949)) % SIZE + 1
    expected = Zipf(SIZE).probability(np.arange(1, SIZE + 1)) * len(shifted)
    assert chi_square(np.bincount(shifted, minlength=SIZE + 1)[1:], expected) < LIMIT


def test_many_jumps_never_bring_an_old_hot_set_back():
    popularity = Popularity(drift=Drift(jumps=tuple(range(1, 21))))
    hot = [set(popularity.hottest(100, 1_000_000, row=row).tolist()) for row in range(21)]
    assert len(set.union(*hot)) == 2100


def test_hottest_names_the_keys_that_are_hot_at_a_tuple():
    popularity = Popularity(drift=Drift(moves_per_row=0.01, jumps=(30_000,)))
    keys = popularity.keys(Domain(SIZE), seed=9, block=0)
    for row in (10_000, 50_000):
        around = np.bincount(keys[row - 3000 : row + 3000], minlength=SIZE + 1)
        assert around[popularity.hottest(60, SIZE, row)].sum() > 0.3 * around.sum()
    assert np.bincount(keys[:10_000], minlength=SIZE + 1)[popularity.hottest(60, SIZE, 50_000)].sum() < 1000


def test_skew_that_changes_is_zipf_of_the_exponent_in_force():
    at = 70_001
    keys = drawn(Drift(exponents=((at - 1, 1.2), (at, 0.2))))
    for part, exponent in ((keys[:at], 1.2), (keys[at:], 0.2)):
        expected = Zipf(SIZE, exponent).probability(np.arange(1, SIZE + 1)) * len(part)
        assert chi_square(np.bincount(part, minlength=SIZE + 1)[1:], expected) < LIMIT


def test_skew_may_fall_steadily():
    keys = drawn(Drift(exponents=((0, 1.5), (2 * BLOCK_ROWS, 0.0))))
    top = [(part <= 10).mean() for part in np.split(keys, 8)]
    assert top == sorted(top, reverse=True)
    assert top[0] > 0.7
    assert top[-1] < 0.02


def test_exponents_are_level_outside_their_points():
    drift = Drift(exponents=((1000, 0.5), (2000, 1.0)))
    assert [drift.exponent_at(row, otherwise=9) for row in (0, 1000, 1500, 2000, 99_999)] == [0.5, 0.5, 0.75, 1.0, 1.0]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"moves_per_row": -1}, "moves_per_row"),
        ({"jumps": (-5,)}, "jumps"),
        ({"exponents": ((10, 1.0), (5, 1.0))}, "rise"),
        ({"exponents": ((10, -1.0),)}, "exponent"),
    ],
)
def test_wrong_settings_are_named(settings, named):
    with pytest.raises(UsageError, match=named):
        Drift(**settings)
