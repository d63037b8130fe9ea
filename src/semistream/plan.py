"""What a join is asked to do, checked before any data moves: columns, key types, join type, names of the output."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, NoReturn, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from semistream.errors import ColumnError, UsageError
from semistream.protocols import Master
from semistream.units import parse_seconds

On: TypeAlias = str | Sequence[str] | Mapping[str, str]
Chosen: TypeAlias = Sequence[str | tuple[str, str]] | Mapping[str, str] | None

_ALIASES = {
    "inner": "inner",
    "left": "left",
    "leftouter": "left",
    "semi": "left_semi",
    "leftsemi": "left_semi",
    "anti": "left_anti",
    "leftanti": "left_anti",
}

_THREAD_BYTES = 4 << 20


@dataclass(frozen=True)
class Wait:
    """How long a tuple may wait: so many stream tuples, or so many seconds; whichever is set."""

    tuples: int | None = None
    seconds: float | None = None


def parse_how(how: str) -> str:
    """One of inner, left, left_semi, left_anti, from any of Spark's names."""
    known = _ALIASES.get(how.lower().replace("_", "")) if isinstance(how, str) else None
    if known is None:
        reason = ""
        if isinstance(how, str) and how.lower().replace("_", "") in (
            "right",
            "rightouter",
            "outer",
            "full",
            "fullouter",
        ):
            reason = ": it would need every master row that no stream tuple ever matches, and a stream does not end"
        raise UsageError(f"how={how!r} is not supported{reason}; use inner, left, left_semi or left_anti")
    return known


def parse_wait(value: int | str | dt.timedelta | None) -> Wait:
    """`max_wait` as the user gave it.

    >>> parse_wait("500ms"), parse_wait(1000)
    (Wait(tuples=None, seconds=0.5), Wait(tuples=1000, seconds=None))
    """
    if value is None:
        return Wait()
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 0:
            raise UsageError(f"max_wait={value}: need a number of stream tuples that is not negative")
        return Wait(tuples=value)
    if isinstance(value, float):
        raise UsageError(
            f'max_wait={value}: a plain number counts stream tuples and must be whole; write "{value}s" for seconds'
        )
    return Wait(seconds=parse_seconds(value, "max_wait"))


