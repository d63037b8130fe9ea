"""ADAPTIVE: keep what is asked for often, let the rest wait in bins, and read where most has waited longest.

Ours. A tuple whose key lies in the hot cache is answered at once. The others are put into bins by the part of the master that holds their
key, which the sparse index tells without a read; when there is no more room, the bins whose tuples have waited longest, all waits
added up, are served: their pages are read in long neighbouring runs, and every tuple finds its rows by a search in its page.

    stream -> hot cache -> answered
                 |  miss
                 v
               bins  --- longest wait first ---> loads of neighbouring pages -> answered
                 ^                                   |
                 +------- one pool of tiles -------- hot cache: keys that would cost more waiting than kept

Next page: those of the bins with the longest waits. Leaves: everybody in these bins. Stays in memory: keys for which the cache inequality
holds in real bytes, with all their rows, or the fact that the master lacks them.

Cache and bins share one pool of tiles, so the split of memory follows the stream: all of it goes to bins when keys are asked for evenly,
and when the master fits into the cache it is read once and every tuple is answered at once. A key leaves the cache when it has not
earned its room since it was last looked at, so the cache follows drift. Nothing starves: the bin with the oldest tuple is served in
every iteration. A master that is not in word order has no ranges to make bins of: HYBRIDJOIN's disk stage, or without an index
MESHJOIN's, then does what the bins do.

>>> import pyarrow as pa, semistream as ss, tempfile
>>> folder = tempfile.mkdtemp() + "/colours.master"
>>> master = ss.build_master(folder, pa.table({"id": [1, 2, 2], "colour": ["red", "green", "blue"]}), key="id")
>>> join = ss.Join(master, on="id", algorithm="adaptive", memory="1MB", how="left")
>>> pa.Table.from_batches(join([pa.record_batch({"id": [2, 9]})])).sort_by("colour").to_pylist()
[{'id': 2, 'colour': 'blue'}, {'id': 2, 'colour': 'green'}, {'id': 9, 'colour': None}]
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Generator, Iterator
from threading import Lock

import numpy as np

from semistream.algorithms import hybridjoin, meshjoin
from semistream.algorithms.record import Algorithm, Parts
from semistream.binned import Binned, Desk, bytes_of_bins
from semistream.budget import Share
from semistream.parts import bins, tiles
from semistream.parts.memory import I32, I64
from semistream.protocols import Area, Found, Front, Load, Reader, Recipe
from semistream.stream_rows import StreamRows, match_count
from semistream.stream_side import Block
from semistream.tile_front import KEY_BYTES, Lookups, TileFront, all_of, item_bytes_of, table_bytes

_TILE_BYTES = 16 << 10  # at most; small enough that hundreds of half-filled ones do not matter
_BUFFER_BYTES = 2 << 20  # reading more at once gains nothing: see the page-size curve in benchmarks/README.md
_DESK_TUPLES = 16384
_SERVED_SHARE = 0.25  # of the waiting tuples, in one iteration
_BINS_PER_TILE = 0.2  # a half-filled tile for every bin then wastes a tenth of the pool
_CACHE_MOST = 7 / 8  # of the pool: somebody must be able to wait
_KEPT_BACK = 1 / 64  # of the pool, for keys: else the bins served first would find no room for theirs
