"""Explanations: sizes are those of the real joins, goals are met by what is said, a run stands beside its prediction, bad questions."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

import semistream as ss
from semistream.machine import machine
from semistream.models import EXAMPLE
from semistream.tuning.calibration import Calibration

ROWS, MEMORY = 60_000, 2 << 20
COSTS = Calibration(machine(), ss.__version__, "buffered", "2026-01-31T12:00:00+00:00", 14.2, EXAMPLE)
ALL = [one.name for one in ss.algorithms()]


@pytest.fixture(scope="module")
def master(tmp_path_factory):
    numbers = np.arange(ROWS, dtype=np.int64)
    table = pa.table({"id": numbers * 7} | {f"m{place}": numbers for place in range(8)})
    with ss.build_master(tmp_path_factory.mktemp("explain") / "m.master", table, key="id") as opened:
        yield opened


def stream_of(count, exponent=1.0, seed=1):
    chance = 1 / np.arange(1, ROWS + 1) ** exponent
    random = np.random.default_rng(seed)
    ranks = random.choice(ROWS, count, p=chance / chance.sum())
    return pa.record_batch({"id": np.random.default_rng(0).permutation(ROWS)[ranks] * 7, "order": np.arange(count)})


def explained(master, *stream, **question):
    return ss.explain(master, *stream, calibration=COSTS, **question)


@pytest.mark.compiled
@pytest.mark.parametrize(
    "algorithm", ["meshjoin", "r_meshjoin", "hybridjoin", "x_hybridjoin", "cachejoin", "sscj", "ssbj", "hybridjoin_lwf"]
)
def test_slots_and_bytes_are_those_that_the_join_gets(algorithm, master):
    sample = stream_of(5000)
    (line,) = explained(master, sample, memory=MEMORY, algorithms=[algorithm]).lines
    join = ss.Join(master, on="id", algorithm=algorithm, memory=MEMORY)
    for out in join([sample]):
        del out
    report = join.report()
    assert line.slots == pytest.approx(report["stream_slots"], abs=1)
    assert sum(line.bytes_by_part.values()) == pytest.approx(MEMORY, rel=0.01)


@pytest.mark.compiled
def test_a_run_stands_beside_its_prediction(master):
    join = ss.Join(master, on="id", algorithm="hybridjoin", memory=MEMORY)
    stream = stream_of(600_000)
    for out in join(stream.slice(start, 4096) for start in range(0, stream.num_rows, 4096)):
        del out
    found = explained(master, stream.slice(0, 100_000), memory=MEMORY, report=join.report())
    deviations = {one.what: one.deviation for one in found.compared}
    assert abs(deviations["slots"]) < 0.001
    assert abs(deviations["tuples a load"]) < 0.1  # the beginning and the end of the run are in it
    assert abs(deviations["pages a tuple"]) < 0.1
    assert "deviation" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["measured"][0]["what"] == "tuples a load"


def test_every_algorithm_is_ranked_the_fastest_first(master):
    found = explained(master, exponent=1.0, memory=MEMORY)
    assert sorted(line.algorithm for line in found.lines) == sorted(ALL)
    rates = [line.rate for line in found.lines]
    assert rates == sorted(rates, reverse=True)
    assert all(line.twice_memory_rate >= 0.99 * line.rate for line in found.lines)
    assert found.lines[0].algorithm in str(found).splitlines()[1]


def test_a_sample_and_its_exponent_say_nearly_the_same(master):
    names = ["hybridjoin", "sscj", "hybridjoin_lwf", "meshjoin"]
    sampled = {
        one.algorithm: one for one in explained(master, stream_of(200_000), memory=MEMORY, algorithms=names).lines
    }
    for line in explained(master, exponent=1.0, memory=MEMORY, algorithms=names).lines:
        assert sampled[line.algorithm].hits + sampled[line.algorithm].misses == pytest.approx(
            line.hits + line.misses, rel=0.15
        )


def test_the_memory_for_a_rate_carries_it_and_not_much_less_does(master):
    names = ["hybridjoin", "sscj", "meshjoin"]
    for line in explained(master, exponent=1.0, rate=60_000, algorithms=names).lines:
        assert line.rate >= 60_000
        (less,) = explained(
            master, exponent=1.0, memory=int(line.memory_bytes * 0.9), algorithms=[line.algorithm]
        ).lines
        assert less.rate < 60_000


def test_what_cannot_join_this_master_is_left_out_with_its_reason(master, tmp_path):
    with ss.build_master(tmp_path / "heap", pa.table({"id": [3, 1, 2]}), key="id", layout="heap") as heap:
        found = explained(heap, exponent=1.0, memory=MEMORY)
    assert "do not stand in the order of their keys" in found.left_out["hybridjoin_lwf"]


def test_a_sample_of_one_key_is_legal(master):
    found = explained(master, pa.table({"id": [7] * 100}), memory=MEMORY, algorithms=["sscj", "hybridjoin"])
    assert found.lines[0].algorithm == "sscj"
    assert found.lines[0].hits / (found.lines[0].hits + found.lines[0].misses) > 0.99


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ({"memory": MEMORY}, "need a sample of the stream or exponent="),
        ({"exponent": 1.0}, "need memory= or rate=, one of them"),
        ({"exponent": 1.0, "memory": MEMORY, "rate": 1.0}, "need memory= or rate=, one of them"),
        ({"exponent": -1.0, "memory": MEMORY}, "exponent=-1.0: need a number from 0"),
        ({"exponent": 1.0, "memory": -5}, "memory=-5: need more than 0 bytes"),
        ({"exponent": 1.0, "rate": 0}, "rate=0: need tuples a second"),
        ({"exponent": 1.0, "rate": 1e12}, r"more than this machine can do here: not more than .* bound by '"),
        ({"exponent": 1.0, "memory": 1000}, "no algorithm can do this: .* is too small"),
        ({"exponent": 1.0, "memory": MEMORY, "algorithms": ["quickjoin"]}, "algorithm='quickjoin' is unknown"),
        ({"stream": pa.table({"id": pa.array([], pa.int64())}), "memory": MEMORY}, "the stream sample is empty"),
        ({"stream": pa.table({"x": [1]}), "memory": MEMORY}, "the stream sample has no key column 'id'; it has x"),
        ({"stream": pa.table({"id": ["a"]}), "memory": MEMORY}, "id"),
        ({"exponent": 1.0, "memory": MEMORY, "report": {"algorithm": "x"}}, "for which nothing is predicted here"),
    ],
)
def test_bad_questions_are_one_clear_error(question, told, master):
    with pytest.raises(ss.UsageError, match=told):
        explained(master, **question)


def test_costs_of_another_machine_are_not_used(master):
    foreign = Calibration("a-toaster", ss.__version__, "buffered", "", 1.0, EXAMPLE)
    with pytest.raises(ss.CalibrationError, match="was measured on machine 'a-toaster'"):
        ss.explain(master, exponent=1.0, memory=MEMORY, calibration=foreign)
