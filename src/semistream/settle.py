"""Settling candidate pairs: verify keys, apply the filter on the master, note who matched, and collect output rows.

A recipe hands out pairs whose key words are equal, and tuples that leave for good. What that means for the output depends on the
join type only, and is decided here, so no recipe knows of join types:

    pairs -> [same key?] -> [where] -> matched flags -> inner, left: stream row + master row | semi: stream row, the first time
    gone  ->                           unmatched ones -> left: stream row + nulls | anti: stream row
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semistream import arranging, kinds
from semistream.counts import Counts
from semistream.errors import BudgetError
from semistream.parts import rows as row_kernels
from semistream.parts.memory import I64, U8, Memory
from semistream.parts.stamps import mark_matched, positions, unmatched
from semistream.parts.words import KeyPlaces, RowSide
from semistream.plan import Output
from semistream.protocols import Found, Master
from semistream.records import RowCodec, Stage
from semistream.stream_side import NO_SLOTS, KeyCheck, Side

_BATCH_BYTES = (
    4 << 20
)  # an output batch is closed at this size: larger ones gain nothing, and wide rows may take all there is
_ANY = 1 << 40
_FEW = 256  # rows: to copy fewer is not worth a call of its own


class Settler:
    """Turns `Found` into output batches of at most `staging_bytes`."""

    saved = ("counts", "_cell_average")  # between two items of the stream no batch is open

    def __init__(
        self,
        output: Output,
        master: Master,
        stream_keys: list[str],
        codec: RowCodec,
        memory: Memory,
        staging_bytes: int,
        *,
        null_safe: bool,
        where: pc.Expression | None,
        where_columns: list[str],
        ordered: bool,
    ) -> None:
        self.output, self.counts, self._ordered = output, Counts(), ordered
        self._master, self._memory, self._where = master, memory, where
        self._where_stage = [n for n in where_columns if n != master.keys.in_words]
        self._key_in_where = master.keys.in_words if master.keys.in_words in where_columns else None
        self._stream = Stage(codec, output.stream_names)
        self._rows = Stage(master.codec, [name for name, _ in output.payload])
        self._staging_bytes = staging_bytes
        self._batch_bytes = min(staging_bytes, _BATCH_BYTES)
        if any(kinds.is_nested(field.type) for field in output.schema):
            self._batch_bytes //= 4  # nested values are decoded from what is staged, level by level
        self._most_rows = min((kinds.most_rows(field.type) for field in output.schema), default=_ANY)
        self._cell_average = np.zeros(len(self._stream.cells) + len(self._rows.cells))
        self._positions: I64 = NO_SLOTS
        self._match_flags: U8 = np.zeros(0, np.uint8)
        words_suffice = master.keys.exact and not master.has_null_keys and not null_safe
        self._check = None if words_suffice else _key_check(codec, stream_keys, master, null_safe)

    def settle(self, found: Found) -> Iterator[tuple[pa.RecordBatch | None, I64]]:
        """Take pairs and leavers in; hand out batches that became full, each with its rows' stream positions.

        If the output is to be ordered, leavers' positions follow, without a batch.
        """
        if found.picks.size:
            yield from self._pairs(found.side, found.picks, found.row_at, found.heap_at)
        if found.gone.size:
            yield from self._gone(found.side, found.gone)
            if self._ordered:
                yield None, positions(found.side.stamps, found.gone)

    def _pairs(self, side: Side, picks: I64, row_at: I64, heap_at: I64) -> Iterator[tuple[pa.RecordBatch, I64]]:
        keep = self._keep(side, picks, row_at, heap_at)
        if keep is not None:
            self.counts.pairs_refused += picks.size - int(np.count_nonzero(keep))
            picks, row_at, heap_at = picks[keep], row_at[keep], heap_at[keep]
        first = np.empty(picks.size, np.uint8)
        self.counts.matched += mark_matched(side.stamps, picks, first)
        if self.output.how == "left_semi":
            keep = first == 1
            picks, row_at, heap_at = picks[keep], row_at[keep], heap_at[keep]
        if self.output.how != "left_anti" and picks.size:
            yield from self._collect(side, picks, row_at, heap_at, True)

    def _gone(self, side: Side, gone: I64) -> Iterator[tuple[pa.RecordBatch, I64]]:
        lonely = unmatched(side.stamps, gone)
        self.counts.finished += gone.size
        self.counts.unmatched += lonely.size
        if lonely.size and self.output.how in ("left", "left_anti"):
            yield from self._collect(side, lonely, lonely, lonely, False)  # no rows: the places are not looked at

    def keyless(self, batch: pa.RecordBatch, missing: I64, position: int) -> Iterator[tuple[pa.RecordBatch, I64]]:
        """Tuples without a key never match and never wait: the answer for them at once, if there is one."""
        self.counts.finished += missing.size
        self.counts.unmatched += missing.size
        if self.output.how not in ("left", "left_anti"):
            return
        row_bytes = batch.nbytes / batch.num_rows + self._rows.row_bytes
        most = max(1, min(self._most_rows, int(self._batch_bytes / (row_bytes + 1))))
        for start in range(0, missing.size, most):
            picks = missing[start : start + most]
            added = self._nothing(picks.size)
            if self.output.match_column is not None:
                added.append(pa.array(np.zeros(picks.size, bool)))
            self.counts.rows_out += picks.size
            rows = arranging.take(batch, picks)
            yield pa.record_batch([*rows.columns, *added], schema=self.output.schema), position + picks

    def _nothing(self, count: int) -> list[pa.Array]:
        """The master's columns for rows that match nothing."""
        stage = Stage(self._master.codec, [name for name, _ in self.output.payload])
        stage.open(count, np.zeros(len(stage.cells), np.int64))
        stage.add_nothing(count)
        return stage.close()

    def _keep(self, side: Side, picks: I64, row_at: I64, heap_at: I64) -> np.ndarray | None:
        keep = None
        if self._check is not None:
            same = np.empty(picks.size, np.uint8)
            side.same_keys(picks, RowSide(self._memory, row_at, heap_at), self._check, same)
            keep = same == 1
        if self._where is not None:
            passing = self._passing(side, picks, row_at, heap_at)
            keep = passing if keep is None else keep & passing
        return keep

    def _passing(self, side: Side, picks: I64, row_at: I64, heap_at: I64) -> np.ndarray:
        """Which master rows the filter lets through."""
        names = list(self._where_stage)
        arrays = self._master.codec.unpack(self._memory, row_at, heap_at, names)
        if self._key_in_where is not None:
            names.append(self._key_in_where)
            column, present = self._master.codec.by_name[self._key_in_where], np.empty(picks.size, np.uint8)
            row_kernels.gather_valid(self._memory.b1, row_at, column.null_at, column.null_bit, present, 0)
            arrays.append(self._master.keys.from_words(side.words[picks], 1 - present))
        numbers = pa.array(np.arange(picks.size))
        kept = pa.table([*arrays, numbers], names=[*names, "\0row"]).filter(self._where)["\0row"]
        passing = np.zeros(picks.size, bool)
        passing[np.asarray(kept)] = True
        return passing

    # ------------------------------------------------------------------------------------------------ output batches

    def _collect(
        self, side: Side, picks: I64, row_at: I64, heap_at: I64, matched: bool
    ) -> Iterator[tuple[pa.RecordBatch, I64]]:
        """Copy rows into the open batch, closing it when it is full."""
        theirs = self._rows.cell_bytes(self._memory, row_at) if matched else np.zeros(len(self._rows.cells), np.int64)
        cells = np.concatenate([side.cell_bytes(self._stream, picks), theirs])
        split = len(self._stream.cells)
        if not (self._stream.fits(picks.size, cells[:split]) and self._rows.fits(picks.size, cells[split:])):
            left = self._stream.room - self._stream.rows
            if (
                not cells.size and _FEW < left < picks.size
            ):  # without cells it is known how many rows the open batch still takes
                yield from self._collect(side, picks[:left], row_at[:left], heap_at[:left], matched)
                picks, row_at, heap_at = picks[left:], row_at[left:], heap_at[left:]
            if (full := self.flush()) is not None:
                yield full
            if not self._open(picks.size, cells):
                half = picks.size // 2
                yield from self._collect(side, picks[:half], row_at[:half], heap_at[:half], matched)
                yield from self._collect(side, picks[half:], row_at[half:], heap_at[half:], matched)
                return
        at = self._stream.rows
        if self._ordered:
            self._positions[at : at + picks.size] = positions(side.stamps, picks)
        if self._match_flags.size:
            self._match_flags[at : at + picks.size] = matched
        side.fill(self._stream, picks)
        if matched:
            self._rows.add(self._memory, row_at, heap_at)
        else:
            self._rows.add_nothing(picks.size)

    def _open(self, rows: int, cells: I64) -> bool:
        """Open a batch that has room for these rows at least; False if they must be split."""
        fixed = self._stream.row_bytes + self._rows.row_bytes + 8 + (1 if self.output.match_column else 0)
        needed = fixed * rows + int(cells.sum())
        if rows > 1 and (needed > self._batch_bytes or rows > self._most_rows):
            return False
        if needed > self._staging_bytes:
            smallest = int(1.1 * self._memory.b1.size * needed / self._staging_bytes)  # this share of it was enough
            raise BudgetError(
                f"output: one row takes {needed} bytes and {self._staging_bytes} are set aside for output; drop wide columns, or give "
                f"the join {smallest} bytes",
                part="output",
                needed_bytes=needed,
                smallest_bytes=smallest,
            )
        average = cells / rows
        self._cell_average = np.maximum(average, 0.5 * (self._cell_average + average))
        room = max(rows, min(self._most_rows, int(self._batch_bytes / (fixed + self._cell_average.sum() * 1.1))))
        cell_room = np.maximum(cells, (self._cell_average * room * 1.1).astype(np.int64))
        split = len(self._stream.cells)
        self._stream.open(room, cell_room[:split])
        self._rows.open(room, cell_room[split:])
        self._positions = np.empty(room if self._ordered else 0, np.int64)
        self._match_flags = np.empty(room if self.output.match_column is not None else 0, np.uint8)
        return True

    def flush(self) -> tuple[pa.RecordBatch, I64] | None:
        """Close the open batch, if there is one."""
        rows = self._stream.rows
        if not rows:
            return None
        arrays = [*self._stream.close(), *self._rows.close()]
        if self.output.match_column is not None:
            arrays.append(pa.array(self._match_flags[:rows] == 1))
        self.counts.rows_out += rows
        return pa.record_batch(arrays, schema=self.output.schema), self._positions[:rows]


def _key_check(stream: RowCodec, stream_keys: list[str], master: Master, null_safe: bool) -> KeyCheck:
    """Where both sides show their keys."""
    cell = master.keys.cell_name
    hidden = master.keys.hidden is not None
    name = cell if hidden and cell else stream_keys[0]
    theirs = master.codec.by_name[cell or master.keys.fields[0].name]
    single = len(stream_keys) == 1
    nulls = (stream.by_name[stream_keys[0]], master.codec.by_name[master.keys.fields[0].name])
    places = [column.name for column in stream.columns]
    return KeyCheck(
        places.index(name),
        places.index(stream_keys[0]),
        KeyPlaces(nulls[0].null_at, nulls[0].null_bit if single else 0, stream.by_name[name].offset if cell else -1),
        KeyPlaces(nulls[1].null_at, nulls[1].null_bit if single else 0, theirs.offset if cell else -1),
        null_safe,
    )
