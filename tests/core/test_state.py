"""Saved joins as bytes: what is refused, in which words, and that nothing is half applied."""

from __future__ import annotations

import gc

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import semistream as ss
from semistream import state
from semistream.errors import ColumnError, StateError, UsageError
from semistream.snapshot import Snapshot
from tests.cases import PAYLOADS, stream_table
from tests.core.small import built, rows_of
from tests.core.test_join import Clock, open_files
from tests.reference import plain_rows

MASTER = {"id": range(2000), "square": [n * n for n in range(2000)]}
OPTIONS = {"on": "id", "memory": "300kB", "how": "left"}


def stream():
    """Three batches, the last with keys that the master lacks."""
    for start in (0, 700, 1900):
        yield pa.record_batch({"id": pa.array(range(start, start + 200))})


def saved_after(items, join):
    """Rows until the join was saved behind so many items, and the state."""
    states, rows = [], []

    def stopped():
        for number, item in enumerate(stream()):
            if number == items:
                return
            yield item
        states.append(join.save())

    def saving():
        yield from stopped()
        if not states:
            states.append(join.save())
        states.append(len(rows))

    for batch in join(saving()):
        rows += batch.to_pylist()
    return rows[: states[1]], states[0]


def alike(some, others):
    """Whether these are the same rows; what is not a number is equal to itself here."""
    return sorted(map(repr, some)) == sorted(map(repr, others))


@pytest.fixture
def master():
    """A master that is there while a test runs."""
    with built(MASTER) as opened:
        yield opened


@pytest.fixture
def saved(master):
    """A state after two batches of three."""
    return saved_after(2, ss.Join(master, **OPTIONS))[1]


# -------------------------------------------------------------------------------------------------------- when to save


def test_saving_is_refused_unless_the_stream_is_asked(master):
    join, said = ss.Join(master, **OPTIONS), "in the generator that the join reads, between two items"
    with pytest.raises(UsageError, match=said):
        join.save()
    output = join(stream())
    with pytest.raises(UsageError, match=said):
        join.save()  # not begun
    next(output)
    with pytest.raises(UsageError, match=said):
        join.save()  # in the middle of its output
    list(output)
    with pytest.raises(UsageError, match=said):
        join.save()  # finished

    def broken():
        yield from ()
        raise OSError

    with pytest.raises(OSError):  # there is no text to match
        list(join(broken()))
    with pytest.raises(UsageError, match=said):
        join.save()


@pytest.mark.parametrize("items", [0, 1, 2, 3])
def test_a_state_of_a_state_is_the_same(master, items):
    join = ss.Join(master, **OPTIONS)
    before, first = saved_after(items, join)
    states = []

    def again():
        states.append(join.save())
        yield from list(stream())[items:]

    rows = before + rows_of(join(again(), resume=first))
    assert alike(rows, rows_of(ss.Join(master, **OPTIONS)(stream())))
    assert rows_of(join(list(stream())[items:], resume=states[0])) == rows[len(before) :]


def test_a_state_is_as_big_as_what_is_in_memory_and_not_as_the_budget(master):
    sizes = [len(saved_after(items, ss.Join(master, on="id", memory="64MB"))[1]) for items in (0, 2)]
    assert sizes[0] < 1000
    assert sizes[1] < 1 << 20


def test_columns_of_every_type_wait_for_their_turn_in_a_state(master):
    table = stream_table({"id": pa.array(range(0, 4000, 40), pa.int64())}, list(PAYLOADS))
    batches = table.combine_chunks().to_batches(max_chunksize=30)
    join, parts = ss.Join(master, on="id", algorithm="meshjoin", memory="1MB", how="left", ordered=True), []

    def saving():
        for batch in batches:
            parts.append((len(rows), join.save()))
            yield batch

    rows = []
    for batch in join(saving()):
        rows += plain_rows(batch)
    for number, (count, bytes_) in enumerate(parts):
        assert alike(
            rows[:count] + [row for batch in join(batches[number:], resume=bytes_) for row in plain_rows(batch)], rows
        )


# ------------------------------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"how": "inner"}, "how was 'left' and is 'inner'"),
        ({"memory": "301kB"}, "memory was 307200 and is 308224"),
        ({"algorithm": "meshjoin"}, "algorithm was 'adaptive' and is 'meshjoin'"),
        ({"columns": []}, "columns was"),
        ({"on": {"key": "id"}}, "on was"),
        ({"where": pc.field("square") > 3}, "where was None and is"),
        ({"null_safe": True}, "null_safe was False and is True"),
        ({"ordered": True}, "ordered was False and is True"),
        ({"match_column": "found"}, "match_column was None and is 'found'"),
        ({"max_wait": 7}, "max_wait was"),
        ({"threads": 2}, "threads was 1 and is 2"),
        ({"how": "inner", "ordered": True}, "how was 'left' and is 'inner'; ordered was False and is True"),
    ],
)
def test_another_join_is_refused_by_what_differs(master, saved, changed, said):
    with pytest.raises(StateError, match=f"{said}.*give this join the same"):
        ss.Join(master, **OPTIONS | changed)(stream(), resume=saved)


