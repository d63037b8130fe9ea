"""What recipes with a cache or pinned pages save, told by their counters; that their answers are right is the contract's business."""

from __future__ import annotations

import contextlib

import numpy as np
import pyarrow as pa
import pytest

import semistream as ss
from tests.contract.harness import sqlite_master

ROWS, MEMORY = 20_000, 1 << 19
RANDOM = np.random.default_rng(5)


def skewed(count, seed=1, shift=0):
    """Keys by Zipf's law, exponent 1, as they come; key 0 is the hottest unless shifted."""
    chances = 1 / np.arange(1, ROWS + 1)
    ranks = np.random.default_rng(seed).choice(ROWS, count, p=chances / chances.sum())
    return (ranks + shift) % ROWS


@pytest.fixture(scope="module")
def masters(tmp_path_factory):
    """The same rows by key, strewn, and hottest first; keys are scattered, so that the hot ones do not stand side by side."""
    folder = tmp_path_factory.mktemp("masters")
    keys = np.random.default_rng(3).permutation(ROWS) * 1_000_003
    table = pa.table({"key": keys, "text": [f"{key:0>80}" for key in keys], "asked": np.arange(ROWS, 0, -1)})
    opened = {
        layout: ss.build_master(
            folder / layout, table, key="key", layout=layout, frequency="asked" if layout == "frequency" else None
        )
        for layout in ("key", "heap", "frequency")
    }
    yield opened, keys
    for master in opened.values():
        master.close()


def run(masters, algorithm, ranks, layout="key", memory=MEMORY, batch=2000, rest=None):
    """Join keys of these ranks; the report, and how many rows came."""
    opened, keys = masters
    join = ss.Join(opened[layout], on="key", algorithm=algorithm, memory=memory, how="left")
    items = []
    for start in range(0, ranks.size, batch):
        items.append(pa.record_batch({"key": keys[ranks[start : start + batch]]}))
        items += [None] * (rest or 0)
    rows = sum(out.num_rows for out in join(iter(items)))
    assert rows == ranks.size
    return join.report()


@pytest.mark.compiled
@pytest.mark.parametrize("algorithm", ["cachejoin", "sscj"])
@pytest.mark.parametrize("layout", ["key", "heap"])
def test_a_cache_of_hot_rows_saves_loads(algorithm, layout, masters):
    ranks = skewed(60_000)
    assert run(masters, algorithm, ranks, layout)["loads"] < 0.75 * run(masters, "hybridjoin", ranks, layout)["loads"]


@pytest.mark.compiled
def test_a_cache_in_front_of_a_scan_saves_loads(masters):
    ranks = skewed(60_000)
    assert run(masters, "cmeshjoin", ranks)["loads"] < 0.75 * run(masters, "meshjoin", ranks)["loads"]


@pytest.mark.compiled
def test_a_scan_collects_keys_whose_rows_lie_strewn(masters, tmp_path):
    _, keys = masters
    twice = pa.table({"key": np.concatenate([keys, keys[::-1]]), "text": [f"{n:0>80}" for n in range(2 * ROWS)]})
    with ss.build_master(tmp_path / "twice", twice, key="key", layout="heap") as master:
        loads, ranks = {}, skewed(120_000)
        for algorithm in ("meshjoin", "cmeshjoin"):
            join = ss.Join(master, on="key", algorithm=algorithm, memory=2 * MEMORY)
            items = [
                pa.record_batch({"key": keys[ranks[start : start + 2000]]}) for start in range(0, ranks.size, 2000)
            ]
            assert sum(batch.num_rows for batch in join(items)) == 2 * ranks.size
            loads[algorithm] = join.report()["loads"]
    assert loads["cmeshjoin"] < 0.85 * loads["meshjoin"]


