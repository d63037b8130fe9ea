"""START HERE. `Join`, and the only loop of the project: admit, step, emit.

A record's path:

    stream batch -> words -> admit -> stream table + arrival queue
                                          ^ probe
    master -> choose page -> disk buffer -+-> settle -> output batch        answered tuples leave

    keys.py      key columns to 64-bit words           masters/     pages of the master into the disk buffer
    pending.py   tuples that wait                      settle.py    pairs to output rows, by join type
    algorithms/  which page next, who leaves           budget.py    every byte of the above, handed out once
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Generator, Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from semistream import plan, state
from semistream.algorithms import find_algorithm
from semistream.errors import NoProgress
from semistream.overload import Told, parse_overload
from semistream.parts.compiler import announce_compilation
from semistream.protocols import Master
from semistream.report import empty_report
from semistream.sharing import Options, check_budget
from semistream.turns import Turns
from semistream.units import parse_bytes
from semistream.workshop import Workshop


class Join:
    """Joins a stream of Arrow record batches with a master table, exactly, within `memory` bytes.

    on            key: a name, a list of names, or {"stream column": "master column"}
    algorithm     a name of `ss.algorithms()`
    memory        the budget, in bytes or as text ("64MB")
    how           inner, left, left_semi, left_anti
    columns       master columns to add: None for all but the key, a list to choose, {"name": "new name"} to rename some
    where         a pyarrow expression that master rows must satisfy
    null_safe     whether a null key equals a null key
    ordered       whether rows leave in the order of the stream (with some algorithms they always do)
    match_column  name of a boolean column that says whether a match was found
    max_wait      longest wait of a tuple: a number of stream tuples, or "500ms"
    preset        parameter set of the algorithm: "tuned" (default), or "published" where both exist
    threads       how many threads may compute, for algorithms that can use several: None for as many as there are cores
    overload      what happens to tuples that find no room: "block" makes the stream wait, "shed" drops them after one step and counts them,
                  and a function does as well, and is called with record batches of what was dropped

    >>> import pyarrow as pa, semistream as ss, tempfile
    >>> master = ss.build_master(tempfile.mkdtemp() + "/p.master", pa.table({"id": [1, 2], "price": [0.5, 2.0]}), key="id")
    >>> join = ss.Join(master, on="id", memory="1MB", how="left")
    >>> [row for batch in join([pa.record_batch({"id": [2, 7]})]) for row in batch.to_pylist()]
    [{'id': 2, 'price': 2.0}, {'id': 7, 'price': None}]
    """

    def __init__(
        self,
        master: Master,
        on: plan.On,
        algorithm: str = "adaptive",
        memory: int | str = "64MB",
        how: str = "inner",
        columns: plan.Chosen = None,
        where: pc.Expression | None = None,
        null_safe: bool = False,
        ordered: bool = False,
        match_column: str | None = None,
        max_wait: int | str | dt.timedelta | None = None,
        preset: str | None = None,
        threads: int | None = None,
        *,
        overload: str | Told = "block",
    ) -> None:
        plan.check_open(master)
        recipe = find_algorithm(algorithm, master, preset)
        memory_bytes, ordered = parse_bytes(memory), ordered or recipe.ordered
        self._master = master
        self._options = Options(
            algorithm=recipe,
            memory_bytes=memory_bytes,
            stream_keys=plan.parse_on(on, master),
            how=plan.parse_how(how),
            payload=plan.parse_columns(columns, master),
            where=where,
            where_columns=plan.check_where(where, master),
            null_safe=null_safe,
            ordered=ordered,
            match_column=match_column,
            wait=plan.parse_wait(max_wait),
            preset=preset or "tuned",
            threads=1 if ordered else plan.parse_threads(threads, recipe.threads, memory_bytes),
            overload=parse_overload(overload),
        )
        self._run = _Run(master, self._options, self._plan, None)
        check_budget(master, self._options)

    def output_schema(self, stream_schema: pa.Schema) -> pa.Schema:
        """The schema of the output for a stream of this schema; raises what the join would raise before its first row."""
        output = self._plan(stream_schema).schema
        check_budget(self._master, self._options, stream_schema)
        return output

    def _plan(self, stream_schema: pa.Schema) -> plan.Output:
        asked = self._options
        columns = asked.payload, asked.match_column
        return plan.plan_output(stream_schema, asked.stream_keys, self._master, asked.how, *columns)

    def __call__(
        self, stream: Iterable[pa.RecordBatch | None], resume: bytes | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Output batches for a stream of batches; an item None says that nothing has arrived, so that waiting tuples may leave.

        With `resume`, what `save` gave, the join goes on from there: the stream begins with the item that was asked for then.
        """
        plan.check_stream(stream)
        saved = None if resume is None else state.read(resume, state.facts_of(self._master, self._options))
        self._run = _Run(self._master, self._options, self._plan, saved)
        return self._run.output(stream)

    def save(self) -> bytes:
        """All that waits, is cached or has been counted, to go on with `resume`, in another process too.

        Call it inside the stream's own generator, between two items: whatever was answered so far is with the caller then.
        """
        return self._run.save()

    def report(self) -> dict[str, Any]:
        """Counters, rate, waits and bytes by part, of the latest call; also while it runs."""
        return self._run.report()


