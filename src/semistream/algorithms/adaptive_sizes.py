"""How the adaptive join shares its memory out: room to work in for every thread, and one pool of tiles for all the rest."""

from __future__ import annotations

from typing import NamedTuple

from semistream.algorithms import hybridjoin, meshjoin
from semistream.algorithms.record import Algorithm, Parts
from semistream.binned import Binned, bytes_of_bins
from semistream.budget import Share
from semistream.desk import Desk
from semistream.parts import bins
from semistream.protocols import Reader
from semistream.stream_rows import StreamRows, match_count
from semistream.tile_front import KEY_BYTES, Lookups, TileFront, item_bytes_of, table_bytes
from semistream.units import format_bytes

CACHE_MOST = 7 / 8  # of the pool: somebody must be able to wait
KEPT_BACK = 1 / 64  # of the pool, for keys: else the bins served first would find no room for theirs
_TILE_BYTES = 16 << 10  # at most; small enough that hundreds of half-filled ones do not matter
_BUFFER_BYTES = 2 << 20  # reading more at once gains nothing: see the page-size curve in benchmarks/README.md
_DESK_TUPLES = 16384
_BINS_PER_TILE = 0.2  # a half-filled tile for every bin then wastes a tenth of the pool
_LEAST_TILES, _LEAST_KEYS = 8, 16


def other(reader: Reader) -> Algorithm:
    """What serves masters that have no ranges to make bins of."""
    return hybridjoin.ALGORITHM if reader.indexed else meshjoin.ALGORITHM


def shares(reader: Reader, memory_bytes: int) -> list[Share]:
    """Disk buffers and desks are asked for with the bins, since they are as many as there are threads."""
    return [] if reader.word_order else other(reader).shares(reader, memory_bytes)


def waiting_shares(reader: Reader, rows: StreamRows, memory_bytes: int, threads: int) -> list[Share]:
    """Room to work in for every thread; all the rest is one pool."""
    if not reader.word_order:
        return rows.shares(match_count(memory_bytes))
    tuples, buffer_bytes = desk_tuples(memory_bytes), _buffer_bytes(reader, memory_bytes, threads)
    desk = Desk.bytes_of(tuples, asked_rows(buffer_bytes)) + Lookups.bytes_of(tuples, tuples)
    tile_bytes = _tile_bytes(rows, 0, 0)
    least = _LEAST_TILES * tile_bytes + _overhead(_LEAST_TILES, tile_bytes, _LEAST_KEYS, chosen_keys(memory_bytes))
    return [
        Share("disk buffer", threads * buffer_bytes),
        Share("desks", threads * desk),
        Share("stream table", least, weight=1.0),
    ]


def _buffer_bytes(reader: Reader, memory_bytes: int, threads: int) -> int:
    return max(reader.largest_page_bytes, min(_BUFFER_BYTES, memory_bytes // 12 // threads)) + 8192


def desk_tuples(memory_bytes: int) -> int:
    """Tuples that one thread serves at once."""
    return max(64, min(_DESK_TUPLES, memory_bytes // 4096))


def asked_rows(buffer_bytes: int) -> int:
    """Rows that a load can have at most: each has a word."""
    return buffer_bytes // 8


def chosen_keys(memory_bytes: int) -> int:
    """Keys that are taken into the cache at once."""
    return max(8, min(1024, memory_bytes // 16384))


def _tile_bytes(rows: StreamRows, pool_bytes: int, item_bytes: float) -> int:
    """A tile holds some records, and some of the master's rows; it is a whole number of records long."""
    record = bins.record_bytes(rows.codec.width, bool(rows.codec.cells))
    tuple_bytes = record + rows.heap_bytes
    wanted = max(min(_TILE_BYTES, pool_bytes // 256), 4 * tuple_bytes, min(4 * item_bytes, pool_bytes / 64))
    return int(max(1, -(-wanted // record))) * record


def _overhead(tile_count: int, tile_bytes: int, keys: int, chosen: int) -> int:
    tables = bytes_of_bins(_bins_most(tile_count), tile_count) + table_bytes(keys, tile_count, tile_bytes, chosen)
    return tables + 4 * tile_count + 512


def _bins_most(tile_count: int) -> int:
    return max(1, int(tile_count * _BINS_PER_TILE))


class Sizes(NamedTuple):
    """How a pool of some bytes is divided."""

    tiles: int
    tile_bytes: int
    bins: int
    keys: int  # that the cache may hold
    item_bytes: float  # what a row takes in the cache, without its entry
    record_bytes: float  # what a waiting tuple takes

    @classmethod
    def of(cls, parts: Parts) -> Sizes:
        """For this join."""
        item_bytes = item_bytes_of(parts.master_codec, parts.master_row_bytes)
        pool_bytes, rows = parts.given["stream table"], parts.rows
        tile_bytes, chosen = _tile_bytes(rows, pool_bytes, item_bytes), chosen_keys(parts.slab.total_bytes)
        free_bytes = pool_bytes - _overhead(0, tile_bytes, _LEAST_KEYS, chosen)
        keys = int(min(parts.master_rows * 1.25 + 1024, CACHE_MOST * free_bytes / (item_bytes + KEY_BYTES)))
        count = pool_bytes // tile_bytes
        while count > _LEAST_TILES and count * tile_bytes + _overhead(count, tile_bytes, keys, chosen) > pool_bytes:
            count -= 1
        while keys > _LEAST_KEYS and count * tile_bytes + _overhead(count, tile_bytes, keys, chosen) > pool_bytes:
            keys = max(_LEAST_KEYS, keys * 7 // 8)  # where stream rows are wide, the fewest tiles are most of the pool
        assert parts.reader.order is not None
        loads = -(-int(parts.reader.order.page_at[-1]) // (parts.given["disk buffer"] // parts.threads - 8192))
        bin_count = max(1, min(_bins_most(count), loads))  # what is served together is read together
        record = bins.record_bytes(rows.codec.width, bool(rows.codec.cells)) + rows.heap_bytes
        return cls(count, tile_bytes, bin_count, keys, item_bytes, record)

    def hold(self, rows: int) -> bool:
        """Whether so many master rows have room in the cache, a key each."""
        return rows * self.item_bytes * 1.05 < int(self.tiles * CACHE_MOST) * (self.tile_bytes - self.item_bytes)


def decisions(size: Sizes, cache: TileFront, bins: Binned, reader: Reader, least: int) -> list[str]:
    """What was decided, and why, in words."""
    pool_bytes = size.tiles * size.tile_bytes
    if cache.complete:
        return [f"the whole master fits: it was read once, and {cache.keys} keys answer every tuple at once"]
    pages = -(-reader.pages // bins.bins.head.size)
    kept, pool = format_bytes(cache.held_bytes), format_bytes(pool_bytes)
    few = "every key that was asked for is kept: there is room, or it takes less than who waits for it"
    some = f"a key is kept if {least} tuples or more wait for it when its page is read: then it takes less room than they do"
    return [
        f"the cache holds {cache.keys} keys in {kept} of {pool}; waiting tuples have the rest",
        few if least == 1 else some,
        f"tuples wait in {bins.bins.head.size} bins of {pages} pages; those with the longest waits, all added up, are served first",
        f"pages that stand up to {format_bytes(reader.gap_bytes)} apart are read together: that is faster than asking twice",
    ]