@pytest.mark.compiled
@pytest.mark.parametrize("algorithm", ["cachejoin", "sscj", "cmeshjoin"])
def test_a_cache_follows_what_is_hot(algorithm, masters):
    ranks = np.concatenate([skewed(40_000, seed=1), skewed(40_000, seed=2, shift=ROWS // 2)])
    plain = "meshjoin" if algorithm == "cmeshjoin" else "hybridjoin"
    assert run(masters, algorithm, ranks)["loads"] < 0.9 * run(masters, plain, ranks)["loads"]


@pytest.mark.parametrize("algorithm", ["cachejoin", "sscj"])
def test_a_key_that_the_master_lacks_costs_one_load_and_not_one_a_time(algorithm, masters):
    opened, _ = masters
    items = [pa.record_batch({"key": [7, 7, 7]}), None, None] * 20
    loads = {}
    for name in ("hybridjoin", algorithm):
        join = ss.Join(opened["heap"], on="key", algorithm=name, memory=MEMORY, how="left")
        assert sum(batch.num_rows for batch in join(iter(items))) == 60
        loads[name] = join.report()["steps"]
    assert loads == {"hybridjoin": 20, algorithm: 1}


@pytest.mark.parametrize("algorithm", ["cachejoin_l", "cachejoin_pq", "cachejoin_lwf"])
def test_whatever_chooses_the_page_keys_that_the_master_lacks_answer_at_once_the_second_time(algorithm, masters):
    opened, _ = masters
    items = [pa.record_batch({"key": [7, 7, 7, 8, 8]}), None, None] * 20
    join = ss.Join(opened["key"], on="key", algorithm=algorithm, memory=MEMORY, how="left")
    assert sum(batch.num_rows for batch in join(iter(items))) == 100
    assert join.report()["steps"] <= 2


@pytest.mark.compiled
@pytest.mark.parametrize("choice", ["_l", "_pq", "_lwf"])
def test_every_choice_of_pages_saves_loads_behind_a_cache(choice, masters):
    ranks = skewed(60_000)
    assert (
        run(masters, f"cachejoin{choice}", ranks)["loads"] < 0.8 * run(masters, f"hybridjoin{choice}", ranks)["loads"]
    )


@pytest.mark.parametrize("layout", ["key", "heap", "sqlite"])
def test_one_request_answers_a_batch_and_what_it_brings_answers_the_next_ones(layout, masters, tmp_path):
    opened, keys = masters
    table = pa.table({"key": [1, 2, 3], "text": ["a", "b", "c"]})
    master = ss.open_master(sqlite_master(tmp_path / "m.db", table, ["key"])) if layout == "sqlite" else opened[layout]
    asked = [1, 2, 3] if layout == "sqlite" else keys[:3].tolist()
    items = [pa.record_batch({"key": [*asked, 7] * 20}), None] * 10
    with contextlib.closing(master) if layout == "sqlite" else contextlib.nullcontext():
        join = ss.Join(master, on="key", algorithm="derakhshan", memory=MEMORY, how="left")
        came = [key for batch in join(iter(items)) for key in batch["key"].to_pylist()]
    assert came == [*asked, 7] * 200, "in the order of the stream"
    assert join.report()["steps"] == 1


@pytest.mark.compiled
def test_first_rows_answer_at_once_and_only_the_start_reads_them(masters):
    opened, keys = masters
    join = ss.Join(opened["frequency"], on="key", algorithm="optimised_x_hybridjoin", memory=2 * MEMORY)
    output = join([pa.record_batch({"key": keys[np.arange(500) % 300]})] * 3)
    assert sum(batch.num_rows for batch in output) == 1500
    assert join.report()["steps"] == 0
    assert join.report()["wait_tuples_max"] == 0


@pytest.mark.compiled
@pytest.mark.parametrize("algorithm", ["x_hybridjoin", "optimised_x_hybridjoin"])
def test_a_master_sorted_by_frequency_is_what_pinning_is_for(algorithm, masters):
    ranks = skewed(60_000)
    plain = run(masters, "hybridjoin", ranks, "frequency")["loads"]
    assert run(masters, algorithm, ranks, "frequency")["loads"] < 0.9 * plain


@pytest.mark.compiled
def test_pages_that_became_hot_are_pinned_instead(masters):
    opened, keys = masters
    hot = np.argsort(keys)[ROWS // 2 : ROWS // 2 + 200]  # neighbours in a master by key
    ranks = np.where(RANDOM.random(100_000) < 0.7, RANDOM.choice(hot, 100_000), RANDOM.integers(0, ROWS, 100_000))
    join = ss.Join(opened["key"], on="key", algorithm="x_hybridjoin", memory=MEMORY, how="left_semi")
    pinned = []

    def stream():
        for start in range(0, ranks.size, 1000):
            yield pa.record_batch({"key": keys[ranks[start : start + 1000]]})
            recipe = join._run._shop.recipe
            pages = range(*recipe._pinned.partition(recipe._place, recipe._place + 1))
            pinned.append(int(recipe._reader.order.first_words.searchsorted(keys[hot[100]], "right")) - 1 in pages)

    assert sum(batch.num_rows for batch in join(stream())) == ranks.size
    assert not pinned[0]
    assert pinned[-1], "nobody asks for the first pages, and they stayed pinned"