class _Run:
    """One pass over one stream."""

    def __init__(self, master: Master, options: Options, plan_for: Any, saved: state.Saved | None) -> None:
        self._master, self._options, self._plan_for = master, options, plan_for
        self._shop: Workshop | None = None
        self._saved, self.turns = saved, Turns()
        self._idle = self._steps = 0
        self._last_report = empty_report(options.algorithm.name, options.memory_bytes)

    def output(self, stream: Iterable[pa.RecordBatch | None]) -> Iterator[pa.RecordBatch]:
        """`batches`, on the clock."""
        return self.turns.given(self.batches(self.turns.asked(stream)))

    def batches(self, stream: Iterable[pa.RecordBatch | None]) -> Generator[pa.RecordBatch, None, None]:
        """The loop."""
        try:
            if self._saved is not None:
                self._set_up(self._saved)
            for item in stream:
                if item is None:
                    yield from self._rest()
                elif not isinstance(item, pa.RecordBatch):
                    plan.refuse_item(item)
                elif item.num_rows:
                    yield from self._take(item)
                elif self._shop is not None:
                    self._shop.check(item.schema)
                else:
                    self._plan_for(item.schema)  # refuse a wrong schema now; set up when there is a row to measure
            while self._shop is not None and self._shop.area.waiting:
                yield from self._step()
            if self._shop is not None:
                yield from self._shop.emit()
        finally:
            self._last_report = self.report()
            if self._shop is not None:
                self._shop.close()
                self._shop = None

    def _set_up(self, begin: pa.RecordBatch | state.Saved) -> Workshop:
        """A workshop for the stream's first batch, or for what was saved."""
        announce_compilation()
        self._shop = shop = Workshop(self._master, self._options, self._plan_for(begin.schema), begin)
        if isinstance(begin, state.Saved):
            self._steps, self._idle, self.turns.busy_s = shop.resume(begin)
            self._saved = None
        return shop

    def save(self) -> bytes:
        self.turns.check_asking()
        facts, shop = state.facts_of(self._master, self._options), self._shop
        if shop is None:
            return state.write(facts, None)
        with shop.resting():  # until the bytes are written: what is saved are views
            return state.write(facts, shop.save([self._steps, self._idle, self.turns.busy_s]))

    def _take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Admit a batch, piece by piece, stepping whenever somebody has waited too long."""
        shop = self._shop or self._set_up(batch)
        shop.check(batch.schema)
        for piece in shop.pieces(batch):
            yield from self._enter(shop, piece)
            while shop.overdue():
                yield from self._step()
        yield from shop.emit()

    def _enter(self, shop: Workshop, piece: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Admit a piece, stepping whenever there is no room: as often as it takes, or once and what then has no room is shed."""
        steps = self._options.overload.steps
        while not shop.may_enter(piece):
            if not steps:
                shop.shed(piece, None)
                return
            steps -= 1
            yield from self._step()
        block = yield from shop.encode(piece)
        block = yield from shop.answer(block)
        while block.picks.size:
            taken = shop.admit(block)
            block = block._replace(picks=block.picks[taken:])
            if not block.picks.size:
                return
            if not steps and not shop.area.holding:
                shop.shed(piece, block)
                return
            steps = max(0, steps - 1)
            yield from self._step()

    def _rest(self) -> Iterator[pa.RecordBatch]:
        """Nothing has arrived: one step for those who wait, more for those who have waited too long."""
        shop = self._shop
        if shop is None:
            return
        if shop.area.waiting:
            yield from self._step()
        while shop.overdue():
            yield from self._step()
        yield from shop.emit()

    def _step(self) -> Iterator[pa.RecordBatch]:
        """One step of the recipe; a recipe that lets nobody go for too long is broken, and says so instead of looping."""
        assert self._shop is not None
        shop, before, self._steps = self._shop, self._shop.left, self._steps + 1
        yield from shop.step()
        self._idle = 0 if shop.left > before or not shop.area.waiting else self._idle + 1
        if self._idle > shop.recipe.patience:
            raise NoProgress(
                f"algorithm {self._options.algorithm.name}: {shop.area.waiting} tuples wait and none has left for {self._idle} steps; "
                "this is a bug in semistream, please report it with the output of report()"
            )

    def report(self) -> dict[str, Any]:
        return self._shop.report(self._steps, self.turns.busy_s) if self._shop is not None else self._last_report
