"""Words on their way into the hot cache while a scan goes round, and out of it again, by the cache inequality.

    begin    a tuple comes in on whose word enough wait            the word's record is opened, its rows are counted below zero
    collect  rows come by                                          copied, until there are too many
    finish   the tuple leaves: it has seen the whole master        the word has all its rows; it answers from now on, or goes
    review   every few rounds                                      words that are not asked for enough go

The inequality: bytes of the tuples that would wait on a word > bytes of its rows and of its record. `costs` are the bytes of a waiting
tuple, a row and a record, and the least number of tuples that say anything about a word.

Words that are being collected stand in a ring in the order of their beginning. A word with too many rows, or without room, keeps its
record until its turn is over (`REFUSED`): so every record stands in the ring once, and nobody collects half of a word anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semistream.parts.compiler import kernel
from semistream.parts.hot_cache import (
    FREE_RECORD,
    HEAD,
    HITS,
    NOBODY,
    ROWS,
    SINCE,
    HotCache,
    add_row,
    drop_rows,
    forget,
    open_record,
    record_of,
    room,
)
from semistream.parts.memory import F64, I32, I64, Memory
from semistream.parts.probing import Picked
from semistream.parts.slots import WORD
from semistream.parts.stream_table import StreamTable, count_waiting

# positions in `costs`
WAITING_COST, ROW_COST, WORD_COST, LEAST = 0, 1, 2, 3
# positions in `Ring.state`
FIRST, COUNT, SHORT_ROWS, SHORT_WORDS, CYCLE = 0, 1, 2, 3, 4
STATE = 5
REFUSED = NOBODY + 1  # `rows` of a record whose word is not collected any more
_MOST_ROWS = 2**30
_ENOUGH = 1 << 16  # how far waiting tuples are counted
_CYCLES = 10  # hits are counted for so many


class Ring(NamedTuple):
    """Records of words that are being collected; where the ring begins, how many there are, how often rows and words found no room,
    and the cycle.
    """

    records: I32
    state: I64


@kernel
def most_rows(costs: F64, waiting: int) -> int:
    """The most rows a word may have to be worth keeping, when so many tuples wait on it; -1 if it is not worth its record."""
    spare = waiting * costs[WAITING_COST] - costs[WORD_COST]
    if waiting < costs[LEAST] or spare <= 0:
        return np.int64(-1)
    return min(np.int64(np.ceil(spare / costs[ROW_COST])) - 1, np.int64(_MOST_ROWS))


@kernel
def begin(cache: HotCache, table: StreamTable, picks: I64, costs: F64, ring: Ring) -> int:
    """Begin to collect the words of tuples that have come in, if enough wait on them; returns how many words."""
    began, size = 0, ring.records.size
    for slot in picks:
        word = table.slots.wide[slot, WORD]
        if record_of(cache, word) >= 0:
            continue
        most = most_rows(costs, count_waiting(table, word, _ENOUGH))
        if most < 0:
            continue
        if cache.state[FREE_RECORD] < 0 or ring.state[COUNT] == size:
            ring.state[SHORT_WORDS] += 1
            break
        record = open_record(cache, word, -1, most, ring.state[CYCLE])
        ring.records[(ring.state[FIRST] + ring.state[COUNT]) % size] = record
        ring.state[COUNT] += 1
        began += 1
    return began


@kernel
def collect(cache: HotCache, memory: Memory, rows: Picked, ring: Ring) -> None:
    """Copy those of the rows whose words are being collected."""
    for i in range(rows.words.size):
        record = record_of(cache, rows.words[i])
        if record < 0 or cache.records[record, ROWS] >= 0 or cache.records[record, ROWS] == REFUSED:
            continue
        too_many = -1 - cache.records[record, ROWS] >= cache.records[record, HITS]
        if too_many or not room(cache, memory, rows.row_at[i : i + 1]):
            ring.state[SHORT_ROWS] += 0 if too_many else 1
            drop_rows(cache, memory, record)
            cache.records[record, HEAD] = -1
            cache.records[record, ROWS] = REFUSED
        else:
            add_row(cache, memory, record, rows.row_at[i], rows.heap_at[i])


@kernel
def finish(cache: HotCache, memory: Memory, table: StreamTable, costs: F64, ring: Ring, due: int) -> None:
    """The `due` words that were begun first have been collected for a whole round: who is worth it answers from now on."""
    for _ in range(due):
        record = np.int64(ring.records[ring.state[FIRST]])
        ring.state[FIRST] = (ring.state[FIRST] + 1) % ring.records.size
        ring.state[COUNT] -= 1
        rows = -1 - np.int64(cache.records[record, ROWS])
        waiting = count_waiting(table, cache.record_word[record], _ENOUGH)
        if cache.records[record, ROWS] == REFUSED or rows > most_rows(costs, waiting):
            forget(cache, memory, record)
        else:
            cache.records[record, ROWS], cache.records[record, HITS] = rows, 0
            cache.records[record, SINCE] = ring.state[CYCLE]


@kernel
def review(cache: HotCache, memory: Memory, costs: F64, cycle: int) -> int:
    """Forget words for which fewer tuples would wait than they cost, by their hits a cycle; the others are counted anew.

    Returns how many went. Words that came in this cycle are not judged.
    """
    forgotten = 0
    for record in range(cache.records.shape[0]):
        rows, age = np.int64(cache.records[record, ROWS]), cycle - np.int64(cache.records[record, SINCE])
        if rows < 0 or age <= 0:
            continue
        age = age if age < _CYCLES else np.int64(_CYCLES)
        waiting = np.int64(cache.records[record, HITS]) / age
        if rows * costs[ROW_COST] + costs[WORD_COST] >= waiting * costs[WAITING_COST]:
            forget(cache, memory, record)
            forgotten += 1
        else:
            cache.records[record, HITS] = 0
    return forgotten
