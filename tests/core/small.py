"""Small joins on real masters."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from pathlib import Path

import pyarrow as pa

import semistream as ss
from semistream.errors import BudgetError

QUICK_FOLDER = "/dev/shm" if Path("/dev/shm").is_dir() else None  # no waiting for the disk to sync


@contextlib.contextmanager
def built(table, key="id", **options):
    """A master of this table in a folder that goes away."""
    table = pa.table(table) if isinstance(table, dict) else table
    with (
        tempfile.TemporaryDirectory(dir=QUICK_FOLDER) as folder,
        ss.build_master(f"{folder}/m.master", table, key=key, **{"page_bytes": 4096} | options) as master,
    ):
        yield master


def batches_of(*columns, cuts=()):
    """A stream of these columns (dicts), each one batch, or one dict cut at these rows."""
    if not cuts:
        return [pa.record_batch(column) for column in columns]
    whole = pa.record_batch(columns[0])
    bounds = [0, *cuts, whole.num_rows]
    return [whole.slice(a, b - a) for a, b in itertools.pairwise(bounds)]


def joined(master, stream, **options):
    """The join, and all its output."""
    join = ss.Join(master, **{"on": "id", "memory": "1MB"} | options)
    return join, list(join(iter(stream)))


def rows_of(batches):
    """All rows of output batches, in the order they came."""
    return [row for batch in batches for row in batch.to_pylist()]


def sorted_rows(batches):
    """All rows, in an order that does not depend on how they came."""
    return sorted((tuple(row.values()) for row in rows_of(batches)), key=repr)


def enlarged(attempt, memory, most=5):
    """What `attempt(memory)` gives in the first of at most `most` budgets, each the one that the last error asked for."""
    for _ in range(most):
        try:
            return attempt(memory), memory
        except BudgetError as error:
            refused, memory = memory, error.smallest_bytes
        assert memory > refused
    msg = f"{memory} bytes were asked for after {most} budgets"
    raise AssertionError(msg)
