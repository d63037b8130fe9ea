"""Arrow batches <-> packed rows, for a given schema.

`RowCodec` plans where every column lies in a row (parts/rows.py draws one) and packs batches into rows anywhere in a slab. `Stage`
collects rows from anywhere back into Arrow columns. Stream rows, master pages and caches all use these two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from semistream import columns, kinds
from semistream.errors import ColumnError
from semistream.parts import rows
from semistream.parts.memory import I64, U8, Memory, view
from semistream.row_plan import StoredColumn, alignment, plan_row


class Encoded(NamedTuple):
    """A batch ready to be packed: its columns as plain arrays, and the heap bytes of every row (None: the schema has no cells)."""

    rows: int
    plains: list[columns.Plain]
    sizes: I64 | None


class RowCodec:
    """Packs and unpacks rows of one schema. A column named in `in_words` takes no room but its null bit: its key word holds it."""

    saved = ()

    def __init__(self, schema: pa.Schema, in_words: str | None = None) -> None:
        self.schema = schema
        self.columns = plan_row(schema, in_words)
        self.by_name = {column.name: column for column in self.columns}
        nullable = [column for column in self.columns if column.null_bit]
        self.nulls_at = min((column.null_at for column in nullable), default=0)
        self.null_bytes = -(-len(nullable) // 8)
        fixed_end = max((column.offset + column.size for column in self.columns), default=0)
        align = max([alignment(column.size) for column in self.columns], default=1)
        self.align = align
        self.width = -(-max(fixed_end, self.nulls_at + self.null_bytes) // align) * align
        self.cells = [column for column in self.columns if column.is_cell]

    def encode(self, batch: pa.RecordBatch) -> Encoded:
        """Plain arrays of a batch whose columns stand in the schema's order."""
        plains = [columns.to_plain(array) for array in batch.columns]
        for plain, column in zip(plains, self.columns, strict=True):
            if plain.valid is not None and not column.null_bit:
                raise ColumnError(
                    f"column {column.name!r} is declared to have no nulls and has {int((plain.valid == 0).sum())}; declare it nullable"
                )
        sizes = None
        if self.cells:
            sizes = np.zeros(batch.num_rows, np.int64)
            for plain, column in zip(plains, self.columns, strict=True):
                if column.is_cell:
                    sizes += np.diff(plain.starts)[: batch.num_rows]
        return Encoded(batch.num_rows, plains, sizes)

    def pack(self, encoded: Encoded, picks: I64, memory: Memory, row_at: I64, heap_at: I64) -> None:
        """Write the picked rows: their fixed parts at `row_at`, their cells from `heap_at` on."""
        if self.null_bytes:
            rows.clear_nulls(memory.b1, row_at, self.nulls_at, self.null_bytes)
        used = np.zeros(picks.size if self.cells else 0, np.int64)
        for column, plain in zip(self.columns, encoded.plains, strict=True):
            if column.is_cell:
                rows.pack_cells(plain.starts, plain.data, picks, memory, row_at, heap_at, used, column.offset)
            elif column.size:
                self._pack_fixed(column, plain, picks, memory, row_at)
            if plain.valid is not None:
                rows.pack_nulls(plain.valid, picks, memory.b1, row_at, column.null_at, column.null_bit)

    @staticmethod
    def _pack_fixed(column: StoredColumn, plain: columns.Plain, picks: I64, memory: Memory, row_at: I64) -> None:
        views: dict[int, NDArray[Any]] = {1: memory.b1, 2: memory.b2, 4: memory.b4, 8: memory.b8}
        if column.size in views:
            rows.pack_words(plain.values, picks, views[column.size], row_at, column.offset)
        else:
            rows.pack_bytes(plain.values, column.size, picks, memory.b1, row_at, column.offset)

    def unpack(self, memory: Memory, row_at: I64, heap_at: I64, names: Sequence[str] | None = None) -> list[pa.Array]:
        """Columns of rows, as new Arrow arrays."""
        stage = Stage(self, names)
        stage.open(row_at.size, stage.cell_bytes(memory, row_at))
        stage.add(memory, row_at, heap_at)
        return stage.close()


