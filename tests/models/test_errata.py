"""Equations and rules of the papers that are wrong or ambiguous, each shown to be so. docs/errata.md tells them in words."""

from __future__ import annotations

from dataclasses import replace
from math import log, sqrt

import numpy as np
import pytest

from semistream.models import EXAMPLE, Setting, choices, predict, printed
from semistream.models.inequality import Balance
from semistream.models.memory import Charges, Layout, bytes_beside, slots
from semistream.models.popularity import zipf

MB, ROWS = 1 << 20, 2_000_000
TRUNCATED = {"sorted_master": True, "mode": "truncated_continuous"}  # the generator of the prototypes
SETTING = Setting(
    demand=zipf(200_000, 1.0), rows=2e5, slots=20_000, partition_rows=500, costs=EXAMPLE, cached_rows=2000
)


# ------------------------------------------------------------------------------------------------ X-HYBRIDJOIN


def answered_by_pinned(memory, iterations=4000):
    """Million tuples through the pinned part: as printed, and by renewal."""
    waiting = slots(memory, Layout(500, pinned_rows=500), Charges().in_queue(), form="published")
    demand = zipf(ROWS, 1.0, **TRUNCATED)
    pinned = demand.hottest(500)
    ours = choices.oldest_first(demand.needed(500, 500), waiting, pinned).per_load * pinned / (1 - pinned)
    return printed.x_hybridjoin(waiting, ROWS, 500, 500).hits * iterations / 1e6, ours * iterations / 1e6


def test_equation_9_takes_a_variance_for_a_mean():
    waiting = slots(50 * MB, Layout(500, pinned_rows=500), Charges().in_queue(), form="published")
    as_printed = sum(printed.x_hybridjoin(waiting, ROWS, 500, 500))
    mean = sum(printed.x_hybridjoin(waiting, ROWS, 500, 500, mean=True))
    assert (as_printed, mean) == (pytest.approx(85.2, abs=0.1), pytest.approx(116.6, abs=0.1))
    # N draws with chance p have N p hits on average
    dice = np.random.default_rng(1).binomial(1000, 0.4, 10_000)
    assert dice.mean() == pytest.approx(400, rel=0.01)
    assert dice.mean() > 1.5 * 1000 * 0.4 * 0.6


def test_equation_9_contradicts_the_paper_s_own_figure():
    printed_50, ours_50 = answered_by_pinned(50 * MB)
    printed_250, ours_250 = answered_by_pinned(250 * MB)
    assert (printed_50, printed_250) == (pytest.approx(0.15, abs=0.01), pytest.approx(0.77, abs=0.01))
    assert (ours_50, ours_250) == (pytest.approx(0.4, rel=0.05), pytest.approx(2.0, rel=0.05))  # Fig. 3d


def test_a_page_that_the_oldest_chooses_answers_twice_what_a_random_page_would():
    needed = np.full(4000, 1 / 4000)
    assert choices.oldest_first(needed, 256_710).per_load == pytest.approx(2 * 256_710 / 4000, rel=0.01)


# ------------------------------------------------------------------------------------- Optimised X-HYBRIDJOIN


def test_equations_4_and_7_do_not_add_up_to_one():
    partitions = (ROWS - 2500) / 850
    total = printed.cached_share(ROWS, 2500) + partitions * printed.partition_share(ROWS, 850, 2500)
    assert total == pytest.approx(0.982, abs=0.001)
    exact = zipf(ROWS, 1.0).hottest(2500)
    assert (printed.cached_share(ROWS, 2500), exact) == (
        pytest.approx(0.5393, abs=1e-4),
        pytest.approx(0.5569, abs=1e-4),
    )


def test_equation_4_is_what_the_prototypes_generator_gives():
    assert zipf(ROWS, 1.0, **TRUNCATED).hottest(2500) == pytest.approx(log(2501) / log(ROWS), rel=1e-3)


def test_a_power_law_without_its_constant_is_no_estimate():
    assert printed.power_law(ROWS, 2500) == pytest.approx(0.98, abs=0.02)  # 0.557 is right


