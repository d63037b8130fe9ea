"""Fixed cases for the checks that Hypothesis does not draw: each has what one kind of fault trips over."""

from __future__ import annotations

import pyarrow as pa

from tests.cases import Case, cut, master_table, stream_table
from tests.key_kinds import pools, taken


def full_case(kinds: tuple[str, ...], **options) -> Case:
    """Every special key and a few ordinary ones on both sides, twice in the master, with null keys, and keys on one side only."""
    places = [[None, *range(min(24, len(pools(kind)[0]))), *range(-4, 0)] for kind in kinds]
    rows = [tuple(column[number % len(column)] for column in places) for number in range(max(map(len, places)))]
    rows += [tuple(None if skip == at else 1 for at in range(len(kinds))) for skip in range(len(kinds))]
    columns = {f"key{at}": [row[at] for row in rows] for at in range(len(kinds))}
    stream = {
        name: taken(pools(kind)[0], column[::-1] + column)
        for kind, (name, column) in zip(kinds, columns.items(), strict=True)
    }
    master = {
        name: taken(pools(kind)[1], column[3:] + column[:-9])
        for kind, (name, column) in zip(kinds, columns.items(), strict=True)
    }
    names = list(columns)
    stream_rows = stream_table(stream)
    return Case(
        told={"kinds": kinds, "options": options},
        stream=stream_rows,
        items=cut(stream_rows, [3, 0, None, 20]),
        master=master_table(master, ["string"]),
        on=names,
        master_key=names,
        options=options,
    )


def plain_case(rows: int, distinct: int, items: list[int | None], master_rows: int = 2000, **options) -> Case:
    """A stream of integer keys, one in five absent from the master, over a master with unique keys."""
    stream = stream_table({"key0": pa.array([(number * 7919) % distinct for number in range(rows)], pa.int64())})
    keys_ = [number for number in range(master_rows + master_rows // 4) if number % 5 != 3][:master_rows]
    return Case(
        told={"rows": rows, "distinct": distinct, "items": items, "master_rows": master_rows, "options": options},
        stream=stream,
        items=cut(stream, items),
        master=master_table({"key0": pa.array(keys_, pa.int64())}, ["string", "float64"]),
        on="key0",
        master_key=["key0"],
        options=options,
    )


def crowded_case(**options) -> Case:
    """Few keys, each with more rows than fit on a page, and one of them asked for again and again."""
    keys = pa.array([number % 3 * 5 for number in range(600)], pa.int64())
    stream = stream_table({"key0": pa.array([0, 5, 5, 7, 10, None] * 6, pa.int64())})
    return Case(
        told={"crowded": True, "options": options},
        stream=stream,
        items=cut(stream, [1, None, 4]),
        master=master_table({"key0": keys}, ["string"]),
        on="key0",
        master_key=["key0"],
        options=options,
    )


def drifting_case(**options) -> Case:
    """What the stream asks for again and again changes; every third key of the master has two rows, and memory holds a part of it."""
    keys = pa.array(sorted([*range(3000), *range(0, 3000, 3)]), pa.int64())
    asked = [phase * 900 + (number * 7919) % 120 for phase in (0, 1, 2, 3, 0) for number in range(240)]
    stream = stream_table({"key0": pa.array(asked, pa.int64())})
    wide = pa.array([f"{number:0>60}" for number in range(len(keys))])
    return Case(
        told={"drifting": True, "options": options},
        stream=stream,
        items=cut(stream, [1, 50, None, 200]),
        master=master_table({"key0": keys}, []).append_column("m_text", wide),
        on="key0",
        master_key=["key0"],
        options=options,
    )