class Stage:
    """Collects chosen columns of rows into new Arrow arrays: `open`, `add` as often as there is room, `close`.

    Every `open` takes new memory: arrays that were closed belong to whoever has them.
    """

    def __init__(self, codec: RowCodec, names: Sequence[str] | None = None) -> None:
        self.columns = [codec.by_name[name] for name in names] if names is not None else codec.columns
        self.cells = [column for column in self.columns if column.is_cell]
        fixed = [column for column in self.columns if not column.is_cell and column.size]
        places = {column.name: at for at, column in enumerate(codec.columns)}
        self._plain_at = [places[column.name] for column in self.columns]
        self._fixed = rows.Columns(
            np.array([column.offset for column in fixed], np.int64),
            np.array([column.size for column in fixed], np.int64),
        )
        self.row_bytes = sum(c.size for c in fixed) + 8 * len(self.cells) + sum(1 for c in self.columns if c.null_bit)
        self._bare = [kinds.is_bare(column.type) for column in self.columns]
        self.room = 0
        self.rows = 0

    def cell_bytes(self, memory: Memory, row_at: I64) -> I64:
        """Bytes of every cell column over rows."""
        return np.array([rows.cell_bytes(memory.b4, row_at, column.offset) for column in self.cells], np.int64)

    def open(self, room: int, cell_room: I64) -> None:
        """Take memory for `room` rows and so many bytes of every cell column: one block, of which every column has a part.

        A piece of memory for each column, of another length in every batch, left holes in Arrow's pool as large as half the budget.
        """
        self.room, self.rows, self._cell_room = room, 0, cell_room
        kinds_of_ends = [np.dtype(kinds.offset_dtype(column.type)) for column in self.cells]
        sizes = [*(self._fixed.size * room), *((room + 1) * kind.itemsize for kind in kinds_of_ends), *cell_room]
        places = np.cumsum([0] + [int(size) // 64 * 64 + 64 for size in sizes]).astype(np.int64)
        self._block, block = columns.new_bytes(int(places[-1]))
        parts = [block[at:end] for at, end in zip(places[:-1].tolist(), places[1:].tolist(), strict=True)]
        fixed, split = self._fixed.size.size, self._fixed.size.size + len(self.cells)
        self._target = rows.Target(view(block), places[:fixed])
        self._ends = [part.view(kind) for part, kind in zip(parts[fixed:split], kinds_of_ends, strict=True)]
        self._data = parts[split:]
        for ends in self._ends:
            ends[0] = 0
        self._valid: dict[str, U8] = {}

    def fits(self, count: int, cell_bytes: I64) -> bool:
        """Whether so many more rows with so many cell bytes fit."""
        used = [int(ends[self.rows]) for ends in self._ends] if self.room else []
        return self.rows + count <= self.room and all(
            u + n <= room for u, n, room in zip(used, cell_bytes, self._cell_room, strict=True)
        )

    def add(self, memory: Memory, row_at: I64, heap_at: I64) -> None:
        """Append rows."""
        if self._fixed.size.size:
            rows.gather_fixed(memory, row_at, self._fixed, self._target, self.rows)
        for column, ends, data in zip(self.cells, self._ends, self._data, strict=True):
            rows.gather_cells(memory, row_at, heap_at, column.offset, ends, data, self.rows)
        for column in self.columns:
            if column.null_bit:
                self._add_valid(column, memory, row_at)
        self.rows += row_at.size

    def add_nothing(self, count: int) -> None:
        """Append rows of nulls."""
        stop = self.rows + count
        for size, at in zip(self._fixed.size.tolist(), self._target.column_at.tolist(), strict=True):
            self._target.memory.b1[at + self.rows * size : at + stop * size] = 0
        for ends in self._ends:
            ends[self.rows + 1 : stop + 1] = ends[self.rows]
        for column in self.columns:
            self._valid_of(column)[self.rows : stop] = 0
        self.rows = stop

    def plain_cell_bytes(self, encoded: Encoded, picks: I64) -> I64:
        """As `cell_bytes`, for rows of a batch."""
        plains = [encoded.plains[at] for at, column in zip(self._plain_at, self.columns, strict=True) if column.is_cell]
        return np.array([rows.picked_bytes(plain.starts, picks) for plain in plains], np.int64)

    def add_plain(self, encoded: Encoded, picks: I64) -> None:
        """Append rows of a batch."""
        block, fixed, cell = self._target.memory, 0, 0
        views: dict[int, NDArray[Any]] = {1: block.b1, 2: block.b2, 4: block.b4, 8: block.b8}
        for column, place in zip(self.columns, self._plain_at, strict=True):
            plain = encoded.plains[place]
            if column.is_cell:
                rows.take_cells(plain.starts, plain.data, picks, self._ends[cell], self._data[cell], self.rows)
                cell += 1
            elif size := column.size:
                at = int(self._target.column_at[fixed]) + self.rows * size
                if size in views:
                    rows.take_words(plain.values, picks, views[size], at // size)
                else:
                    rows.take_bytes(plain.values, size, picks, block.b1, at)
                fixed += 1
            if plain.valid is not None:
                valid = self._valid.get(column.name)
                valid = np.ones(self.room, np.uint8) if valid is None else valid
                if rows.take_valid(plain.valid, picks, valid, self.rows):
                    self._valid[column.name] = valid
        self.rows += picks.size

    def _valid_of(self, column: StoredColumn) -> U8:
        return self._valid.setdefault(column.name, np.ones(self.room, np.uint8))

    def _add_valid(self, column: StoredColumn, memory: Memory, row_at: I64) -> None:
        valid = self._valid.get(column.name)
        if valid is None:
            valid = np.ones(self.room, np.uint8)
        if rows.gather_valid(memory.b1, row_at, column.null_at, column.null_bit, valid, self.rows):
            self._valid[column.name] = (
                valid  # kept only once something is missing: a column without a bitmap is cheaper for all
            )

    def close(self) -> list[pa.Array]:
        """The collected columns; the stage then holds nothing."""
        count, arrays, fixed, cell = self.rows, [], 0, 0
        block = self._target.memory.b1
        # a batch keeps its whole block alive: a few rows must not hold room for thousands
        sparse = 2 * count < self.room
        for column, bare in zip(self.columns, self._bare, strict=True):
            valid = self._valid.get(column.name)
            if bare and column.size and valid is None and not sparse:
                values = self._block.slice(int(self._target.column_at[fixed]), count * column.size)
                arrays.append(pa.Array.from_buffers(column.type, count, [None, values], 0))
                fixed += 1
            elif column.is_cell:
                ends, data = self._ends[cell], self._data[cell]
                if sparse:
                    ends, data = ends[: count + 1].copy(), data[: int(ends[count])].copy()
                arrays.append(columns.from_cells(column.type, count, ends, data, valid))
                cell += 1
            elif column.size:
                at = int(self._target.column_at[fixed])
                values = block[at : at + count * column.size]
                arrays.append(columns.from_fixed(column.type, count, values.copy() if sparse else values, valid))
                fixed += 1
            else:
                arrays.append(columns.from_fixed(column.type, count, columns.NO_BYTES, valid))
        self.room = self.rows = 0
        del self._block, self._target, self._ends, self._data, self._valid
        return arrays