@pytest.mark.parametrize(
    ("rows", "as_printed", "renewal"), [(500_000, 168, 871), (ROWS, 48.1, 219.3), (8_000_000, 13.3, 57.2)]
)
def test_equation_9_of_optimised_x_hybridjoin_is_a_quarter_of_the_truth(rows, as_printed, renewal):
    demand = zipf(rows, 1.0, **TRUNCATED)
    assert printed.optimised_x_hybridjoin(255_017, rows, 850, 2500).misses == pytest.approx(as_printed, rel=0.01)
    assert choices.oldest_first(demand.needed(850, 2500), 255_017).per_load == pytest.approx(renewal, rel=0.01)


# ------------------------------------------------------------------------------------------------ costs


@pytest.mark.parametrize("algorithm", ["cachejoin", "optimised_x_hybridjoin", "cmeshjoin", "ssbj"])
def test_a_miss_has_been_looked_up_in_the_cache_too(algorithm):
    ours, theirs = predict(algorithm, SETTING).iteration, predict(algorithm, SETTING, form="published").iteration
    assert ours.terms["probe cache"] == pytest.approx(ours.tuples * EXAMPLE.probe_s)
    assert theirs.terms["probe cache"] == pytest.approx(theirs.hits * EXAMPLE.probe_s)


def test_output_is_paid_for_by_the_row_and_the_index_by_the_load():
    many = replace(SETTING, matches=3.0, costs=replace(EXAMPLE, look_up_s=1e-4))
    ours, theirs = predict("hybridjoin", many).iteration, predict("hybridjoin", many, form="published").iteration
    assert ours.terms["settle"] == pytest.approx(3 * ours.tuples * EXAMPLE.settle_s)
    assert theirs.terms["settle"] == pytest.approx(theirs.tuples * EXAMPLE.settle_s)
    assert "look up" in ours.terms
    assert "look up" not in theirs.terms


def test_phases_that_overlap_are_not_added_up():
    ours, theirs = (
        predict("p_cachejoin", SETTING).iteration,
        predict("p_cachejoin", SETTING, form="published").iteration,
    )
    assert ours.seconds == max(ours.phase_seconds.values()) < sum(ours.terms.values())
    assert theirs.seconds == pytest.approx(sum(theirs.terms.values()))
    assert ours.terms["take"] == pytest.approx((ours.hits + 2 * ours.misses) * EXAMPLE.take_s)  # a miss is taken twice


def test_two_loaders_halve_the_time_of_reading_only_where_the_device_reads_twice_at_once():
    def seconds(parallel_reads, form="corrected", name="op_cachejoin"):
        return predict(name, replace(SETTING, parallel_reads=parallel_reads), form).iteration

    read = EXAMPLE.read(SETTING.load_bytes, scanning=False)
    assert seconds(1).phase_seconds["load"] == pytest.approx(read)
    assert seconds(2).phase_seconds["load"] == pytest.approx(read / 2)
    assert seconds(1, "published").terms["read"] == pytest.approx(read / 2)
    assert seconds(1).seconds <= predict("p_cachejoin", SETTING).iteration.seconds


def test_the_second_disk_buffer_is_counted_twice_and_not_three_times():
    assert bytes_beside(Layout(850, buffers=2), form="published") == 2 * 850 * 120


def test_the_intermediate_buffer_is_empty_while_tuples_are_stranded():
    """Printed: the disk phase stops when the intermediate buffer is empty. One burst, then a pause."""

    def left_waiting(stops):
        between, table = 10, 0
        while not stops(between, table):
            table, between = table + between, 0
            table -= min(table, 2)  # a load answers two
        return table

    assert left_waiting(lambda between, table: between == 0) > 0
    assert left_waiting(lambda between, table: between == 0 and table == 0) == 0


# ------------------------------------------------------------------------------------------------ queue of frequent pages


