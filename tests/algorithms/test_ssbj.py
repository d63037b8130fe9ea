"""SSBJ's cache: whole keys at every moment, the ones that the inequality favours, and what they save. Both disk stages."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import semistream as ss
from semistream import algorithms
from semistream.algorithms import ssbj
from semistream.parts.hot_cache import ROWS
from tests.reference import reference_join, same_multiset

KEYS, MEMORY = 4_000, 1 << 18
STAGES = {
    "scan": ssbj.ALGORITHM,
    "index": replace(
        ssbj.ALGORITHM,
        build=lambda parts: ssbj.Ssbj(parts, ssbj.Indexed),
        shares=ssbj.index_shares,
        needs_index=True,
        presets=("tuned",),
    ),
}
every_stage = pytest.mark.parametrize("stage", STAGES)
every_layout = pytest.mark.parametrize("layout", ["key", "heap"])


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Every third key of the domain is absent, the others have 1, 2 or 3 rows, side by side or strewn."""
    keys = [key for key in range(KEYS) for _ in range(key % 3 + 1) if key % 3 != 2]
    keys = np.random.default_rng(3).permutation(keys)
    table = pa.table({"key": keys, "text": [f"{number:0>60}" for number in range(keys.size)]})
    folder = tmp_path_factory.mktemp("masters")
    opened = {layout: ss.build_master(folder / layout, table, key="key", layout=layout) for layout in ("key", "heap")}
    yield table, opened
    for master in opened.values():
        master.close()


def skewed(count, seed=1, shift=0):
    """Keys by Zipf's law, present and absent ones alike."""
    chances = 1 / np.arange(1, KEYS + 1)
    ranks = np.random.default_rng(seed).choice(KEYS, count, p=chances / chances.sum())
    return (ranks * 7 + shift) % KEYS


def joined(master, stage, **options):
    """A join with this disk stage."""
    algorithms.TABLE["staged"] = replace(STAGES[stage], name="staged")
    try:
        return ss.Join(master, on="key", algorithm="staged", **{"memory": MEMORY, "how": "left"} | options)
    finally:
        del algorithms.TABLE["staged"]


def followed(join, keys, batch=500):
    """Run the join over these keys; the recipe is looked at before every batch. Gives what came out, and what was seen."""
    came, seen = [], []

    def stream():
        for start in range(0, keys.size, batch):
            part = keys[start : start + batch]
            yield pa.record_batch({"key": part, "s_row": np.arange(start, start + part.size)})
            seen.append(kept_in(join._run._shop.recipe))

    came += join(stream())
    return came, seen


def kept_in(recipe):
    """Rows of every key that answers, and the price."""
    kept = recipe.front.kept
    records = np.flatnonzero(kept.records[:, ROWS] >= 0)
    words, rows = kept.record_word[records].tolist(), kept.records[records, ROWS].tolist()
    return dict(zip(words, rows, strict=True)), max(recipe.balance.prices)