def parse_threads(value: int | None, most: int, memory_bytes: int) -> int:
    """How many threads may compute: what the algorithm can use, and no more than there are cores unless the user says so.

    Every thread needs buffers of its own, so there is one where memory is scarce.
    """
    if value is None:
        most = max(1, min(most, memory_bytes // _THREAD_BYTES))
        return min(most, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"threads={value!r}: need a whole number, 1 or more")
    return min(most, value)


def check_open(master: Any) -> None:
    """Refuse the path of a master in place of the master."""
    if isinstance(master, str | os.PathLike):
        raise UsageError(
            f"master={str(master)!r}: need an open master; write ss.Join(ss.open_master({str(master)!r}), ...)"
        )


def check_stream(stream: Any) -> None:
    """Refuse what is no stream, also the tables and batches that one can take for streams."""
    if isinstance(stream, pa.Table | pa.RecordBatch) or not isinstance(stream, Iterable):
        raise UsageError(
            f"the stream is a {type(stream).__name__}: need an iterable of pyarrow.RecordBatch or None, such as table.to_batches()"
        )


def refuse_item(item: Any) -> NoReturn:
    """An item of the stream is neither a batch nor None."""
    raise UsageError(f"the stream gave a {type(item).__name__}: every item must be a pyarrow.RecordBatch or None")


def parse_on(on: On, master: Master) -> list[str]:
    """The stream's key columns, in the order of the master's."""
    wanted = [field.name for field in master.keys.fields]
    if isinstance(on, str):
        pairs = {on: on}
    elif isinstance(on, Mapping):
        pairs = dict(on)
    elif isinstance(on, Sequence) and on and all(isinstance(name, str) for name in on) and len(set(on)) == len(on):
        pairs = {name: name for name in on}
    else:
        raise UsageError(
            f'on={on!r}: need a column name, a list of different names, or {{"stream column": "master column"}}'
        )
    if sorted(pairs.values()) != sorted(wanted):
        named = wanted[0] if len(wanted) == 1 else wanted
        raise ColumnError(
            f"on={on!r} does not name the key of master {master.name}, which is {named!r}; "
            f"write on={_example(list(pairs), wanted)} if these are the stream's columns for it"
        )
    back = {theirs: ours for ours, theirs in pairs.items()}
    return [back[name] for name in wanted]


def _example(ours: list[str], theirs: list[str]) -> str:
    names = ours if len(ours) == len(theirs) else [f"stream_{name}" for name in theirs]
    return "{" + ", ".join(f'"{a}": "{b}"' for a, b in zip(names, theirs, strict=True)) + "}"


def parse_columns(chosen: Chosen, master: Master) -> list[tuple[str, str]]:
    """(master column, output name) of the columns that the join adds."""
    keys = [field.name for field in master.keys.fields]
    payload = [name for name in master.schema.names if name not in keys]
    if chosen is None:
        return [(name, name) for name in payload]
    if isinstance(chosen, Mapping):
        if not all(isinstance(name, str) for name in chosen.values()):
            raise UsageError(f"columns={chosen!r}: new names must be text")
        _known(list(chosen), payload, keys, master)
        return [(name, chosen.get(name, name)) for name in payload]
    if isinstance(chosen, str) or not isinstance(chosen, Sequence):
        raise UsageError(f"columns={chosen!r}: need a list of master columns, or a dict that renames some of them")
    for item in chosen:
        if not isinstance(item, str) and not (isinstance(item, tuple) and [type(part) for part in item] == [str, str]):
            raise UsageError(f"columns: {item!r} is neither a column of the master nor a pair (column, new name)")
    pairs = [(item, item) if isinstance(item, str) else item for item in chosen]
    _known([name for name, _ in pairs], payload, keys, master)
    return pairs


def _known(names: list[str], payload: list[str], keys: list[str], master: Master) -> None:
    for name in names:
        if name in keys:
            raise ColumnError(
                f"columns: {name!r} is the key of master {master.name}; the stream's own key column already is in the output, leave it out"
            )
        if name not in payload:
            has = ", ".join(payload) or "none but its key"
            raise ColumnError(f"columns: master {master.name} has no column {name!r}; it has {has}")


def check_where(where: pc.Expression | None, master: Master) -> list[str]:
    """The master columns a filter may read; an error if it cannot be applied to them."""
    if where is None:
        return []
    if not isinstance(where, pc.Expression):
        raise UsageError(
            f'where={where!r}: need a pyarrow expression over master columns, such as pc.field("active") == True'
        )
    try:
        master.schema.empty_table().filter(where)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError, pa.ArrowTypeError) as error:
        reason = str(error).splitlines()[0].split(" in ")[0]  # Arrow goes on with the whole schema, a line a column
        raise ColumnError(
            f"where={where}: cannot be applied to master {master.name}, which has {', '.join(master.schema.names)}: {reason}"
        ) from error
    text = str(where)
    if "FieldPath" in text:
        raise UsageError(
            f"where={where}: name columns instead of counting them, as in pc.field({master.schema.names[0]!r})"
        )
    return [name for name in master.schema.names if name in text]


@dataclass(frozen=True)
class Output:
    """What comes out: stream columns, then (master column, output name) pairs, then perhaps the match column."""

    how: str
    stream_names: list[str]
    payload: list[tuple[str, str]]
    match_column: str | None
    schema: pa.Schema


def plan_output(
    stream: pa.Schema,
    stream_keys: list[str],
    master: Master,
    how: str,
    payload: list[tuple[str, str]],
    match_column: str | None,
) -> Output:
    """Check the stream's schema against the master's and name every output column."""
    twice = {name for name in stream.names if stream.names.count(name) > 1}
    if twice:
        raise ColumnError(f"the stream has {sorted(twice)} more than once; rename one of them")
    for name in stream_keys:
        if name not in stream.names:
            raise ColumnError(f"the stream has no key column {name!r}; it has {', '.join(stream.names)}")
    master.keys.check([stream.field(name) for name in stream_keys])
    if match_column is not None and not isinstance(match_column, str):
        raise UsageError(f"match_column={match_column!r}: need the name of a column")
    fields = list(stream)
    added = payload if how in ("inner", "left") else []
    for name, output in added:
        field = master.schema.field(name)
        fields.append(pa.field(output, field.type, field.nullable or how == "left", field.metadata))
    if match_column is not None:
        fields.append(pa.field(match_column, pa.bool_(), nullable=False))
    _refuse_clashes(stream, added, match_column, master)
    return Output(how, stream.names, added, match_column, pa.schema(fields))


def _refuse_clashes(stream: pa.Schema, added: list[tuple[str, str]], match_column: str | None, master: Master) -> None:
    taken = {name: f"stream column {name!r}" for name in stream.names}
    for name, output in added:
        if output in taken:
            raise ColumnError(
                f"output column {output!r} would come twice: from {taken[output]} and from column {name!r} of master {master.name}; "
                f'use columns={{"{name}": "{name}_{PurePath(master.name).stem}"}} to rename the master\'s'
            )
        taken[output] = f"column {name!r} of master {master.name}"
    if match_column in taken:
        raise ColumnError(f"match_column={match_column!r} is the name of {taken[match_column]}; choose another")