def test_the_due_interval_multiplies_a_probability_by_the_slots_once_too_often():
    waiting, chance, threshold = 10_000, 0.01, 200.0
    interval = printed.due_interval(threshold, waiting, chance)
    assert interval * chance == pytest.approx(threshold * waiting)  # that many would wait, in a table of 10,000
    assert printed.due_interval(threshold, waiting, chance * waiting) * chance == pytest.approx(threshold)  # as a count


def test_matches_over_slots_overestimate_how_frequent_a_page_is():
    needed = np.full(1000, 1e-3)
    answers = choices.oldest_first(needed, 50_000)
    matches = 1 + needed[0] * answers.age  # what the first load of the page sees
    assert matches / 50_000 == pytest.approx(2 * needed[0], rel=0.02)
    assert (matches - 1) / answers.age == pytest.approx(needed[0])


def test_a_gliding_average_of_what_the_threshold_causes_forgets_the_page():
    """Frequency as a count; whatever the page's own is, it drifts to the geometric mean of that and the threshold."""
    threshold, decay = 50.0, 0.9
    for own in (200.0, 800.0):
        frequency = own
        for _ in range(300):
            matches = own * threshold / frequency  # in the interval threshold * slots / frequency
            frequency = decay * frequency + (1 - decay) * matches
        assert frequency == pytest.approx(sqrt(own * threshold), rel=1e-3)


def test_behind_a_cache_no_choice_of_pages_gains_on_an_unsorted_master():
    for page, bound in ((500, 1.015), (68, 1.05)):
        needed = zipf(ROWS, 1.0).needed(page, 2500)
        oldest = choices.oldest_first(needed, 255_017).per_load
        assert choices.longest_wait(needed, 255_017).per_load / oldest < bound
        assert choices.fixed_place(needed, 255_017, 0.3).per_load / oldest < 0.75


# ------------------------------------------------------------------------------------------------ SSBJ


def test_equation_6_is_no_rate_of_tuples():
    """The same join with rows and tuples measured in bits: nothing changes but the printed rate."""
    in_bytes = printed.ssbj_rate(0.1, (2.4e6, 6e5, 8e6))
    assert printed.ssbj_rate(0.1, (8 * 2.4e6, 8 * 6e5, 8 * 8e6)) == 8 * in_bytes
    balance = Balance(zipf(100_000, 1.0), rows=1e5, buffer_rows=500)
    in_bits = replace(balance, charges=Charges(8 * 20, 8 * 120))
    ours = balance.rate_in(2e6, EXAMPLE)
    # but for the four bytes of the queue's pointer and the bytes of a read
    free = replace(EXAMPLE, scan_byte_s=0.0)
    assert in_bits.rate_in(16e6, free) == pytest.approx(balance.rate_in(2e6, free), rel=0.05)
    assert ours > 0


def test_switching_is_paid_for_rows_that_move_and_not_for_all():
    moving = replace(SETTING, moved_rows=20.0)
    assert predict("ssbj", moving).iteration.terms["keep"] == pytest.approx(20 * EXAMPLE.keep_s)
    assert predict("ssbj", moving, form="published").iteration.terms["keep"] == pytest.approx(500 * EXAMPLE.keep_s)


def test_all_of_the_master_in_the_cache_means_all_that_is_asked_for():
    balance = Balance(zipf(1000, 0.5), rows=1000, buffer_rows=100, drawn=True)
    placed = balance.at(1e6)
    assert placed.hit_share == pytest.approx(1.0, abs=0.05)
    few = balance.at(300.0)
    assert few.cached_keys < 1000


@pytest.mark.parametrize(
    ("rows", "share", "most"), [(20e6, 0.01, 2.8), (20e6, 0.1, 3.8), (100e6, 0.01, 3.1), (100e6, 0.1, 4.2)]
)
def test_memory_alone_does_not_make_ssbj_seven_times_better(rows, share, most):
    memory = share * rows * 120
    balance = Balance(zipf(int(rows), 1.0), rows, 2000, drawn=True)
    for absent_bytes, limit in ((0.0, most), (None, 1.6)):
        placed = replace(balance, absent_bytes=absent_bytes).in_memory(memory)
        assert placed.cycle_tuples * Charges().in_chunks() / memory < limit
