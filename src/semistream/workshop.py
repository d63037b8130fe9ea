"""Setting a join up: sharing out the budget, building the parts, and the small verbs that the loop in join.py uses."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semistream import columns
from semistream.algorithms.record import Algorithm, Parts
from semistream.budget import Share, Slab, split
from semistream.parts.memory import I64
from semistream.pending import Pending
from semistream.plan import Output, Wait
from semistream.protocols import Block, Found, Master, Reader
from semistream.records import RowCodec
from semistream.reorder import Reorder, window_for
from semistream.report import build_report, empty_report
from semistream.settle import Settler
from semistream.stream_rows import StreamRows

_PIECE_ROWS = 16384  # rows of a batch that are encoded at once: the arrays for it are ours, so they must be few
_ROW_GUESS = StreamRows(RowCodec(pa.schema([pa.field("row", pa.binary(256), nullable=False)])), 0.0)


@dataclass(frozen=True)
class Options:
    """What the user asked for, checked."""

    algorithm: Algorithm
    memory_bytes: int
    stream_keys: list[str]
    how: str
    payload: list[tuple[str, str]]
    where: pc.Expression | None
    where_columns: list[str]
    null_safe: bool
    ordered: bool
    match_column: str | None
    wait: Wait


def _split(reader: Reader, options: Options, rows: StreamRows) -> dict[str, int]:
    """Bytes of every part."""
    return split(options.memory_bytes, lambda memory: _shares(reader, options, rows, memory))


def _shares(reader: Reader, options: Options, rows: StreamRows, memory: int) -> list[Share]:
    """What every part asks for. The largest page bounds a master row, so one output row always fits."""
    output_least = 32768 + reader.largest_page_bytes
    return [
        *reader.shares(),
        *options.algorithm.shares(reader, memory),
        Share("input", _piece_rows(memory) * _piece_row_bytes(rows.codec)),
        Share("output", output_least, weight=0.1, most=max(output_least, min(memory // 12, 4 << 20))),
        *([Share("reorder", output_least, weight=0.5)] if options.ordered else []),
        *rows.shares(_matches(memory)),
        Share("alignment", 8192),
    ]


def _matches(memory_bytes: int) -> int:
    return max(64, min(8192, memory_bytes // 4096))


def _piece_rows(memory_bytes: int) -> int:
    return max(64, min(_PIECE_ROWS, memory_bytes // 4096))


def _piece_row_bytes(codec: RowCodec) -> int:
    """Bytes of arrays that encoding one row takes: words, picks, sizes, slots, places, offsets and lengths of cells, null bytes."""
    return 8 * 8 + 24 * len(codec.cells) + len(codec.columns)


def smallest_check(master: Master, options: Options) -> None:
    """Refuse a budget that no stream could be joined in, before there is one. Stream rows are taken to be 256 bytes wide."""
    reader = master.reader()
    try:
        _split(reader, options, _ROW_GUESS)
    finally:
        reader.close()


class Workshop:
    """Everything one pass over a stream works with."""

    def __init__(self, master: Master, options: Options, output: Output, sample: pa.RecordBatch) -> None:
        self._options, self._keys, self._output = options, master.keys, output
        self._stream_schema = sample.schema
        stored = sample.schema if master.keys.hidden is None else sample.schema.append(master.keys.hidden)
        codec = RowCodec(stored)
        rows = StreamRows(codec, _heap_bytes(codec, self._with_hidden(sample.slice(0, 1000))))
        self._reader = master.reader()
        try:
            given = _split(self._reader, options, rows)
            self._slab = Slab(options.memory_bytes)
            self._slab.charge("input", given["input"])
            self._slab.charge("output", given["output"])
            self._reader.attach(self._slab, given["disk buffer"])
            self.pending = Pending(
                self._slab, rows, given["stream table"], _matches(options.memory_bytes), master.codec.width
            )
        except BaseException:
            self._reader.close()
            raise
        key_names = options.stream_keys
        self._settler = Settler(
            output,
            master,
            key_names,
            self.pending,
            self._slab.memory,
            given["output"],
            null_safe=options.null_safe,
            where=options.where,
            where_columns=options.where_columns,
        )
        self._reorder: Reorder | None = None
        if options.ordered:
            self._slab.charge("reorder", given["reorder"])
            row_bytes = codec.width + rows.heap_bytes + master.codec.width
            self._reorder = Reorder(output.schema, window_for(given["reorder"], row_bytes, master.most_rows_per_key))
        self.recipe = options.algorithm.build(Parts(self._reader, self.pending, given, key_names))
        self._position = 0
        self._arrivals: deque[tuple[int, float]] = deque(
            maxlen=4096
        )  # (position, time) of the pieces that may still wait
        self.left = 0  # tuples that have left

    def _with_hidden(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._keys.hidden is None:
            return batch
        return batch.append_column(self._keys.hidden, self._words(batch).hidden)

    def _words(self, batch: pa.RecordBatch) -> Any:
        return self._keys.words([batch.column(name) for name in self._options.stream_keys])

    # ------------------------------------------------------------------------------------------------ in

    def pieces(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """A batch cut so that the arrays made for a piece stay small."""
        if not batch.schema.equals(self._stream_schema):
            columns.refuse_schema(self._stream_schema, batch.schema, self._position)
        rows = _piece_rows(self._options.memory_bytes)
        if self._reorder is not None:
            rows = min(rows, max(1, self._reorder.window // 4))
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)

    def may_enter(self, piece: pa.RecordBatch) -> bool:
        """Whether the reorder buffer has room for a piece's positions."""
        return self._reorder is None or self._position + piece.num_rows <= self._reorder.limit

    def encode(self, piece: pa.RecordBatch) -> Generator[pa.RecordBatch, None, Block]:
        """Words and plain arrays of a piece. Tuples without a key are answered here: they match nothing."""
        words = self._words(piece)
        stored = piece if words.hidden is None else piece.append_column(self._keys.hidden, words.hidden)
        position, count = self._position, piece.num_rows
        self._position += count
        self._settler.counts.tuples_in += count
        picks: I64 = np.arange(count, dtype=np.int64)
        if words.missing is not None and not self._options.null_safe:
            keyless, picks = np.flatnonzero(words.missing), np.flatnonzero(words.missing == 0)
            if keyless.size:
                answer = self._settler.keyless(piece, keyless, position)
                if answer is not None:
                    yield from self._out(*answer)
                if self._reorder is not None:
                    self._reorder.finish(position + keyless, self._position)
        self._arrivals.append((position, time.monotonic()))
        return Block(words.words, self.pending.codec.encode(stored), picks, position)

    def overdue(self) -> bool:
        """Whether the oldest tuple has waited longer than `max_wait`."""
        wait, oldest = self._options.wait, self.pending.oldest()
        if oldest < 0 or (wait.tuples is None and wait.seconds is None):
            return False
        arrived = int(self.pending.positions(np.array([oldest], np.int64))[0])
        if wait.tuples is not None:
            return self._position - arrived > wait.tuples
        while len(self._arrivals) > 1 and self._arrivals[1][0] <= arrived:
            self._arrivals.popleft()
        return time.monotonic() - self._arrivals[0][1] > (wait.seconds or 0.0)

    # ------------------------------------------------------------------------------------------------ out

    def settle(self, found: Found) -> Iterator[pa.RecordBatch]:
        """Pairs and leavers become output rows; hands out the batches that became full."""
        for batch, positions in self._settler.settle(found):
            yield from self._out(batch, positions)
        if found.gone.size:
            self.left += found.gone.size
            if self._reorder is not None:
                self._reorder.finish(self.pending.positions(found.gone), self._position)
                if self._reorder.ready:
                    yield from self.emit()

    def emit(self) -> Iterator[pa.RecordBatch]:
        """Hand out what is collected, full or not."""
        if (batch := self._settler.flush()) is not None:
            yield from self._out(*batch)
        if self._reorder is not None:
            yield from self._reorder.release()

    def _out(self, batch: pa.RecordBatch, positions: I64) -> Iterator[pa.RecordBatch]:
        if self._reorder is not None:
            self._reorder.put(batch, positions)
            return
        yield batch

    def report(self, steps: int, busy_s: float) -> dict[str, Any]:
        """What the join did so far."""
        return build_report(
            empty_report(self._options.algorithm.name, self._options.memory_bytes),
            self._slab.bytes_by_part,
            self._settler.counts,
            self.pending,
            self._reader,
            steps,
            busy_s,
        )

    def close(self) -> None:
        """Let go of the master."""
        self._reader.close()


def _heap_bytes(codec: RowCodec, sample: pa.RecordBatch) -> float:
    """Average bytes of variable length in the rows of a sample."""
    sizes = codec.encode(sample).sizes
    return float(sizes.mean()) if sizes is not None and sizes.size else 16.0 * len(codec.cells)