@every_stage
@every_layout
def test_every_key_that_answers_is_whole_at_every_moment(stage, layout, tables):
    table, opened = tables
    keys = np.concatenate([skewed(6_000), skewed(6_000, seed=2, shift=KEYS // 2)])
    came, seen = followed(joined(opened[layout], stage), keys)
    rows = Counter(table["key"].to_pylist())
    assert all(kept == {key: rows[key] for key in kept} for kept, _ in seen)
    assert max(len(kept) for kept, _ in seen) > 100
    assert any(rows[key] == 0 for kept, _ in seen for key in kept), "absent keys are kept, too"
    assert any(rows[key] == 2 for kept, _ in seen for key in kept)
    stream = pa.table({"key": keys, "s_row": np.arange(keys.size)})
    same_multiset(came, reference_join(stream, table, "key", how="left"))


@pytest.mark.compiled
@pytest.mark.parametrize(("stage", "plain"), [("scan", "meshjoin"), ("scan", "cmeshjoin"), ("index", "hybridjoin")])
def test_the_cache_saves_loads(stage, plain, tables):
    _, opened = tables
    batches, memory = pa.table({"key": skewed(60_000)}).to_batches(max_chunksize=1000), 1 << 19
    balanced = joined(opened["heap"], stage, memory=memory)
    alone = ss.Join(opened["heap"], on="key", algorithm=plain, memory=memory, how="left")
    assert sum(batch.num_rows for batch in balanced(batches)) == sum(batch.num_rows for batch in alone(batches))
    assert balanced.report()["loads"] < 0.85 * alone.report()["loads"]


@pytest.mark.compiled
@every_stage
def test_keys_that_are_asked_for_no_more_go(stage, tables):
    _, opened = tables
    keys = np.concatenate([skewed(30_000), skewed(250_000, seed=2, shift=1001)])
    _, seen = followed(joined(opened["key"], stage, memory=1 << (17 if stage == "index" else 18)), keys, batch=1000)
    hot_once = {rank * 7 % KEYS for rank in range(100)} - {(rank * 7 + 1001) % KEYS for rank in range(1000)}
    before, after = (len(hot_once & kept.keys()) for kept, _ in (seen[30], seen[-1]))
    assert before > 30
    assert after < before / 5


@pytest.mark.compiled
def test_the_inequality_holds_for_nearly_all_that_is_kept(tables):
    table, opened = tables
    rows, keys = Counter(table["key"].to_pylist()), skewed(60_000)
    join = joined(opened["heap"], "scan", memory=1 << 20)
    judged = []

    def stream():
        for start in range(0, keys.size, 1000):
            yield pa.record_batch({"key": keys[start : start + 1000]})
        recipe = join._run._shop.recipe
        kept, _ = kept_in(recipe)
        scan = recipe._stage._switching
        asked = Counter(keys[20_000:].tolist())
        misses = sum(count for key, count in asked.items() if key not in kept)
        cycle = (
            recipe.area.slots * len(keys[20_000:]) / misses
        )  # stream tuples that pass while a table full of misses does
        waiting, row, word = recipe.balance.costs[:3]
        judged.append(scan._begun.size)
        judged.append([rows[key] * row + word < 1.5 * waiting * asked[key] * cycle / 40_000 for key in kept])

    list(join(stream()))
    partitions, right = judged
    assert partitions > 5
    assert len(right) > 300
    assert np.mean(right) > 0.9


@pytest.mark.compiled
def test_a_cache_that_is_too_small_has_its_price(tables):
    """Five hundred keys, all equally hot, and room for half of their rows, or for all."""
    _, opened = tables
    keys = np.random.default_rng(1).integers(0, 500, 30_000)
    for memory, dear in ((1 << 18, True), (1 << 19, False)):
        _, seen = followed(joined(opened["heap"], "scan", memory=memory, how="left_semi"), keys)
        assert (max(price for _, price in seen) > 1.0) == dear


@every_stage
def test_a_key_with_too_many_rows_takes_no_room(stage, tmp_path):
    keys = [5] * 110 + list(range(10, 400))
    table = pa.table({"key": np.random.default_rng(1).permutation(keys), "text": [f"{n:0>60}" for n in range(500)]})
    with ss.build_master(tmp_path / "m", table, key="key", layout="heap") as master:
        asked = np.array([5, *range(11, 41), 11, 11] * 120)
        came, seen = followed(joined(master, stage, memory=1 << 17), asked, batch=40)
    stream = pa.table({"key": asked, "s_row": np.arange(asked.size)})
    same_multiset(came, reference_join(stream, table, "key", how="left"))
    assert all(5 not in kept for kept, _ in seen)
    assert 11 in seen[-1][0]


def test_too_early_by_one_read_is_noticed(tables, monkeypatch):
    """A key that is finished before its last partition came by is not whole; the tests above would say so."""
    start = ssbj.Switching.__init__

    def hasty(self, *given):
        start(self, *given)
        self._begun = np.zeros(self._begun.size - 1, np.int64)

    monkeypatch.setattr(ssbj.Switching, "__init__", hasty)
    with pytest.raises(AssertionError):
        test_every_key_that_answers_is_whole_at_every_moment("scan", "heap", tables)
