"""Sharing the budget out: what every part of a join asks for."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from semistream import kinds
from semistream.algorithms.record import Algorithm
from semistream.budget import Share, split
from semistream.overload import Overload
from semistream.plan import Wait
from semistream.protocols import Master, Reader
from semistream.records import RowCodec
from semistream.stream_rows import StreamRows, match_count

_PIECE_ROWS = 32768  # rows of a batch that are encoded at once: the arrays for it are ours, so they must be few
_OUTPUT_SHARE = 1 / 16
CELL_GUESS_BYTES = 16.0  # of a text value nobody has seen yet
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
    preset: str
    threads: int
    overload: Overload


def share_out(reader: Reader, options: Options, rows: StreamRows) -> dict[str, int]:
    """Bytes of every part."""
    return split(options.memory_bytes, lambda memory: _shares(reader, options, rows, memory))


def _shares(reader: Reader, options: Options, rows: StreamRows, memory: int) -> list[Share]:
    """What every part asks for. The largest page bounds a master row, so one output row always fits."""
    output_least = 32768 + reader.largest_page_bytes
    threads, algorithm = options.threads, options.algorithm
    # an open batch for every thread, and those on their way from other threads to the caller
    output = _OUTPUT_SHARE * memory if threads == 1 else 2 * _OUTPUT_SHARE * memory
    if algorithm.waiting_shares is None:
        waiting = rows.shares(match_count(memory))
    else:
        waiting = algorithm.waiting_shares(reader, rows, memory, threads)
    return [
        *reader.shares(),
        *options.algorithm.shares_for(options.preset)(reader, memory),
        Share("input", int(piece_rows(memory, rows) * _piece_row_bytes(rows))),
        Share(
            "output",
            open_batches(threads) * output_least,
            weight=0.1,
            most=max(open_batches(threads) * output_least, int(output)),
        ),
        *([Share("reorder", output_least, weight=0.5)] if options.ordered else []),
        *waiting,
        Share("alignment", 8192),
    ]


def open_batches(threads: int) -> int:
    """Output batches that exist at a time: one being filled by each thread, and two finished ones between threads."""
    return threads if threads == 1 else threads + 2


def piece_rows(memory_bytes: int, rows: StreamRows) -> int:
    """Rows of a batch that are encoded at once."""
    return max(16, min(_PIECE_ROWS, memory_bytes // 1536, int(memory_bytes / 24 / _piece_row_bytes(rows))))


def _piece_row_bytes(rows: StreamRows) -> float:
    """Bytes of arrays that encoding one row takes: words, picks, sizes, slots, places, offsets and lengths of cells, null bytes.

    Text stays in Arrow's buffers; wrapped text (views, dictionaries) is copied; nested values are encoded, level by level, and several
    copies live at a time.
    """
    types = [column.type for column in rows.codec.columns]
    copies = (
        6 if any(kinds.is_nested(kind) for kind in types) else 2 if any(kinds.is_wrapped(kind) for kind in types) else 0
    )
    return 8 * 8 + 24 * len(rows.codec.cells) + len(rows.codec.columns) + copies * rows.heap_bytes


def check_budget(master: Master, options: Options, stream: pa.Schema | None = None) -> None:
    """Refuse a budget that is too small, before there is a stream. Without its schema, rows are taken to be 256 bytes wide."""
    rows = _ROW_GUESS
    if stream is not None:
        codec = RowCodec(stream)
        rows = StreamRows(codec, CELL_GUESS_BYTES * len(codec.cells))
    reader = master.reader()
    try:
        share_out(reader, options, rows)
    finally:
        reader.close()


def heap_bytes_of(codec: RowCodec, sample: pa.RecordBatch) -> float:
    """Average bytes of variable length in the rows of a sample."""
    sizes = codec.encode(sample).sizes
    return float(sizes.mean()) if sizes is not None and sizes.size else CELL_GUESS_BYTES * len(codec.cells)
