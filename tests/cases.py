"""Whole join cases for Hypothesis: a stream cut into batches, a master table, and the options of one join.

A case is small numbers turned into tables: which key (a place in a pool of `key_kinds`), how often, in which order, how
cut. So Hypothesis can shrink it, and the tables still hold what breaks joins. Every master row and every stream row has
a number of its own, so that a wrong pair can never look like a right one.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

from tests.key_kinds import KEY_KINDS, NAN, SQL_KEY_KINDS, pools, taken
from tests.reference import KINDS, Expected, Where, reference_join

Item = pa.RecordBatch | None
Places = list[int | None]

_D = decimal.Decimal
PAYLOADS: dict[str, pa.Array] = {
    "int64": pa.array([7, None, -(2**63), 2**63 - 1, 0]),
    "float64": pa.array([1.5, None, -0.0, NAN]),
    "string": pa.array(["", "vendor", None, "é" * 9, "a\0b"]),
    "binary": pa.array([b"", None, b"\0\xff", b"octets"]),
    "int8": pa.array([1, -128, None], pa.int8()),
    "uint16": pa.array([65535, None, 0], pa.uint16()),
    "uint64": pa.array([2**64 - 1, None], pa.uint64()),
    "float32": pa.array([0.25, NAN, None, -0.0], pa.float32()),
    "bool": pa.array([True, None, False, False]),
    "decimal": pa.array([_D("12.50"), None, _D("-0.01")], pa.decimal128(9, 2)),
    "long decimal": pa.array([_D(10) ** 30, None, -(_D(10) ** 20)], pa.decimal128(38, 3)),
    "date": pa.array([0, None, -719_162, 2_932_896], pa.int32()).view(pa.date32()),
    "instant": pa.array([0, 2**60, None, -1], pa.int64()).view(pa.timestamp("us", "Europe/Berlin")),
    "timestamp": pa.array([1, None, -(2**60)], pa.int64()).view(pa.timestamp("ns")),
    "time": pa.array([1, None, 86_399], pa.int64()).view(pa.time64("us")),
    "null": pa.array([None, None]),
    "large string": pa.array(["x" * 70, None, ""], pa.large_string()),
    "fixed binary": pa.array([b"abc", None], pa.binary(3)),
    "list": pa.array([[1, None], None, [], [3]], pa.list_(pa.int32())),
    "struct": pa.array(
        [{"a": 1, "b": "x"}, None, {"a": None, "b": None}], pa.struct({"a": pa.int64(), "b": pa.string()})
    ),
    "map": pa.array([[("k", 1.5), ("l", None)], None, []], pa.map_(pa.string(), pa.float64())),
    "list of structs": pa.array([[{"a": ["x", None]}], None, []], pa.list_(pa.struct({"a": pa.list_(pa.string())}))),
    "fixed list": pa.array([[1, None], None, [3, 4]], pa.list_(pa.int16(), 2)),
    "large list": pa.array([["x"], None, [], ["", None]], pa.large_list(pa.string())),
    "coded": pa.array(["red", None, "green", "red"]).dictionary_encode(),
    "string view": pa.array(["longer than twelve bytes", None, ""], pa.string_view()),
    "duration": pa.array([1, None, -(2**62)], pa.int64()).view(pa.duration("ns")),
    "wide": pa.array(["w" * 3000, None, "short"]),
}
SQL_PAYLOADS = ("int64", "float64", "string", "binary")

WHERES: dict[str, tuple[pc.Expression, Where]] = {
    "some": (pc.field("m_small") > 2, lambda row: row["m_small"] is not None and row["m_small"] > 2),
    "missing": (pc.field("m_small").is_null(), lambda row: row["m_small"] is None),
    "one": (pc.field("m_row") == 0, lambda row: row["m_row"] == 0),
    "null key": (pc.field("key0").is_null(), lambda row: row["key0"] is None),
    "key": (pc.field("key0").is_valid(), lambda row: row["key0"] is not None),
    "none": (pc.field("m_row") < 0, lambda row: row["m_row"] < 0),
    "both": (
        (pc.field("m_row") >= 1) & ~(pc.field("m_small") == 1),
        lambda row: row["m_row"] >= 1 and row["m_small"] is not None and row["m_small"] != 1,
    ),
}
WAITS = (None, None, 1, 7, "1ms", "2s", dt.timedelta(seconds=1))
SPARE_BYTES = (0, 0, 1, 4096, 50_000, 1 << 22)


@dataclass(frozen=True)
class Case:
    """One join to try: its tables, how the stream arrives, and the options."""

    told: dict[str, Any]  # the small numbers everything is made of
    stream: pa.Table
    items: list[Item]
    master: pa.Table
    on: str | list[str] | dict[str, str]
    master_key: list[str]
    page_bytes: int = 4096
    spare_bytes: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    where: str | None = None

    def __repr__(self) -> str:
        return f"Case({', '.join(f'{name}={value!r}' for name, value in self.told.items())})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """As `repr`, also where Hypothesis would print every table."""
        printer.text(repr(self))

    def join_options(self) -> dict[str, Any]:
        """The options in the library's words."""
        return self.options | ({} if self.where is None else {"where": WHERES[self.where][0]})

    def expected(self) -> Expected:
        """The oracle's answer."""
        known = {
            name: self.options[name] for name in ("how", "columns", "null_safe", "match_column") if name in self.options
        }
        where = None if self.where is None else WHERES[self.where][1]
        return reference_join(self.stream, self.master, self.on, where=where, **known)


