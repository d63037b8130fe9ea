"""The names users rely on: adding or losing one is a decision, so it shows here."""

from __future__ import annotations

import pytest

import semistream

NAMES = [
    "BudgetError",
    "BuildFailed",
    "CalibrationError",
    "CapabilityError",
    "ColumnError",
    "Join",
    "KeyTypeError",
    "MasterBusy",
    "MasterCorrupt",
    "MasterError",
    "MasterFormat",
    "MasterNotFound",
    "NoProgress",
    "SemistreamError",
    "SourceError",
    "StateError",
    "UsageError",
    "algorithms",
    "build_master",
    "calibrate",
    "explain",
    "open_master",
]


def test_the_public_names_are_these():
    assert sorted(semistream.__all__) == NAMES


@pytest.mark.parametrize("name", [*NAMES, "__version__"])
def test_every_public_name_is_there(name):
    assert getattr(semistream, name) is not None
    assert name in dir(semistream)
