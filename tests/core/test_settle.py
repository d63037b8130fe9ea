"""Settling through small joins: what becomes of pairs and of leavers, and how output is cut into batches."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import semistream as ss
from semistream import keys
from tests.core.small import batches_of, built, enlarged, joined, rows_of, sorted_rows
from tests.core.values import VALUES, longer

HOWS = ("inner", "left", "left_semi", "left_anti")
every_algorithm = pytest.mark.parametrize("algorithm", [record.name for record in ss.algorithms()])
MASTER = {
    "id": pa.array([1, 1, 2, None, 5]),
    "colour": ["red", "green", "blue", "none", "grey"],
    "rank": [1, 2, 3, 4, 5],
}
STREAM = {"id": pa.array([1, 7, None, 2, 1]), "n": [0, 1, 2, 3, 4]}
ANSWERS = {
    "inner": [(1, 0, "green", 2), (1, 0, "red", 1), (1, 4, "green", 2), (1, 4, "red", 1), (2, 3, "blue", 3)],
    "left_semi": [(1, 0), (1, 4), (2, 3)],
    "left_anti": [(7, 1), (None, 2)],
}
ANSWERS["left"] = [*ANSWERS["inner"], (7, 1, None, None), (None, 2, None, None)]


@every_algorithm
@pytest.mark.parametrize("how", HOWS)
def test_every_join_type_gives_its_rows(how, algorithm):
    with built(MASTER) as master:
        join, found = joined(master, batches_of(STREAM), how=how, algorithm=algorithm)
    assert sorted_rows(found) == sorted(ANSWERS[how], key=repr)
    report = join.report()
    assert (report["matched"], report["unmatched"], report["rows_out"]) == (3, 2, len(ANSWERS[how]))


@every_algorithm
@pytest.mark.parametrize("how", HOWS)
def test_the_match_column_says_who_found_a_row(how, algorithm):
    with built(MASTER) as master:
        _, found = joined(master, batches_of(STREAM), how=how, match_column="found", algorithm=algorithm)
    for row in rows_of(found):
        assert row["found"] == (row["n"] in (0, 3, 4))


@every_algorithm
@pytest.mark.parametrize("how", HOWS)
def test_null_keys_meet_only_when_they_may(how, algorithm):
    """A null key of the stream meets the master's one null key, and no key that has the same word."""
    stream = {"id": pa.array([None, keys.NULL_WORD]), "n": [0, 1]}
    with built(MASTER) as master:
        _, found = joined(master, batches_of(stream), how=how, null_safe=True, columns=["rank"], algorithm=algorithm)
    expected = {"inner": [(None, 0, 4)], "left": [(None, 0, 4), (keys.NULL_WORD, 1, None)], "left_semi": [(None, 0)]}
    assert sorted_rows(found) == sorted(expected.get(how, [(keys.NULL_WORD, 1)]), key=repr)


@pytest.mark.parametrize("how", HOWS)
def test_a_filter_makes_master_rows_disappear_before_anybody_matches(how):
    with built(MASTER) as master:
        join, found = joined(master, batches_of(STREAM), how=how, where=pc.field("rank") == 2, columns=["colour"])
    expected = {
        "inner": [(1, 0, "green"), (1, 4, "green")],
        "left_semi": [(1, 0), (1, 4)],
        "left_anti": [(2, 3), (7, 1), (None, 2)],
    }
    expected["left"] = [*expected["inner"], (2, 3, None), (7, 1, None), (None, 2, None)]
    assert sorted_rows(found) == sorted(expected[how], key=repr)
    assert join.report()["matched"] == 2


@pytest.mark.parametrize(
    ("where", "numbers"),
    [
        (pc.field("id") == 1, [0, 4]),
        (pc.field("id") > 1, [3]),
        (pc.field("id").is_null(), [2]),
        ((pc.field("id") == 2) | (pc.field("colour") == "red"), [0, 3, 4]),
        (pc.scalar(value=True), [0, 2, 3, 4]),
        (pc.scalar(None).cast(pa.bool_()), []),
    ],
)
def test_a_filter_may_read_the_key_even_where_only_its_word_is_stored(where, numbers):
    with built(MASTER) as master:
        _, found = joined(master, batches_of(STREAM), where=where, how="left_semi", null_safe=True)
    assert sorted(row["n"] for row in rows_of(found)) == numbers