def payload_columns(names: Sequence[str], rows: int, prefix: str) -> dict[str, pa.Array]:
    """One column a name; values repeat with a period of their own, so that every combination turns up."""
    return {f"{prefix}_{name.replace(' ', '_')}": taken(PAYLOADS[name], range(rows)) for name in names}


def master_table(keys: dict[str, pa.Array], payloads: Sequence[str] = ()) -> pa.Table:
    """A master: a row number, a small number that filters like to ask for, the payload, and the key in the middle."""
    rows = len(next(iter(keys.values())))
    small = pa.array([None if row % 5 == 4 else row % 5 for row in range(rows)], pa.int64())
    return pa.table(
        {"m_row": pa.array(range(rows), pa.int64())} | keys | {"m_small": small} | payload_columns(payloads, rows, "m")
    )


def stream_table(keys: dict[str, pa.Array], payloads: Sequence[str] = ()) -> pa.Table:
    """A stream: a row number, the key, the payload."""
    rows = len(next(iter(keys.values())))
    return pa.table({"s_row": pa.array(range(rows), pa.int64())} | keys | payload_columns(payloads, rows, "s"))


def required(table: pa.Table) -> pa.Table:
    """The table with every column that has no null declared as one that may not have any, if its type can say so."""
    fields = [
        field.with_nullable(table[field.name].null_count > 0 or pa.types.is_null(field.type)) for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def cut(stream: pa.Table, cuts: Sequence[int | None]) -> list[Item]:
    """The stream in batches of these sizes (None: nothing arrived), and the rest as one batch."""
    whole = stream.combine_chunks().to_batches()
    whole = whole[0] if whole else pa.RecordBatch.from_pylist([], schema=stream.schema)
    items: list[Item] = []
    start = 0
    for size in cuts:
        items.append(None if size is None else whole.slice(start, size))
        start = min(start + (size or 0), whole.num_rows)
    if start < whole.num_rows or not items:
        items.append(whole.slice(start))
    return items


# ---------------------------------------------------------------------------------------------------------- strategies

CUTS = st.lists(st.sampled_from([None, 0, 1, 2, 5, 17, 64, 500]), max_size=8)
SINGLE = [(name,) for name in KEY_KINDS]
COMPOSITE = [
    ("int64", "string"),
    ("uint8", "bool", "date32"),
    ("float64", "int64"),
    ("string", "binary"),
    ("decimal(38,10)", "int32"),
]
SQL_KEYS = [(name,) for name in SQL_KEY_KINDS] + [("int64", "string")]


@st.composite
def places(draw: st.DrawFn, kinds: Sequence[str]) -> tuple[list[Places], list[Places], dict[str, Any]]:
    """Key places of stream and master, one list a key column, and the small numbers they come from."""
    few = 12 if len(kinds) == 1 else 3
    alphabets = []
    for kind in kinds:
        count = len(pools(kind)[0]) if len(kinds) == 1 else min(few, len(pools(kind)[0]))
        place = st.integers(0, min(few, count) - 1) | st.integers(0, count - 1)
        alphabets.append(st.lists(place, min_size=1, max_size=6, unique=True))
    letters = [[None, *draw(alphabet)] for alphabet in alphabets]
    key = st.tuples(*(st.sampled_from(choice) for choice in letters))
    runs = draw(st.lists(st.tuples(key, st.sampled_from([1, 1, 1, 2, 3, 60, 250])), max_size=10))
    unique = draw(st.booleans())
    filler = min(draw(st.sampled_from([0, 0, 20, 200, 1200])), math.prod(pools(kind)[2] for kind in kinds))
    told = {"kinds": tuple(kinds), "runs": runs, "unique": unique, "filler": filler}
    told["stream"] = draw(st.lists(key, max_size=25))
    told["again"] = draw(st.sampled_from([1, 1, 1, 2, 12]))
    told["seed"] = draw(st.integers(0, 3))
    shake = random.Random(told["seed"])
    master = [key for key, times in runs for _ in range(1 if unique else times)]
    ordinary = [_filler(kinds, number) for number in range(filler)]
    master = list(dict.fromkeys(master + ordinary)) if unique else master + ordinary
    stream = told["stream"] * told["again"] + shake.sample(ordinary, filler // 4)
    if told["seed"]:
        shake.shuffle(master)
        shake.shuffle(stream)
    return _columns(stream, len(kinds)), _columns(master, len(kinds)), told


def _filler(kinds: Sequence[str], number: int) -> tuple[int, ...]:
    """A key that is no special one; composite keys count through their columns like an odometer."""
    key = []
    for kind in kinds:
        count = pools(kind)[2]
        key.append(number % count)
        number //= count
    return tuple(key)


def _columns(rows: Sequence[tuple[int | None, ...]], count: int) -> list[Places]:
    return [[row[place] for row in rows] for place in range(count)]


@st.composite
def options(draw: st.DrawFn, master: pa.Table, keys: Sequence[str]) -> dict[str, Any]:
    """Options of `ss.Join`, only those that differ from the default."""
    drawn: dict[str, Any] = {
        "how": draw(st.sampled_from(list(KINDS))),
        "null_safe": draw(st.booleans()),
        "ordered": draw(st.sampled_from([False, False, True])),
        "match_column": draw(st.sampled_from([None, None, "found"])),
        "max_wait": draw(st.sampled_from(WAITS)),
    }
    rest = [name for name in master.column_names if name not in keys]
    chosen = st.lists(st.sampled_from(rest), unique=True, max_size=4)
    if KINDS[drawn["how"]] in ("inner", "left"):
        drawn["columns"] = draw(
            st.none()
            | chosen
            | chosen.map(lambda names: [(name, f"{name}_out") if len(name) % 2 else name for name in names])
            | chosen.map(lambda names: {name: f"{name}_out" for name in names})
        )
    return {name: value for name, value in drawn.items() if value not in (None, False) and value != "inner"}


@st.composite
def cases(
    draw: st.DrawFn,
    keys: Sequence[Sequence[str]] = (*SINGLE, *COMPOSITE),
    payloads: Sequence[str] = tuple(PAYLOADS),
    options_of: Callable[[pa.Table, Sequence[str]], st.SearchStrategy[dict[str, Any]]] = options,
) -> Case:
    """A whole case."""
    kinds = draw(st.sampled_from(keys))
    stream_places, master_places, told = draw(places(kinds))
    renamed = draw(st.booleans())
    stream_names = [f"{'id' if renamed else 'key'}{number}" for number in range(len(kinds))]
    master_names = [f"key{number}" for number in range(len(kinds))]
    told["payload"] = draw(st.lists(st.sampled_from(payloads), unique=True, max_size=4))
    told["carried"] = draw(st.lists(st.sampled_from(payloads), unique=True, max_size=2))
    stream_pools, master_pools = ([pools(kind)[side] for kind in kinds] for side in (0, 1))
    stream = stream_table(
        dict(zip(stream_names, map(taken, stream_pools, stream_places), strict=True)), told["carried"]
    )
    master = master_table(
        dict(zip(master_names, map(taken, master_pools, master_places), strict=True)), told["payload"]
    )
    told["required"] = draw(st.booleans())
    if told["required"]:
        stream, master = required(stream), required(master)
    told["cuts"] = draw(CUTS)
    told["page_bytes"] = draw(st.sampled_from([4096, 8192]))
    told["spare_bytes"] = draw(st.sampled_from(SPARE_BYTES))
    told["options"] = draw(options_of(master, master_names))
    told["where"] = draw(st.sampled_from([None, None, *WHERES]))
    on: Any = dict(zip(stream_names, master_names, strict=True)) if renamed else master_names
    return Case(
        told=told | {"renamed": renamed},
        stream=stream,
        items=cut(stream, told["cuts"]),
        master=master,
        on=on[0] if not renamed and len(kinds) == 1 else on,
        master_key=master_names,
        page_bytes=told["page_bytes"],
        spare_bytes=told["spare_bytes"],
        options=told["options"],
        where=told["where"],
    )
