"""The contract of `overload`: what finds no room is dropped and counted, and everybody else is answered as ever."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import semistream as ss
from semistream.errors import UsageError
from tests.cases import cut, master_table, stream_table
from tests.contract.harness import ALGORITHMS, PAIRS, as_sqlite_keeps, in_smallest, opened_master, run
from tests.contract.small_cases import plain_case
from tests.reference import same_multiset

every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)
every_pair = pytest.mark.parametrize(("algorithm", "kind"), PAIRS)
MEMORY = 1 << 17
SCANS = [name for name, record in ALGORITHMS.items() if "iterations" in record.capabilities["bound"]]


def flood(**options):
    """Far more tuples at once than can wait, of different keys and with some that have none, then a trickle."""
    case = plain_case(1, 1, [], 3000)
    keys = pa.array([None if number % 50 == 7 else number * 7919 % 3500 for number in range(4000)], pa.int64())
    stream = stream_table({"key0": keys}, ["string"])
    return replace(case, stream=stream, items=cut(stream, [3, 1500, None, 1500, 0, 900, 5]), options=options)


def shedding(master, case, algorithm):
    """The run of a join that sheds, in little memory, and what it has shed."""
    return in_smallest(MEMORY, lambda memory: _shedding(master, case, algorithm, memory))[0]


def _shedding(master, case, algorithm, memory):
    shed = []
    join = ss.Join(master, on="key0", algorithm=algorithm, memory=memory, overload=shed.append, **case.join_options())
    identities = []

    def watched():
        for item in case.items:
            yield item
            report = join.report()
            identities.append((report["tuples_in"], report["finished"] + report["waiting"] + report["shed"]))

    batches = list(join(watched()))
    assert all(came == accounted for came, accounted in identities)
    return batches, pa.Table.from_batches(shed, case.stream.schema), join.report()


@pytest.mark.compiled
@every_pair
def test_what_finds_no_room_is_shed_and_counted_and_nothing_else_is_lost(kind, algorithm):
    case = flood(how="left")
    case = as_sqlite_keeps(case) if kind == "sqlite" else case
    with opened_master(kind, case.master, case.master_key) as master:
        batches, shed, report = shedding(master, case, algorithm)
    gone = set(shed["s_row"].to_pylist())
    assert len(gone) == shed.num_rows == report["shed"] < case.stream.num_rows
    assert gone or algorithm not in SCANS  # others may be quick enough: a step serves everybody who waits
    kept = [row not in gone for row in case.stream["s_row"].to_pylist()]
    same_multiset(batches, replace(case, stream=case.stream.filter(pa.array(kept))).expected())
    assert case.stream.filter(pa.array([not one for one in kept])).equals(shed.sort_by("s_row").combine_chunks())
    assert report["tuples_in"] == case.stream.num_rows
    assert report["matched"] + report["unmatched"] + report["shed"] == case.stream.num_rows
    assert report["finished"] + report["shed"] == case.stream.num_rows
    assert report["rows_out"] == sum(batch.num_rows for batch in batches)


@pytest.mark.compiled
@every_algorithm
@pytest.mark.parametrize("how", ["inner", "left_anti"])
def test_a_tuple_that_was_shed_gives_no_row_and_order_is_kept(how, algorithm):
    case = flood(how=how, ordered=True)
    with opened_master("key", case.master, case.master_key) as master:
        batches, shed, report = shedding(master, case, algorithm)
    gone = set(shed["s_row"].to_pylist())
    assert len(gone) == report["shed"]
    assert gone or algorithm not in SCANS
    kept = pa.array([row not in gone for row in case.stream["s_row"].to_pylist()])
    same_multiset(batches, replace(case, stream=case.stream.filter(kept)).expected())
    order = [row for batch in batches for row in batch["s_row"].to_pylist()]
    assert order == sorted(order)


@every_algorithm
def test_who_finds_room_is_never_shed(algorithm):
    case = plain_case(60, 90, [20, None, 3], 300, how="left")
    with opened_master("key", case.master, case.master_key) as master:
        join = ss.Join(master, on="key0", algorithm=algorithm, memory=1 << 22, how="left", overload="shed")
        same_multiset(run(join, case.stream.schema, case.items).batches, case.expected())
    assert join.report()["shed"] == 0


@pytest.mark.compiled
@every_algorithm
def test_a_join_that_sheds_is_saved_and_goes_on(algorithm):
    case = flood(how="left")
    with opened_master("key", case.master, case.master_key) as master:
        shed, states, batches = [], [], []
        memory = in_smallest(MEMORY, lambda memory: ss.Join(master, "key0", algorithm, memory))[1] + 8192
        options = {"on": "key0", "algorithm": algorithm, "memory": memory, "how": "left", "overload": shed.append}
        join = ss.Join(master, **options)

        def saving():
            for number, item in enumerate(case.items):
                if number == 4:
                    states.extend([len(batches), sum(batch.num_rows for batch in shed), join.save()])
                yield item

        for batch in join(saving()):
            batches += [batch]
        whole = [row for batch in shed for row in batch["s_row"].to_pylist()]
        shed.clear()
        again = ss.Join(master, **options)
        rest = list(again(case.items[4:], resume=states[2]))
    assert [row for batch in shed for row in batch["s_row"].to_pylist()] == whole[states[1] :]
    assert sum(batch.num_rows for batch in rest) == sum(batch.num_rows for batch in batches[states[0] :])
    assert again.report()["shed"] == join.report()["shed"] == len(whole)


@pytest.mark.parametrize("wrong", ["drop", None, 1, True])
def test_another_word_is_refused(wrong):
    case = plain_case(1, 1, [], 5)
    with opened_master("key", case.master, case.master_key) as master, pytest.raises(UsageError, match="need 'block'"):
        ss.Join(master, on="key0", overload=wrong)


@every_algorithm
@pytest.mark.parametrize("ordered", [False, True])
def test_a_row_too_wide_to_wait_is_answered_or_shed_and_never_both(algorithm, ordered):
    """One row in a hundred has as much text as all the others have room for."""
    texts = ["wide " * 8000 if number % 100 == 7 else "narrow" for number in range(2000)]
    stream = stream_table({"key0": pa.array([number * 7 % 3000 for number in range(2000)], pa.int64())})
    stream = stream.append_column("text", pa.array(texts))
    table = master_table({"key0": pa.array(range(3000), pa.int64())}, ["string"])
    dropped, answered = [], []
    with opened_master("key", table, ["key0"]) as master:
        options = {"how": "left", "ordered": ordered, "overload": dropped.append}
        join = ss.Join(master, on="key0", algorithm=algorithm, memory=1 << 20, **options)
        for batch in join(iter(stream.to_batches(max_chunksize=400))):
            answered += batch["s_row"].to_pylist()
    shed = [row for batch in dropped for row in batch["s_row"].to_pylist()]
    assert sorted(answered + shed) == list(range(2000))
    report = join.report()
    assert (report["finished"], report["shed"]) == (len(answered), len(shed))
