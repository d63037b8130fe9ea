"""Pending tuples and master pages in small, without a join round them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from semistream.budget import Slab
from semistream.pending import Pending
from semistream.protocols import Load
from semistream.records import RowCodec
from semistream.stream_rows import StreamRows
from semistream.stream_side import Block
from tests.parts.made import ints, pages_of, plain_rows

SCHEMA = pa.schema([("key", pa.int64()), ("number", pa.int64())])
WITH_TEXT = SCHEMA.append(pa.field("text", pa.string()))
CLOSED = ints(0, 0, 0, 0)


class Bench:
    """Tuples that wait, a disk buffer, and everything that was ever found."""

    def __init__(self, schema=SCHEMA, slots=24, matches=8, heap_bytes=0.0, keeper=None):
        rows = StreamRows(RowCodec(schema), heap_bytes)
        table_bytes = rows.shares(matches)[0].least
        while rows.slots_in(table_bytes) < slots:
            table_bytes += 16
        self.schema = schema
        self.slab = Slab(1 << 18)
        self.buffer_at = self.slab.place("disk buffer", 1 << 16)
        self.pending = Pending(self.slab, rows, table_bytes, matches, row_width=8, keeper=keeper)
        self.position = 0

    def block(self, words, texts=None, picks=None):
        """A batch of tuples with these words; the number of a tuple is its position."""
        columns = [words, range(self.position, self.position + len(words))]
        if "text" in self.schema.names:
            columns.append(texts or ["" for _ in words])
        batch = pa.record_batch(
            [pa.array(c, f.type) for c, f in zip(columns, self.schema, strict=True)], schema=self.schema
        )
        picks = np.arange(len(words)) if picks is None else ints(*picks)
        block = Block.of(ints(*words), self.pending.codec.encode(batch), picks, self.position)
        self.position += len(words)
        return block

    def admit(self, words, texts=None):
        """Admit all these tuples, for which there must be room."""
        block = self.block(words, texts)
        assert self.pending.admit(block, len(words)) == len(words)

    def load(self, words, page_bytes=256, open_words=CLOSED):
        """Master rows with these words in the disk buffer; the first byte of a row is its number."""
        memory, page_at, _ = pages_of(plain_rows(words), page_bytes)
        assert memory.b1.size <= 1 << 16
        self.slab.memory.b1[self.buffer_at : self.buffer_at + memory.b1.size] = memory.b1
        return Load(page_at + self.buffer_at, open_words)

    def numbers(self, slots):
        """The numbers that waiting tuples carry in their rows."""
        (column,) = self.pending.codec.unpack(self.slab.memory, *self.pending.side.places(slots), ["number"])
        return column.to_pylist()

    def run(self, finds):
        """Pairs (tuple, master row) and tuples that left, as a recipe's step gives them."""
        pairs, gone = [], []
        for found in finds:
            rows = self.slab.memory.b1[found.row_at].tolist()
            pairs += zip(self.numbers(found.picks), rows, strict=True)
            gone += self.numbers(found.gone)
        return pairs, gone

    def by_age(self):
        """The numbers of all tuples that wait, oldest first."""
        count = self.pending.waiting
        if not count:
            assert self.pending.oldest() == -1
            return []
        slots, slot = [], self.pending.oldest()
        while slot >= 0:
            slots.append(slot)
            slot = int(self.pending.records.links[slot, 3])
        assert len(slots) == count
        return self.numbers(ints(*slots))
