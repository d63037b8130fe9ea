"""How often rows are asked for, so that the hottest can lie together at the front of a master.

`frequency=` is one of: a column of the master itself, a dict or table of keys with their counts (a column named `count`), or a sample of
the stream, in which every row counts one. Counts are kept by key word: 16 bytes for every different key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from semistream.errors import BudgetError, ColumnError, UsageError
from semistream.keys import KeyCodec
from semistream.masters.row_sort import F64
from semistream.masters.sources import open_source
from semistream.parts.memory import I64
from semistream.units import format_bytes

Ranker: TypeAlias = Callable[[pa.RecordBatch, I64], F64]

COUNT: Final = "count"
_BYTES_PER_KEY: Final = 64  # the counts, and the copies that exist while they are merged


def ranker(frequency: Any, schema: pa.Schema, keys: KeyCodec, memory_bytes: int) -> Ranker:
    """A function that gives every row of a batch its rank: the smaller, the hotter."""
    if isinstance(frequency, str) and frequency in schema.names:
        return _by_column(schema.field(frequency))
    if isinstance(frequency, str) and "://" not in frequency and not Path(frequency).exists():
        raise ColumnError(
            f"frequency={frequency!r}: is neither a column of the source ({', '.join(schema.names)}) nor a file"
        )
    names = [field.name for field in keys.fields]
    if isinstance(frequency, dict):
        frequency = _table_of(frequency, keys.fields)
    words, counts = _counted(frequency, names, keys, memory_bytes)

    def rank(_: pa.RecordBatch, of: I64) -> F64:
        if not words.size:
            return np.zeros(of.size, np.float64)
        places = np.minimum(words.searchsorted(of), words.size - 1)
        return np.where(words[places] == of, -counts[places], 0.0)

    return rank


def _by_column(field: pa.Field) -> Ranker:
    kind = field.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise ColumnError(f"frequency={field.name!r}: need a column of numbers, it has type {kind}")

    def rank(batch: pa.RecordBatch, _: I64) -> F64:
        return -_numbers(batch.column(field.name))

    return rank


def _numbers(column: pa.Array) -> F64:
    numbers: F64 = np.asarray(column.cast(pa.float64(), safe=False).fill_null(0.0), np.float64)
    return np.nan_to_num(numbers, nan=0.0)


def _table_of(counts: dict[Any, Any], fields: Sequence[pa.Field]) -> pa.Table:
    keys = list(counts) if len(fields) > 1 else [(key,) for key in counts]
    if any(not isinstance(key, tuple) or len(key) != len(fields) for key in keys):
        raise UsageError(
            f"frequency=: the key has {len(fields)} columns, so every key of the dict must be a tuple of {len(fields)}"
        )
    columns = [pa.array([key[i] for key in keys], field.type) for i, field in enumerate(fields)]
    return pa.table([*columns, pa.array(counts.values(), pa.float64())], names=[*(f.name for f in fields), COUNT])


def _counted(sample: Any, names: list[str], keys: KeyCodec, memory_bytes: int) -> tuple[I64, F64]:
    """Different key words, sorted, with their counts."""
    source = open_source(sample)
    missing = [name for name in names if name not in source.schema.names]
    if missing:
        raise ColumnError(
            f"frequency=: need the key columns {names}, {missing[0]!r} is missing; it has {source.schema.names}"
        )
    keys.check([source.schema.field(name) for name in names])
    weighted = COUNT in source.schema.names and COUNT not in names
    counts = KeyCounts(memory_bytes)
    for batch in source.batches():
        words = keys.words([batch.column(name) for name in names]).words
        counts.add(words, _numbers(batch.column(COUNT)) if weighted else np.ones(words.size))
    return counts.merged()


class KeyCounts:
    """Counts by key word. New ones are merged only when they are as many as the old ones, so that each is sorted few times."""

    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._words: list[I64] = [np.zeros(0, np.int64)]
        self._counts: list[F64] = [np.zeros(0, np.float64)]
        self._new = 0

    def add(self, words: I64, counts: F64) -> None:
        """Count these words."""
        self._words.append(words)
        self._counts.append(counts)
        self._new += words.size
        if self._new > max(1 << 18, self._words[0].size):
            self.merged()

    def merged(self) -> tuple[I64, F64]:
        """Different words, sorted, and the count of each."""
        words, places = np.unique(np.concatenate(self._words), return_inverse=True)
        counts = np.bincount(places, np.concatenate(self._counts), words.size).astype(np.float64)
        needed = words.size * _BYTES_PER_KEY
        if needed > self._memory_bytes:
            raise BudgetError(
                f"frequency=: more than {words.size} different keys do not fit into {format_bytes(self._memory_bytes)}; "
                "give a smaller sample or more memory=",
                part="key counts",
                needed_bytes=needed,
                smallest_bytes=needed,
            )
        self._words, self._counts, self._new = [words], [counts], 0
        return words, counts
