"""Predicted tuples of an iteration against those that the real recipes count, over small masters in steady state."""

from __future__ import annotations

import pytest

from semistream.models import EXAMPLE, Setting, predict
from semistream.models.popularity import zipf
from tests.models.measuring import ROWS, build, steady

pytestmark = pytest.mark.compiled
MEMORY = 2_000_000


@pytest.fixture(scope="module")
def masters(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    opened = {layout: build(folder / layout, layout) for layout in ("key", "frequency")}
    yield opened
    for master in opened.values():
        master.close()


def side_by_side(masters, algorithm, exponent, layout="key", **more):
    """What is predicted for the sizes that the recipe has, and what it did."""
    measured = steady(masters[layout], exponent, algorithm, MEMORY)
    setting = Setting(
        demand=zipf(ROWS, exponent, sorted_master=layout == "frequency"),
        rows=ROWS,
        slots=measured.slots,
        partition_rows=measured.partition_rows,
        costs=EXAMPLE,
        **{"cached_rows": measured.cached_rows} | {name: value(measured) for name, value in more.items()},
    )
    return predict(algorithm, setting), measured


@pytest.mark.parametrize("exponent", [0.25, 1.0])
def test_hybridjoin_answers_what_is_predicted(masters, exponent):
    predicted, measured = side_by_side(masters, "hybridjoin", exponent)
    assert measured.misses == pytest.approx(predicted.iteration.misses, rel=0.05)


def test_pinned_rows_are_part_of_the_prediction(masters):
    """All who leave have waited here, for the pinned rows or for others."""
    predicted, measured = side_by_side(masters, "x_hybridjoin", 0.5, "frequency", pinned_rows=pinned_rows)
    assert predicted.hit_share > 0.1
    assert measured.misses == pytest.approx(predicted.iteration.tuples, rel=0.05)


def pinned_rows(measured):
    first, stop = measured.recipe._pinned.partition(0, 1)
    return (stop - first) * ROWS / measured.recipe._reader.pages


@pytest.mark.parametrize("algorithm", ["cachejoin", "cachejoin_l", "cachejoin_pq", "cachejoin_lwf"])
def test_a_cache_with_random_victims_and_the_loads_behind_it_are_as_predicted(masters, algorithm):
    predicted, measured = side_by_side(
        masters, algorithm, 1.0, least_waiting=lambda run: run.least, cached_rows=lambda run: run.recipe.front.slots
    )
    assert measured.misses == pytest.approx(predicted.iteration.misses, rel=0.05)
    assert measured.hit_share == pytest.approx(predicted.hit_share, abs=0.02)


@pytest.mark.parametrize(("algorithm", "layout"), [("sscj", "key"), ("optimised_x_hybridjoin", "frequency")])
def test_behind_the_hottest_rows_loads_are_as_predicted(masters, algorithm, layout):
    predicted, measured = side_by_side(masters, algorithm, 1.0, layout)
    assert measured.misses == pytest.approx(predicted.iteration.misses, rel=0.05)
    assert measured.hit_share == pytest.approx(predicted.hit_share, abs=0.03)


def test_the_longest_wait_comes_near_its_bound(masters):
    predicted, measured = side_by_side(masters, "hybridjoin_lwf", 1.0)
    assert measured.misses == pytest.approx(predicted.iteration.misses, rel=0.03)


@pytest.mark.parametrize("algorithm", ["meshjoin", "cmeshjoin", "ssbj"])
def test_a_scan_lets_go_of_an_even_share_exactly(masters, algorithm):
    predicted, measured = side_by_side(masters, algorithm, 1.0)
    assert measured.misses == pytest.approx(predicted.iteration.misses, rel=0.005)


def test_r_meshjoin_is_a_scan_by_segments(masters):
    predicted, measured = side_by_side(masters, "r_meshjoin", 1.0, segments=lambda run: run.recipe._segments)
    assert measured.recipe._segments > 1
    assert measured.misses == pytest.approx(predicted.iteration.misses * measured.recipe._segments, rel=0.005)


@pytest.mark.parametrize("algorithm", ["inlj", "ssij", "partitioned_join"])
def test_batches_and_blocks_are_as_predicted(masters, algorithm):
    """What stays in memory shows in the hits alone: hardly any of so few blocks is hotter than others."""
    predicted, measured = side_by_side(masters, algorithm, 1.0)
    assert measured.misses == pytest.approx(predicted.iteration.misses, rel=0.05)
