"""Which version of the master a task reads.

    a micro-batch          the version pinned for it; the first task of the batch pins the current one (masters/batch_pins.py), or
                           the one that the caller had opened
    anything else          the version that was current when `enrich` was called
    a table in place       as it is when the task begins: it has no versions

A task knows its query and its micro-batch from Spark; both stay the same when a batch is tried again, and when the query is started again
from its checkpoint. A new version is checked against the running query before it is pinned: one that does not fit fails the query, loudly,
and the batch goes on when a version that fits has been published.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from pyspark import TaskContext

from semistream.errors import BudgetError, ColumnError, MasterNotFound, StateError, UsageError
from semistream.masters.batch_pins import BatchPins, Choice
from semistream.masters.claims import PINS
from semistream.masters.file_master import FileMaster
from semistream.protocols import Master

Fits = Callable[[Master], None]


@dataclass(frozen=True)
class MicroBatch:
    """Where a task stands in a streaming query."""

    query: str
    number: int

    @classmethod
    def of_this_task(cls) -> MicroBatch | None:
        """The micro-batch that the running task belongs to, if there is one."""
        task = TaskContext.get()
        query = task and task.getLocalProperty("sql.streaming.queryId")
        number = task and task.getLocalProperty("streaming.sql.batchId")
        return cls(query, int(number)) if query and number else None

    def __str__(self) -> str:
        return f"query {self.query}, micro-batch {self.number}"


@dataclass(frozen=True)
class InPlace:
    """A master without versions."""

    master: Master

    def open(self, batch: MicroBatch | None, fits: Fits) -> Master:
        """The table itself."""
        return self.master


@dataclass(frozen=True)
class Versioned:
    """A master whose versions are pinned, as it travels to the tasks: names only."""

    folder: str
    io: str
    planned: str  # the version that the join was defined with
    follows: bool  # whether a new micro-batch takes the version that is current then, and not the planned one
    pins: str
    operator: str
    join: str  # what a query must not change while it has a checkpoint
    kept_batches: int

    def open(self, batch: MicroBatch | None, fits: Fits) -> Master:
        """The version for a task of this micro-batch."""
        if batch is None:
            return FileMaster(self.folder, self.io, self.planned)
        pins = BatchPins(Path(self.pins, batch.query, self.operator))
        return self._pinned(pins.read(batch.number), batch) or self._choose(pins, batch, fits)

    def _choose(self, pins: BatchPins, batch: MicroBatch, fits: Fits) -> Master:
        """Pin a version that is open here, so that no vacuum removes it before the pin is there."""
        self._check_join(pins.before(batch.number), batch)
        current = FileMaster(self.folder, self.io, None if self.follows else self.planned)
        try:
            fits(current)
        except BudgetError:
            raise  # it says what memory would do
        except UsageError as exc:
            raise ColumnError(
                f"master {self.folder}: version {current.version.name} does not fit the query that is running: {exc}; publish a version "
                "with the columns and types of the one before, or define the query again"
            ) from exc
        name = current.version.name
        kept = pins.put(batch.number, Choice(name, str(batch), self.join, current.manifest.fingerprint))
        pins.forget(before=batch.number - self.kept_batches)
        if kept.version == name:
            return current
        current.close()
        return self._pinned(kept, batch) or current

    def _pinned(self, choice: Choice | None, batch: MicroBatch) -> FileMaster | None:
        """The version that was chosen, still with the same contents."""
        if choice is None:
            return None
        self._check_join(choice, batch)
        try:
            master = FileMaster(self.folder, self.io, choice.version)
        except MasterNotFound as exc:
            raise MasterNotFound(
                f"master {self.folder}: {batch} uses {choice.version}, which is gone; put that version back, "
                "or start the query with a new checkpoint"
            ) from exc
        if master.manifest.fingerprint != choice.fingerprint:
            raise StateError(
                f"master {self.folder}: {batch} uses {choice.version}, which is another table now; put the old master back, "
                "or start the query with a new checkpoint"
            )
        return master

    def _check_join(self, choice: Choice | None, batch: MicroBatch) -> None:
        if choice is not None and choice.join != self.join:
            raise StateError(
                f"master {self.folder}: the checkpoint of {batch} belongs to a join of {choice.join}, and this one is {self.join}; start "
                "the query with a new checkpoint, or, if it has both joins, give each a name of its own with operator="
            )


def versioned(
    master: FileMaster,
    *,
    follows: bool,
    pins: str | PathLike[str] | None,
    operator: str | None,
    on: Mapping[str, str],
    adds: Sequence[object],
    kept_batches: int,
) -> Versioned:
    """How tasks find their version of `master`. Joins that add the same columns are the same operator, unless they have names."""
    if operator is not None and not re.fullmatch(r"\w[\w.-]*", operator):
        raise UsageError(
            f"operator={operator!r}: need a name of letters, digits, '_', '-' and '.', it becomes a file name"
        )
    folder, io, planned = master.__reduce__()[1]
    told = json.dumps({"master": Path(folder).name, "on": dict(sorted(on.items()))}, ensure_ascii=True)
    name = operator or hashlib.sha256(json.dumps(adds).encode()).hexdigest()[:12]
    place = Path(folder, PINS) if pins is None else Path(pins).absolute()
    return Versioned(folder, io, planned, follows, str(place), name, told, kept_batches)