@every_algorithm
@pytest.mark.parametrize("how", HOWS)
def test_equal_words_of_different_keys_are_told_apart(how, algorithm, monkeypatch):
    monkeypatch.setattr(keys, "hash_bytes", lambda starts, data: (np.diff(starts) % 2).astype(np.int64))
    texts = ["", "a", "b", "aa", "bb", "abc", None]
    stream = {"id": pa.array([*texts, "zz", "a"]), "n": range(9)}
    with built({"id": pa.array(texts), "rank": range(7)}) as master:
        _join, found = joined(master, batches_of(stream), how=how, algorithm=algorithm)
    pairs = [(text, n, n) for n, text in enumerate(texts[:6])] + [("a", 8, 1)]
    lonely = [(None, 6), ("zz", 7)]
    expected = {"inner": pairs, "left_semi": [pair[:2] for pair in pairs], "left_anti": lonely}
    expected["left"] = pairs + [(*row, None) for row in lonely]
    assert sorted_rows(found) == sorted(expected[how], key=repr)


# ----------------------------------------------------------------------------------------------------- output batches


def test_output_comes_in_batches_that_fit_what_was_set_aside():
    stream = {"id": pa.array([1] * 3000), "n": range(3000), "t": ["x" * 200] * 3000}
    with built({"id": [1, 1, 1], "text": ["a" * 100, "b" * 100, "c"]}) as master:
        join, found = joined(master, batches_of(stream))
    assert sum(batch.num_rows for batch in found) == 9000
    assert max(batch.nbytes for batch in found) <= join.report()["bytes_by_part"]["output"]
    assert len({(row["n"], row["text"]) for row in rows_of(found)}) == 9000
    assert all(row["t"] == "x" * 200 for row in rows_of(found))


def test_rows_of_very_different_width_share_batches():
    widths = [0, 1, 30_000, 5, 20_000, 0, 0, 7, 30_000, 2] * 5
    stream = {"id": pa.array([n % 4 for n in range(50)]), "t": [str(n % 10) * width for n, width in enumerate(widths)]}
    with built({"id": [0, 1, 2], "text": ["a", "b" * 3000, ""]}) as master:
        _, found = joined(master, batches_of(stream), how="left", memory="2MB")
    texts = {0: "a", 1: "b" * 3000, 2: "", 3: None}
    expected = [(i, t, texts[i]) for i, t in zip(stream["id"].to_pylist(), stream["t"], strict=True)]
    assert sorted_rows(found) == sorted(expected, key=repr)


def test_a_row_too_wide_for_the_budget_leads_to_one_that_works_in_a_few_steps():
    stream = batches_of({"id": [1], "t": ["short"]}, {"id": [1], "t": ["x" * 3_000_000]})
    with built({"id": [1], "text": ["m"]}) as master:
        (_, found), memory = enlarged(lambda memory: joined(master, stream, memory=memory), 1 << 20)
    assert memory > 1 << 20
    assert {len(row["t"]) for row in rows_of(found)} == {5, 3_000_000}


def test_answers_for_null_keys_are_cut_into_batches_too():
    stream = {"id": pa.array([None] * 500, pa.int64()), "t": ["x" * 2000] * 500}
    with built({"id": [1], "text": ["m"]}) as master:
        join, found = joined(master, batches_of(stream), how="left")
    assert sum(batch.num_rows for batch in found) == 500
    assert max(batch.nbytes for batch in found) <= join.report()["bytes_by_part"]["output"]


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("kind", [pa.dictionary(pa.int8(), pa.string()), pa.run_end_encoded(pa.int16(), pa.string())])
def test_columns_with_small_indices_limit_the_rows_of_a_batch(kind, ordered):
    coded = pa.types.is_dictionary(kind)
    count, parts = (120, 3) if coded else (20_000, 3)
    values = [pa.array([f"{part}-{n % 120}" for n in range(count)]) for part in range(parts)]
    wrapped = [v.dictionary_encode().cast(kind) if coded else pc.run_end_encode(v, pa.int16()) for v in values]
    with built({"id": [1], "rank": [5]}) as master:
        stream = [pa.record_batch({"id": pa.array([1] * count), "c": column}) for column in wrapped]
        _, found = joined(master, stream, memory="16MB", ordered=ordered)
    assert sorted(row["c"] for row in rows_of(found)) == sorted(v for column in values for v in column.to_pylist())


@pytest.mark.parametrize("name", list(VALUES))
@pytest.mark.parametrize("ordered", [False, True])
def test_a_column_of_any_type_goes_through_on_both_sides(name, ordered):
    column = longer(name)
    count = len(column)
    ids = pa.array([None if n % 7 == 6 else n for n in range(count)])
    with built({"id": range(count), "m": column}) as master:
        stream = batches_of({"id": ids, "s": column}, cuts=(5, 5, 17))
        _, found = joined(master, stream, how="left", ordered=ordered)
    values = column.to_pylist()
    expected = [(i, v, None if i is None else v) for i, v in zip(ids.to_pylist(), values, strict=True)]
    assert repr(sorted_rows(found)) == repr(sorted(expected, key=repr)), "as text: NaN is NaN"
    if ordered:
        assert [row["id"] for row in rows_of(found)] == ids.to_pylist()
