"""A small run of `bench core`: every figure has a row, every answer is checked, nothing is printed but one object."""

from __future__ import annotations

import io
import json

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from semistream.bench import run_core
from semistream.bench.cases import Case, preset_named
from semistream.bench.checksum import Checksum
from semistream.bench.data import Answers, Dataset, join_task
from semistream.bench.join_run import measure_join
from semistream.bench.launch import run_task
from semistream.bench.startup import measure_imports
from semistream.bench.table import show_core
from semistream.errors import UsageError

SMOKE = preset_named("smoke")
CASES = ["fixed-zipf1-buffered", "fixed-zipf1-direct"]
SYSTEMS = ["hybridjoin", "duckdb", "polars", "build_master", "duckdb_sort_parquet"]
FIELDS = {
    *(
        "system",
        "case",
        "rows",
        "rows_per_s",
        "ci95",
        "memory_budget_bytes",
        "peak_growth_bytes",
        "pages_read",
        "bytes_read",
    ),
    *("checksum", "versions", "git_id", "machine", "seed", "error"),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tmp_path_factory.mktemp("bench")


@pytest.fixture(scope="module")
def progress():
    return []


@pytest.fixture(scope="module")
def results(data, progress):
    return run_core(
        "smoke", json=False, systems=SYSTEMS, cases=CASES, progress=lambda *told: progress.append(told), data=data
    )


@pytest.fixture
def task(data):
    return join_task(data, SMOKE, Case.parse("retail-zipf1-buffered"), "hybridjoin")


def of(results, system, case=CASES[0]):
    return next(row for row in results["rows"] if (row["system"], row["case"]) == (system, case))


def test_every_system_has_a_row_for_every_case_and_no_row_comes_twice(results):
    found = [(row["system"], row["case"]) for row in results["rows"]]
    joins = [(system, case) for case in CASES for system in SYSTEMS[:3]]
    assert found == joins + [(system, "fixed-build") for system in SYSTEMS[3:]]


def test_every_row_has_every_field_and_no_error(results):
    assert [row["error"] for row in results["rows"]] == [None] * len(results["rows"])
    assert all(set(row) >= FIELDS for row in results["rows"])


def test_all_systems_give_the_same_answer(results):
    assert len({row["checksum"] for row in results["rows"] if row["case"] in CASES}) == 1
    assert len({row["checksum"] for row in results["rows"] if row["case"] == "fixed-build"}) == 1


def test_a_rate_lies_within_its_interval(results):
    for row in results["rows"]:
        if row["ci95"]:
            assert row["ci95"][0] <= row["rows_per_s"] <= row["ci95"][1]


def test_our_row_tells_what_was_read_and_how_memory_grew(results):
    row = of(results, "hybridjoin")
    assert row["memory_budget_bytes"] == SMOKE.memory_bytes
    assert row["pages_read"] > 0
    assert row["bytes_read"] == row["pages_read"] * 8192
    assert row["threads"] == 1
    assert row["memory_ok"] in (True, None)


def test_reading_past_the_page_cache_is_what_the_device_counts(results):
    row = of(results, "hybridjoin", CASES[1])
    if row["device_bytes"]:  # a file system in memory has no device
        assert 0 <= row["device_bytes"] - row["bytes_read"] < 1 << 20


def test_a_rival_is_measured_once_for_all_cases_alike(results):
    first, second = (of(results, "duckdb", case) for case in CASES)
    assert second["measured_in"] == CASES[0]
    assert second["rows_per_s"] == first["rows_per_s"]
    assert first["way"] in ("query-per-batch", "one-query")
    assert first["best_batch_rows_per_s"] > 0


def test_progress_goes_from_nothing_to_all(results, progress):
    assert results["rows"]
    assert [done for done, _, _ in progress] == list(range(len(progress)))
    assert progress[-1][0] == progress[-1][1]


def test_machines_get_exactly_one_object(data, capsys):
    found = run_core("smoke", json=True, systems=["duckdb_sort_parquet"], cases=CASES[:1], data=data)
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(found))


def test_people_get_tables_that_show_ratios_and_losses(results):
    console = Console(width=140, file=io.StringIO())
    row = of(results, "hybridjoin")
    best = max(of(results, name)["rows_per_s"] for name in ("duckdb", "polars"))
    failed = row | {"case": "fixed-zipf0-buffered", "rows_per_s": None, "ci95": None, "error": "wrong answer"}
    start = {"system": "startup", "case": "import", "seconds": 0.25, "limit_s": 0.5, "error": None}
    show_core({"rows": [*results["rows"], failed, start]}, console)
    text = console.file.getvalue()
    assert f"{row['rows_per_s'] / best:.2f}" in text
    assert "wrong answer" in text
    assert "0.25" in text
    assert "duckdb_sort_parquet" in text


def test_unknown_systems_and_cases_are_refused_by_name(data):
    with pytest.raises(UsageError, match=r"'oracle'.*hybridjoin.*duckdb"):
        run_core("smoke", systems=["oracle"], data=data)
    with pytest.raises(UsageError, match="'slow'"):
        run_core("smoke", cases=["slow"], data=data)


def test_rows_of_text_and_decimals_are_joined_and_checked_too(task):
    found = measure_join(task | {"timed_s": 0.0})
    assert found.get("error") is None
    assert found["checksum"].startswith("20000:")


def test_a_wrong_checksum_voids_the_time(task, tmp_path):
    answers = Answers.load(task["answers"])
    right = answers.batches[0]
    answers.batches[0] = Checksum(right.rows, right.total ^ 1)
    answers.save(tmp_path / "answers.json")
    found = measure_join(task | {"answers": str(tmp_path / "answers.json"), "timed_s": 0.0})
    assert "wrong answer" in found["error"]
    assert found["rows_per_s"] is found["ci95"] is None


def test_a_wrong_number_of_rows_in_the_timed_pass_voids_the_time(task, tmp_path):
    answers = Answers.load(task["answers"])
    answers.batches[0] = Checksum(answers.batches[0].rows - 1, 0)
    answers.save(tmp_path / "answers.json")
    with pytest.raises(RuntimeError, match="rows in the timed pass"):
        measure_join(task | {"answers": str(tmp_path / "answers.json"), "timed_s": 0.0})


def test_a_join_that_cannot_be_made_is_a_result_with_an_error(task):
    found = run_task(task | {"memory_bytes": 1000}, threads=1, timeout_s=60)
    assert "BudgetError" in found["error"]


def test_tables_are_made_once_and_in_random_order_of_keys(data, task):
    dataset = Dataset(data, "retail", SMOKE.master_rows)
    before = dataset.rows.stat().st_mtime_ns
    keys = pq.read_table(dataset.rows, columns=["product_id"]).column(0).to_pylist()
    assert sorted(keys) == list(range(1, SMOKE.master_rows + 1)) != keys
    assert join_task(data, SMOKE, Case.parse("retail-zipf1-direct"), "hybridjoin")["stream"] == task["stream"]
    assert dataset.rows.stat().st_mtime_ns == before
    assert not list(data.rglob("*partial*"))


def test_a_budget_of_twice_the_master_is_that(data):
    twice = join_task(data, SMOKE, Case.parse("fixed-zipf1-buffered-2r"), "hybridjoin")
    assert twice["memory_bytes"] == 2 * 120 * SMOKE.master_rows


def test_importing_is_timed_with_and_without_what_is_loaded_later():
    bare, used = measure_imports(runs=1)
    assert (bare["case"], used["case"]) == ("import", "import-all")
    assert 0 < bare["seconds"] < used["seconds"]
    assert bare["error"] is used["error"] is None
