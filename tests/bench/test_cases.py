"""Names of cases are their settings; presets hold only cases that exist."""

from __future__ import annotations

import pytest

from semistream.bench.cases import PRESETS, Case, preset_named
from semistream.errors import UsageError

NAMES = sorted({name for preset in PRESETS.values() for name in preset.cases})


@pytest.mark.parametrize("name", NAMES)
def test_a_name_read_and_written_is_itself(name):
    assert Case.parse(name).name == name


@pytest.mark.parametrize(
    "name", ["", "fixed", "fixed-zipf1", "fixed-zipf1-buffered-3r", "wide-zipf1-direct", "fixed-zipf-1-direct"]
)
def test_other_names_are_an_error_that_shows_a_right_one(name):
    with pytest.raises(UsageError, match="fixed-zipf1-buffered"):
        Case.parse(name)


def test_an_unknown_preset_is_an_error_that_lists_them():
    with pytest.raises(UsageError, match="smoke, quick, full"):
        preset_named("huge")


def test_the_full_preset_has_every_combination():
    assert len(PRESETS["full"].cases) == len(set(PRESETS["full"].cases)) == 2 * 3 * 2 * 2


def test_no_preset_checks_more_batches_than_there_are():
    assert all(preset.verified_batches <= preset.pool_batches for preset in PRESETS.values())