def test_another_preset_is_refused(master):
    options = OPTIONS | {"algorithm": "hybridjoin"}
    saved = saved_after(2, ss.Join(master, **options))[1]
    with pytest.raises(StateError, match="preset was 'tuned' and is 'published'"):
        ss.Join(master, preset="published", **options)(stream(), resume=saved)


def test_a_master_of_another_version_is_refused_and_the_old_one_can_be_opened(tmp_path):
    path, table = tmp_path / "m.master", pa.table(MASTER)
    master = ss.build_master(path, table, key="id")
    before, saved = saved_after(2, ss.Join(master, **OPTIONS))
    ss.build_master(path, table.slice(0, 500), key="id").close()
    newer = ss.open_master(path)
    with pytest.raises(StateError, match=r"master was v-1 \w+ and is v-2 \w+; open that version"):
        ss.Join(newer, **OPTIONS)(stream(), resume=saved)
    older = ss.open_master(path, version="v-1")
    rows = before + rows_of(ss.Join(older, **OPTIONS)(list(stream())[2:], resume=saved))
    assert alike(rows, rows_of(ss.Join(master, **OPTIONS)(stream())))
    for opened in (master, newer, older):
        opened.close()


@pytest.mark.parametrize("wrong", ["text", 7, ["list"]])
def test_what_is_not_bytes_is_refused(master, wrong):
    with pytest.raises(StateError, match=r"need the bytes that Join\.save"):
        ss.Join(master, **OPTIONS)(stream(), resume=wrong)


def test_every_damage_is_noticed_before_anything_is_built(master, saved):
    before, join = open_files(), ss.Join(master, **OPTIONS)
    for length in [*range(60), len(saved) // 2, len(saved) - 1]:
        with pytest.raises(StateError):
            join(stream(), resume=saved[:length])
    for place in [*range(60), *range(60, len(saved), 997), len(saved) - 1]:
        damaged = bytearray(saved)
        damaged[place] ^= 1
        with pytest.raises(StateError):
            join(stream(), resume=bytes(damaged))
    with pytest.raises(StateError, match="damaged"):
        join(stream(), resume=saved + b"\0")
    assert open_files() == before


def test_other_versions_are_refused(master, saved, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(state, "__version__", "99.0")
        with pytest.raises(StateError, match=r"saved by semistream .*, this is 99\.0"):
            ss.Join(master, **OPTIONS)(stream(), resume=saved)
    monkeypatch.setattr(state, "FORMAT", 2)
    with pytest.raises(StateError, match="saved in format 1, this semistream has format 2"):
        ss.Join(master, **OPTIONS)(stream(), resume=saved)


@pytest.mark.parametrize("fault", ["ledger", "class", "attribute"])
def test_a_state_that_does_not_fit_is_never_half_applied(master, saved, fault):
    join = ss.Join(master, **OPTIONS)
    facts = state.facts_of(master, join._options)
    held = state.read(saved, facts)
    if fault == "ledger":
        held = held._replace(ledger=held.ledger | {"hot cache": 1})
    else:
        things = held.snapshot.data[2]
        recipe = things[-1][3]["recipe"]  # of the crew
        assert recipe[0] == "object"
        if fault == "class":
            recipe[2] = "OtherRecipe"
        else:
            recipe[3]["other"] = recipe[3].pop("_plenty")
        held = held._replace(snapshot=Snapshot(held.snapshot.data, list(held.snapshot.blocks)))
    forged, before = state.write(facts, held), open_files()
    with pytest.raises(StateError, match="saved by another build of semistream"):
        list(join(stream(), resume=forged))
    gc.collect()
    assert open_files() == before
    assert len(rows_of(join(stream()))) == 600


def test_a_stream_with_another_schema_is_refused(master, saved):
    join = ss.Join(master, **OPTIONS)
    with pytest.raises(ColumnError, match="id int32"):
        list(join([pa.record_batch({"id": pa.array([1], pa.int32())})], resume=saved))


# ---------------------------------------------------------------------------------------------------------- the waiting


def test_max_wait_goes_on_where_it_was(master, monkeypatch):
    clock, states = Clock(), []
    monkeypatch.setattr("semistream.arrivals.time", clock)
    join = ss.Join(master, max_wait="10s", **OPTIONS)

    def first():
        yield pa.record_batch({"id": pa.array([5])})
        clock.now += 6
        states.append(join.save())

    list(join(first()))
    clock.now += 1000  # nobody waits while no join runs
    waiting = []

    def then():
        for seconds in (0, 3, 2):
            clock.now += seconds
            yield pa.record_batch({"id": pa.array([], pa.int64())})
            yield pa.record_batch({"id": pa.array([2500 + seconds])})
            waiting.append(join.report()["waiting"])

    assert len(rows_of(join(then(), resume=states[0]))) == 4
    assert waiting[:2] == [2, 3]
    assert waiting[2] < 4


def test_a_filter_that_differs_in_the_middle_of_a_long_list_is_another_filter(master):
    def filtered(values):
        return ss.Join(master, **OPTIONS, where=pc.field("square").isin(values))

    join, states = filtered([*range(500), 600, *range(700, 1200)]), []

    def saving():
        for item in stream():
            states.append(join.save())
            yield item

    list(join(saving()))
    with pytest.raises(StateError, match="where was"):
        list(filtered([*range(500), 601, *range(700, 1200)])(stream(), resume=states[-1]))
