"""What every test shares: how hard Hypothesis looks, where kernels are compiled to, and who may start a Java machine.

Three Hypothesis profiles, chosen with `--hypothesis-profile`:

    quick     a handful of cases, for the runs with the JIT off and with bounds checks
    default   what `make test` runs, the same cases every time, so that a failure is yours and not the dice's
    soak      many and new ones, for `make soak`
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parent

# a first call compiles kernels, so neither a deadline nor a "too slow" check says anything about a case
COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}
settings.register_profile("quick", max_examples=8, derandomize=True, database=None, **COMMON)
settings.register_profile("default", max_examples=50, derandomize=True, database=None, **COMMON)
settings.register_profile("soak", max_examples=2000, print_blob=True, **COMMON)


PLAIN_PYTHON = os.environ.get("NUMBA_DISABLE_JIT") == "1"
FOR_KERNELS = PLAIN_PYTHON or os.environ.get("NUMBA_BOUNDSCHECK") == "1"


def adds_no_kernel(item: pytest.Item) -> bool:
    """Whether a contract test meets no kernel that another one does not meet: other masters, most of the key types."""
    case = getattr(item, "callspec", None)
    if case is None or not item.path.is_relative_to(TESTS / "contract"):
        return False
    few = case.indices.get("kinds", 0) % 5 == 0
    return case.params.get("kind") in ("frequency", "sqlite") or not few


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep all tests that start Spark on one xdist worker, as two Java machines would fight for two cores."""
    if FOR_KERNELS:
        config.hook.pytest_deselected(items=[item for item in items if adds_no_kernel(item)])
        items[:] = [item for item in items if not adds_no_kernel(item)]
    for item in items:
        if item.path.is_relative_to(TESTS / "spark") or item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.xdist_group("spark"))
        if PLAIN_PYTHON and item.get_closest_marker("compiled"):
            item.add_marker(pytest.mark.skip(reason="too slow without the JIT"))
