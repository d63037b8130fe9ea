"""What a hot cache holds, word by word: for whoever takes it over."""

from __future__ import annotations

import numpy as np

from semistream.parts.compiler import kernel
from semistream.parts.hot_cache import FIRST_ROW, HEAD, HITS, ROWS, HotCache
from semistream.parts.memory import I64
from semistream.parts.probing import Picked


@kernel
def rows_from(cache: HotCache, record: int, found: Picked, hits: I64) -> tuple[int, int]:
    """List the rows of words, those of a word side by side, with the hits of their word, as long as there is room for all rows of a word.

    Begins with this record; returns the one to go on with, and how many rows are listed. A word with more rows than the lists have
    places is left out.
    """
    count, slot_bytes, has_cells = 0, 8 * cache.wide.shape[1], cache.cells.size > 0
    while record < cache.records.shape[0]:
        rows = np.int64(cache.records[record, ROWS])
        if 0 < rows <= hits.size:
            if count + rows > hits.size:
                break
            slot = np.int64(cache.records[record, HEAD])
            while slot >= 0:
                found.words[count] = cache.record_word[record]
                found.row_at[count] = cache.state[FIRST_ROW] + slot * slot_bytes
                found.heap_at[count] = cache.wide[slot, 1] if has_cells else 0
                hits[count] = cache.records[record, HITS]
                count += 1
                slot = np.int64(cache.links[slot, 0])
        record += 1
    return record, count
