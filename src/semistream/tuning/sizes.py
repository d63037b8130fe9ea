"""Sizes: what a recipe would get of a budget, asked of its own shares, and what fits into that. Nothing is copied from the recipes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pyarrow as pa

from semistream import plan
from semistream.algorithms import cachejoin, find_algorithm, r_meshjoin
from semistream.algorithms.adaptive_sizes import CACHE_MOST
from semistream.algorithms.admission import worth_keeping
from semistream.algorithms.record import Algorithm
from semistream.budget import Slab
from semistream.hot_cache import row_cost
from semistream.overload import parse_overload
from semistream.parts import bins
from semistream.parts.page import ALIGNMENT
from semistream.protocols import Master, Reader
from semistream.records import RowCodec
from semistream.reorder import Reorder
from semistream.sharing import Options, heap_bytes_of, piece_rows, share_out
from semistream.stream_rows import StreamRows
from semistream.tile_front import KEY_BYTES, item_bytes_of

_RANDOM_VICTIMS = ("cachejoin", "cachejoin_l", "cachejoin_pq", "cachejoin_lwf")
SPARE_BYTES = 1 << 16


@dataclass(frozen=True)
class Sizes:
    """Bytes of every part, and what they hold. `pool_bytes`: shared by those who wait and those who are cached, as the stream wants."""

    bytes_by_part: dict[str, int]
    slots: float
    partition_rows: float
    partition_pages: float
    cached_rows: float = 0.0
    pinned_rows: float = 0.0
    least_waiting: float = 0.0
    pool_bytes: float = 0.0
    tuple_bytes: float = 0.0
    row_bytes: float = 0.0  # in the cache
    segments: int = 1  # of a load
    piece_rows: int = 1  # tuples that are taken from the stream at once
    window: float = math.inf  # tuples of the stream that output in order holds back at most, hits among them


def sizes_of(master: Master, algorithm: str, memory_bytes: int, sample: pa.RecordBatch) -> Sizes:
    """For a stream like this sample; an error if the memory is too small, or if the algorithm cannot join this master."""
    options = _options(master, algorithm, memory_bytes)
    codec = RowCodec(sample.schema)
    rows = StreamRows(codec, heap_bytes_of(codec, sample) if sample.num_rows else 0.0)
    reader = master.reader()
    try:
        given = share_out(reader, options, rows)
        block_bytes = _block_bytes(reader, options)
        pages, pinned = _pages_of_a_load(reader, options.algorithm, given, block_bytes)
        each = master.rows / max(1, reader.pages)
    finally:
        reader.close()
    piece = piece_rows(memory_bytes, rows)
    cached_bytes = row_cost(master.codec, master.row_bytes, cachejoin.WORDS_PER_ROW)
    cached = given.get("hot cache", 0) / cached_bytes
    if block_bytes:
        cached = max(0.0, (given["blocks"] / block_bytes - 1)) * pages * each
    if algorithm == "adaptive" and master.word_order:
        record = bins.record_bytes(codec.width, bool(codec.cells)) + rows.heap_bytes
        pool = given["stream table"]
        item = item_bytes_of(master.codec, master.row_bytes) + KEY_BYTES
        return Sizes(
            given,
            pool / record,
            pages * each,
            pages,
            piece_rows=piece,
            pool_bytes=pool,
            tuple_bytes=record,
            row_bytes=item,
        )
    window = math.inf
    if options.ordered:
        row_bytes = codec.width + rows.heap_bytes + master.row_bytes
        window = Reorder(sample.schema, given["reorder"], row_bytes, master.most_rows_per_key).window
    return Sizes(
        given,
        float(rows.slots_in(given["stream table"])),
        pages * each,
        pages,
        cached_rows=min(cached, float(master.rows)),
        pinned_rows=pinned * each,
        segments=max(1, min(r_meshjoin.SEGMENTS, int(pages))) if algorithm == "r_meshjoin" else 1,
        piece_rows=piece,
        window=window,
        least_waiting=worth_keeping(cached_bytes, rows.slot_bytes()) if algorithm in _RANDOM_VICTIMS else 0.0,
    )


def most_cached(sizes: Sizes) -> float:
    """Rows that a shared pool can cache at most."""
    return CACHE_MOST * sizes.pool_bytes / sizes.row_bytes


def _pages_of_a_load(
    reader: Reader, algorithm: Algorithm, given: dict[str, int], block_bytes: int
) -> tuple[float, float]:
    """Pages of a load, and pages that are pinned."""
    if not reader.pages:
        return 1.0, 0.0
    if block_bytes:
        return min(float(reader.pages), max(1.0, block_bytes // reader.largest_page_bytes)), 0.0
    slab = Slab(
        sum(share.least for share in reader.shares())
        + 2 * given["disk buffer"]
        + given.get("pinned pages", 0)
        + SPARE_BYTES
    )
    reader.attach(slab)
    buffer = reader.buffer(slab, "disk buffer", given["disk buffer"])
    scans = algorithm.scans or not reader.indexed or algorithm.name in ("adaptive", "inlj", "derakhshan")
    first, stop = (0, buffer.stop_of(0)) if scans else buffer.partition(0, 1)
    pinned = 0
    if "pinned pages" in given:
        begin, end = reader.buffer(slab, "pinned pages", given["pinned pages"]).partition(0, 1)
        pinned = end - begin
    return float(stop - first), float(pinned)


def _block_bytes(reader: Reader, options: Options) -> int:
    """The size of a block, where a recipe keeps blocks: the least that it asks for is one of them."""
    asked = options.algorithm.shares_for(options.preset)(reader, options.memory_bytes)
    blocks = [share.least - ALIGNMENT for share in asked if share.part == "blocks"]
    return blocks[0] if blocks else 0


def _options(master: Master, algorithm: str, memory_bytes: int) -> Options:
    recipe = find_algorithm(algorithm, master, None)
    return Options(
        algorithm=recipe,
        memory_bytes=memory_bytes,
        stream_keys=[field.name for field in master.keys.fields],
        how="inner",
        payload=plan.parse_columns(None, master),
        where=None,
        where_columns=[],
        null_safe=False,
        ordered=recipe.ordered,
        match_column=None,
        wait=plan.Wait(),
        preset="tuned",
        threads=1,
        overload=parse_overload("block"),
    )


def splits(sizes: Sizes) -> list[tuple[float, float]]:
    """Ways to share a pool out, as (slots, cached rows); one way only where sizes are fixed."""
    if not sizes.pool_bytes:
        return [(sizes.slots, sizes.cached_rows)]
    most = most_cached(sizes)
    shares = [0.0, *(most * math.exp(-step / 3) for step in range(20))]
    return [((sizes.pool_bytes - rows * sizes.row_bytes) / sizes.tuple_bytes, rows) for rows in shares]
