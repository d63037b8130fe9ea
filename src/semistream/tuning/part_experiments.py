"""Experiments on single parts: rows that pass a table full of tuples which wait for others, a cache that is filled, an index that is
asked, a queue between threads, and reads of all sizes.
"""

from __future__ import annotations

import queue
import time
from typing import Any

import numpy as np
import pyarrow as pa

from semistream.budget import Slab
from semistream.hot_cache import HotCache, Permanent
from semistream.pending import Pending
from semistream.records import RowCodec
from semistream.stream_rows import StreamRows, match_count
from semistream.stream_side import Block
from semistream.tuning.experiments import BATCH, Ground, batches, least


def probe_s(ground: Ground) -> float:
    """Seconds to look for the tuples that wait for a row, while nobody does."""
    master, slab = ground.large, Slab(96 << 20)
    reader = master.reader()
    try:
        reader.attach(slab)
        buffer = reader.buffer(slab, "disk buffer", 512 << 10)
        (batch,) = (
            pa.Table.from_batches(batches(ground.keys(8 * BATCH, master.rows) + 1, 0)).combine_chunks().to_batches()
        )
        codec = RowCodec(batch.schema)
        pending = Pending(slab, StreamRows(codec, 0.0), 24 << 20, match_count(slab.total_bytes), master.codec.width)
        words = master.keys.words([batch.column("id")]).words
        pending.admit(Block.of(words, codec.encode(batch), np.arange(batch.num_rows), 0), batch.num_rows)

        def measure() -> float:
            seconds, first = 0.0, 0
            while first < reader.pages:
                stop = buffer.stop_of(first)
                load = buffer.read(first, stop)
                begun = time.perf_counter()
                for found in pending.probe(load):
                    assert not found.gone.size
                seconds += time.perf_counter() - begun
                first = stop
            return seconds / master.rows

        return least(measure)
    finally:
        reader.close()


def keep_s(ground: Ground, read_byte_s: float) -> float:
    """Seconds to copy a row into a cache."""

    def measure() -> float:
        master, slab = ground.large, Slab(64 << 20)
        reader = master.reader()
        try:
            cache = HotCache(slab, master.codec, master.row_bytes, 48 << 20, 4096, Permanent())
            reader.attach(slab)
            buffer = reader.buffer(slab, "disk buffer", 1 << 20)
            begun, first = time.perf_counter(), 0
            while first < reader.pages and cache.free > 20_000:
                stop = buffer.stop_of(first)
                for rows in cache.rows_of(buffer.read(first, stop)):
                    cache.keep(rows, np.zeros(rows.words.size, np.int64))
                first = stop
            seconds = time.perf_counter() - begun - reader.bytes_read * read_byte_s
            return seconds / max(1, cache.slots - cache.free)
        finally:
            reader.close()

    return max(0.0, least(measure))


def look_up_s(ground: Ground) -> float:
    """Seconds to ask the index for the pages of a key."""
    reader, slab = ground.large.reader(), Slab(16 << 20)
    try:
        reader.attach(slab)
        words = ground.large.keys.words([pa.array(ground.keys(2000, ground.large.rows))]).words.tolist()

        def measure() -> float:
            begun = time.perf_counter()
            for word in words:
                reader.look_up(word, [])
            return (time.perf_counter() - begun) / len(words)

        return least(measure)
    finally:
        reader.close()


def hand_over_s() -> float:
    """Seconds to give a tuple of 20 bytes to another thread, some thousands at a time."""
    passed: queue.Queue[Any] = queue.Queue(8)
    tuples, picks = np.zeros((BATCH, 20), np.uint8), np.arange(BATCH)

    def measure() -> float:
        begun = time.perf_counter()
        for _ in range(20):
            passed.put(tuples[picks])
            passed.get()
        return (time.perf_counter() - begun) / (20 * BATCH)

    return least(measure)


def read_costs(
    ground: Ground, sizes: tuple[int, ...] = (16 << 10, 64 << 10, 256 << 10, 1 << 20)
) -> dict[str, dict[int, float]]:
    """Seconds to read so many bytes at once, checksums included: at random places, and one after the other."""
    return {pattern: {size: _read_s(ground, size, pattern) for size in sizes} for pattern in ("random", "scan")}


def _read_s(ground: Ground, size: int, pattern: str) -> float:
    reader, slab = ground.large.reader(), Slab(size + (16 << 20))
    try:
        reader.attach(slab)
        buffer = reader.buffer(slab, "disk buffer", size + 8192)
        together = max(1, int(buffer.stop_of(0)) - 1)
        starts = np.arange(0, reader.pages - together, together)
        if pattern == "random":
            starts = ground.random.permutation(starts)
        starts = starts[:400]

        def measure() -> float:
            begun, before = time.perf_counter(), reader.bytes_read
            for first in starts.tolist():
                buffer.read(first, first + together)
            return (time.perf_counter() - begun) / (reader.bytes_read - before)

        measure()  # through the page cache, if it is used
        return least(measure) * size
    finally:
        reader.close()
