"""The stream's side of a pair: tuples of a batch that has just come (`Block`), or tuples that wait in packed records (`Waiting`).

Settling does not care which: it asks either for stamps, words, cells and columns of the tuples that a recipe picked.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from semistream import columns
from semistream.parts.memory import I64, U8, Memory
from semistream.parts.words import KeyPlaces, RowSide, same_keys, same_plain_keys
from semistream.records import Encoded, RowCodec, Stage

NO_SLOTS: I64 = np.zeros(0, np.int64)
_NONE_MISSING: U8 = np.zeros(0, np.uint8)


class KeyCheck(NamedTuple):
    """What must be compared besides words: the column of a batch that shows the key, the one that shows whether there is one (another if
    the key's bytes are a hidden column), and where rows of both sides show it.
    """

    column: int
    null_column: int
    stream: KeyPlaces
    master: KeyPlaces
    null_safe: bool


class Side(Protocol):
    """Stream tuples, picked by number."""

    @property
    def stamps(self) -> I64:
        """Stream position * 2 + 1 if a match was found, of every tuple; may be written to."""

    @property
    def words(self) -> I64:
        """Key word of every tuple."""

    def cell_bytes(self, stage: Stage, picks: I64) -> I64:
        """Bytes of every variable column over the picked tuples."""

    def fill(self, stage: Stage, picks: I64) -> None:
        """Append the picked tuples' columns to a stage."""

    def same_keys(self, picks: I64, rows: RowSide, check: KeyCheck, same: U8) -> None:
        """Whether tuples and master rows with equal words have equal keys."""


class Arriving(Protocol):
    """Stream tuples that are to be admitted where tuples wait."""

    @property
    def words(self) -> I64:
        """Key word of every tuple."""

    @property
    def stamps(self) -> I64:
        """Stream position * 2 of every tuple."""

    @property
    def picks(self) -> I64:
        """The tuples to admit, in the order of the stream."""

    def sizes_of(self, picks: I64) -> I64:
        """Bytes of variable length in their rows, if the stream has such columns."""

    def pack(self, codec: RowCodec, picks: I64, memory: Memory, row_at: I64, heap_at: I64) -> None:
        """Write their rows."""


class Block(NamedTuple):
    """An encoded batch on its way in: `picks` are the rows still to admit, row 0 stands at `position` in the stream."""

    words: I64
    encoded: Encoded
    picks: I64
    position: int
    stamps: I64

    @classmethod
    def of(cls, words: I64, encoded: Encoded, picks: I64, position: int) -> Block:
        """A block nobody of whom has matched."""
        return cls(words, encoded, picks, position, np.arange(position, position + words.size, dtype=np.int64) << 1)

    def sizes_of(self, picks: I64) -> I64:
        """See `Arriving`."""
        assert self.encoded.sizes is not None
        return self.encoded.sizes[picks]

    def pack(self, codec: RowCodec, picks: I64, memory: Memory, row_at: I64, heap_at: I64) -> None:
        """See `Arriving`."""
        codec.pack(self.encoded, picks, memory, row_at, heap_at)

    def cell_bytes(self, stage: Stage, picks: I64) -> I64:
        """See `Side`."""
        return stage.plain_cell_bytes(self.encoded, picks)

    def fill(self, stage: Stage, picks: I64) -> None:
        """See `Side`."""
        stage.add_plain(self.encoded, picks)

    def same_keys(self, picks: I64, rows: RowSide, check: KeyCheck, same: U8) -> None:
        """See `Side`."""
        plain = self.encoded.plains[check.column]
        present = self.encoded.plains[check.null_column].valid
        valid = _NONE_MISSING if present is None else present
        places = (check.stream, check.master)
        same_plain_keys((plain.starts, plain.data, valid, picks), rows, places, check.null_safe, same)


class Waiting:
    """Tuples in records of equal length that lie side by side in the slab, a row at the end of each."""

    def __init__(
        self, codec: RowCodec, memory: Memory, at: int, records: I64, word: int, stamp: int, heap: int
    ) -> None:
        """`records` are the records as 8-byte numbers, `at` is where they begin; the others say which number is what (heap -1: none)."""
        self._codec, self._memory, self._at, self._heap = codec, memory, at, heap
        self._record_bytes = records.shape[1] * 8
        self._row_offset = self._record_bytes - -(-codec.width // 8) * 8
        self._records = records
        self.words, self.stamps = records[:, word], records[:, stamp]

    def places(self, picks: I64) -> tuple[I64, I64]:
        """Where the rows of tuples lie, and their heap bases."""
        row_at = self._at + self._row_offset + picks * self._record_bytes
        return row_at, self._records[picks, self._heap] if self._heap >= 0 else NO_SLOTS

    def distinct(self, picks: I64, names: list[str]) -> list[tuple[Any, ...]]:
        """The different values that tuples have in some columns."""
        arrays = self._codec.unpack(self._memory, *self.places(picks), names)
        waiting = pa.table([columns.plain_array(array) for array in arrays], names=names)
        return [tuple(row.values()) for row in waiting.group_by(names).aggregate([]).to_pylist()]

    def cell_bytes(self, stage: Stage, picks: I64) -> I64:
        """See `Side`."""
        return stage.cell_bytes(self._memory, self.places(picks)[0])

    def fill(self, stage: Stage, picks: I64) -> None:
        """See `Side`."""
        stage.add(self._memory, *self.places(picks))

    def same_keys(self, picks: I64, rows: RowSide, check: KeyCheck, same: U8) -> None:
        """See `Side`."""
        same_keys(RowSide(self._memory, *self.places(picks)), rows, (check.stream, check.master), check.null_safe, same)
