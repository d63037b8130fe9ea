"""Setting a join up: sharing out the budget, building the parts, and the small verbs that the loop in join.py uses."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import numpy as np
import pyarrow as pa

from semistream import columns
from semistream.algorithms.record import Parts
from semistream.arrivals import Arrivals
from semistream.budget import Slab
from semistream.crew import Crew
from semistream.keys import NOWHERE
from semistream.lanes import Batch
from semistream.parts.memory import I64
from semistream.plan import Output
from semistream.protocols import Master
from semistream.records import RowCodec
from semistream.reorder import Reorder
from semistream.report import build_report, empty_report
from semistream.settle import Settler
from semistream.sharing import Options, heap_bytes_of, open_batches, piece_rows, share_out
from semistream.snapshot import take
from semistream.state import Saved, restore
from semistream.stream_rows import StreamRows
from semistream.stream_side import Block


class Workshop:
    """Everything one pass over a stream works with. Set up for the stream's first batch, or to go on with what was saved."""

    def __init__(self, master: Master, options: Options, output: Output, begin: pa.RecordBatch | Saved) -> None:
        self._options, self._keys = options, master.keys
        self._stream_schema, self._position = begin.schema, 0
        stored = begin.schema if master.keys.hidden is None else begin.schema.append(master.keys.hidden)
        codec = RowCodec(stored)
        if isinstance(begin, Saved):
            rows = StreamRows(codec, begin.heap_bytes)
        else:
            rows = StreamRows(codec, heap_bytes_of(codec, self._with_hidden(begin.slice(0, 1000))))
        self._reader = master.reader()
        self._closing = ExitStack()  # the reader last
        self._closing.callback(self._reader.close)
        try:
            self._build(master, output, rows)
        except BaseException:
            self._closing.close()
            raise
        self._rows = rows
        self._arrivals = Arrivals(options.wait)

    def _build(self, master: Master, output: Output, rows: StreamRows) -> None:
        """Share the budget out and make every part."""
        options, codec = self._options, rows.codec
        given = share_out(self._reader, options, rows)
        self._slab = Slab(options.memory_bytes)
        self._slab.charge("input", given["input"])
        self._slab.charge("output", given["output"])
        self._reader.attach(self._slab)
        settlers = [
            Settler(
                output,
                master,
                options.stream_keys,
                codec,
                self._slab.memory,
                given["output"] // open_batches(options.threads),
                null_safe=options.null_safe,
                where=options.where,
                where_columns=options.where_columns,
                ordered=options.ordered,
            )
            for _ in range(options.threads)
        ]
        apart = options.algorithm.steps_apart
        threads = 1 if apart and not self._reader.threads else options.threads
        self._reorder: Reorder | None = None
        if options.ordered:
            self._slab.charge("reorder", given["reorder"])
            row_bytes = codec.width + rows.heap_bytes + master.row_bytes
            self._reorder = Reorder(output.schema, given["reorder"], row_bytes, master.most_rows_per_key)
        self.recipe = options.algorithm.build(
            Parts(
                reader=self._reader,
                slab=self._slab,
                given=given,
                rows=rows,
                master_codec=master.codec,
                key_names=options.stream_keys,
                preset=options.preset,
                threads=threads,
                closing=self._closing,
                master_rows=master.rows,
                master_row_bytes=master.row_bytes,
            )
        )
        stranded = options.algorithm.threads > 1 and not apart
        self._crew = Crew(self.recipe, settlers[:threads], stranded=stranded, apart=apart and threads > 1)
        self._closing.callback(self._crew.close)
        self.area = self.recipe.area

    def _with_hidden(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._keys.hidden is None:
            return batch
        return batch.append_column(self._keys.hidden, self._words(batch).hidden)

    def _words(self, batch: pa.RecordBatch) -> Any:
        return self._keys.words([batch.column(name) for name in self._options.stream_keys])

    # ------------------------------------------------------------------------------------------------ in

    def check(self, schema: pa.Schema) -> None:
        """Refuse a batch whose schema is not the first one's."""
        if not schema.equals(self._stream_schema):
            columns.refuse_schema(self._stream_schema, schema, self._position)

    def pieces(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """A batch cut so that the arrays made for a piece stay small."""
        rows = piece_rows(self._options.memory_bytes, self._rows)
        if self._reorder is not None:
            rows = min(rows, max(1, self._reorder.window // 4))
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)

    def may_enter(self, piece: pa.RecordBatch) -> bool:
        """Whether the reorder buffer has room for a piece's positions."""
        return self._reorder is None or not self.area.waiting or self._position + piece.num_rows <= self._reorder.limit

    def encode(self, piece: pa.RecordBatch) -> Generator[pa.RecordBatch, None, Block]:
        """Words and plain arrays of a piece. Tuples without a key are answered here: they match nothing."""
        words = self._words(piece)
        stored = piece if words.hidden is None else piece.append_column(self._keys.hidden, words.hidden)
        position, count = self._position, piece.num_rows
        self._position += count
        self._crew.settlers[0].counts.tuples_in += count
        picks: I64 = np.arange(count, dtype=np.int64)
        if words.missing is not None:
            lost = words.missing == NOWHERE if self._options.null_safe else words.missing != 0
            keyless, picks = np.flatnonzero(lost), np.flatnonzero(~lost)
            if keyless.size:
                for answer in self._crew.settlers[0].keyless(piece, keyless, position):
                    yield from self._out(*answer)
                if self._reorder is not None:
                    self._reorder.finish(position + keyless, self._position)
        self._arrivals.note(position)
        return Block.of(words.words, self._rows.codec.encode(stored), picks, position)

    def answer(self, block: Block) -> Generator[pa.RecordBatch, None, Block]:
        """Let the recipe answer what need not wait; returns what is left of the block."""
        left: Block = yield from self._all_out(self._crew.answer(block))
        return left

    def admit(self, block: Block) -> int:
        """Let the recipe take what has room; returns how many."""
        return self._crew.admit(block)

    def shed(self, piece: pa.RecordBatch, block: Block | None) -> None:
        """Drop what the block has left of a piece, or (None) all of a piece that may not enter: it takes no place in the stream."""
        self._options.overload.shed(piece, block, self._crew.settlers[0].counts)
        if block is not None and self._reorder is not None:
            self._reorder.finish(block.position + block.picks, self._position)

    def step(self) -> Iterator[pa.RecordBatch]:
        """One iteration of the recipe."""
        yield from self._all_out(self._crew.step())

    def overdue(self) -> bool:
        """Whether the oldest tuple has waited longer than `max_wait`; the recipe is told."""
        self.area.hurry = self._arrivals.overdue(self.area.oldest_position(), self._position)
        return self.area.hurry

    # ------------------------------------------------------------------------------------------------ out

    @property
    def left(self) -> int:
        """Tuples that have left."""
        return self._crew.counts.finished

    def emit(self) -> Iterator[pa.RecordBatch]:
        """Hand out what is collected, full or not."""
        yield from self._all_out(self._crew.flush())
        if self._reorder is not None:
            yield from self._reorder.release()

    def _all_out(self, batches: Generator[Batch, None, Any]) -> Generator[pa.RecordBatch, None, Any]:
        """Hand batches out as they come; returns what they return."""
        try:
            while True:
                try:
                    outcome = next(batches)
                except StopIteration as end:
                    return end.value
                yield from self._out(*outcome)
        finally:
            batches.close()

    def _out(self, batch: pa.RecordBatch | None, places: I64) -> Iterator[pa.RecordBatch]:
        """Hand a batch out; without one, the tuples at these places of the stream have left, and all their rows are out or collected."""
        if self._reorder is None:
            assert batch is not None
            yield batch
        elif batch is not None:
            self._reorder.put(batch, places)
        else:
            self._reorder.finish(places, self._position)
            if self._reorder.ready:
                yield from self.emit()

    def report(self, steps: int, busy_s: float) -> dict[str, Any]:
        """What the join did so far."""
        return build_report(
            empty_report(self._options.algorithm.name, self._options.memory_bytes),
            self._slab.bytes_by_part,
            self._crew.counts,
            self.recipe,
            self._reader,
            self._crew.steps(steps),
            busy_s,
        )

    # ------------------------------------------------------------------------------------------------ saving

    def resting(self) -> AbstractContextManager[None]:
        """While this lasts, nobody is at work."""
        return self._crew.resting()

    def save(self, counters: Any) -> Saved:
        """All that must go on; `counters` are the caller's own. To be used while resting, and no batch is open."""
        taken = take([counters, *self._soft_state()], self._slab)
        return Saved(self._stream_schema, self._rows.heap_bytes, self._slab.bytes_by_part, taken)

    def resume(self, saved: Saved) -> Any:
        """Go on with what was saved, having just been set up; returns the caller's counters."""
        with self.resting():
            counters, self._position, *_ = restore(saved, [None, *self._soft_state()], self._slab)
        return counters

    def _soft_state(self) -> list[Any]:
        # the reader knows buffers in the order they were made, a recipe may have swapped them: so it comes first
        return [self._position, self._arrivals, self._reorder, self._reader, self._crew]

    def close(self) -> None:
        """End the threads and let go of the master."""
        self._closing.close()
