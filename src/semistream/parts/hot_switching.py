"""Words on their way into the hot cache while a scan goes round, and out of it again, by the cache inequality.

    begin    a tuple comes in on whose word enough wait            the word's record is opened, its rows are counted below zero
    collect  rows come by                                          copied; a word with too many of them is dropped
    finish   the tuple leaves: it has seen the whole master        the word has all its rows; it answers from now on, or goes
    review   every few rounds                                      words that are not asked for enough go

The inequality: bytes of the tuples that would wait on a word > bytes of its rows and of its record. `costs` are the bytes of a waiting
tuple, a row and a record, and the least number of tuples that say anything about a word.

Words that are being collected stand in a ring in the order of their beginning, each with a number of its own: a record may be dropped, and
serve another word, before its place in the ring is reached.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semistream.parts.compiler import kernel
from semistream.parts.hot_cache import (
    FREE_RECORD,
    HITS,
    NOBODY,
    ROWS,
    SINCE,
    HotCache,
    add_row,
    forget,
    open_record,
    record_of,
    room,
)
from semistream.parts.memory import F64, I32, I64, Memory
from semistream.parts.probing import Picked
from semistream.parts.slots import WORD
from semistream.parts.stream_table import StreamTable, count_waiting, home_of
from semistream.parts.words import spread

# positions in `costs`
WAITING_COST, ROW_COST, WORD_COST, LEAST = 0, 1, 2, 3
# positions in `Ring.state`
FIRST, COUNT, SHORT_ROWS, SHORT_WORDS, CYCLE, SERIAL = 0, 1, 2, 3, 4, 5
STATE = 6
_MOST_ROWS = 2**30
_LAST_SERIAL = 2**31 - 1
_ENOUGH = 1 << 16  # how far waiting tuples are counted


class Ring(NamedTuple):
    """Records of words that are being collected, with their numbers; where the ring begins, how many there are, how often rows and words
    found no room, the cycle, the last number. `suspects` are words whose tuples left without a match, each in a place that follows from
    the word.
    """

    records: I32
    serials: I32
    state: I64
    suspects: I64


@kernel
def most_rows(costs: F64, waiting: int) -> int:
    """The most rows a word may have to be worth keeping, when so many tuples wait on it; -1 if it is not worth its record."""
    spare = waiting * costs[WAITING_COST] - costs[WORD_COST]
    if waiting < costs[LEAST] or spare <= 0:
        return np.int64(-1)
    return min(np.int64(np.ceil(spare / costs[ROW_COST])) - 1, np.int64(_MOST_ROWS))


@kernel
def weigh(rows: Picked, waiting: I64, costs: F64) -> int:
    """Move rows of words to the front, those of a word side by side, that are worth keeping; returns how many rows."""
    count, at = 0, 0
    while at < rows.words.size:
        word, stop = rows.words[at], at + 1
        while stop < rows.words.size and rows.words[stop] == word:
            stop += 1
        if stop - at <= most_rows(costs, waiting[at]):
            for i in range(at, stop):
                rows.words[count], rows.row_at[count], rows.heap_at[count] = word, rows.row_at[i], rows.heap_at[i]
                count += 1
        at = stop
    return count


@kernel
def suspect(table: StreamTable, picks: I64, ring: Ring) -> None:
    """Remember words of tuples that leave without a match. Another word may take the place: who is forgotten is suspected again."""
    wide = table.slots.wide
    for slot in picks:
        word = wide[slot, WORD]
        ring.suspects[home_of(spread(word), ring.suspects.size)] = word


@kernel
def begin(cache: HotCache, table: StreamTable, picks: I64, costs: F64, ring: Ring, absent_only: bool) -> int:
    """Begin to collect the words of tuples that have come in, if enough wait on them; returns how many words.

    A word that is worth its record only, or any with `absent_only`, must be suspected to be absent; the first row says that it is not.
    """
    began, size = 0, ring.records.size
    for slot in picks:
        word = table.slots.wide[slot, WORD]
        suspected = ring.suspects[home_of(spread(word), ring.suspects.size)] == word
        if (absent_only and not suspected) or record_of(cache, word) >= 0:
            continue
        most = np.int64(0) if absent_only else np.int64(_MOST_ROWS)
        most = min(most, most_rows(costs, count_waiting(table, word, _ENOUGH)))
        if most < 0 or (most == 0 and not suspected):
            continue
        if cache.state[FREE_RECORD] < 0 or ring.state[COUNT] == size:
            ring.state[SHORT_WORDS] += 1 if cache.state[FREE_RECORD] < 0 else 0
            break
        ring.state[SERIAL] = ring.state[SERIAL] + 1 if ring.state[SERIAL] < _LAST_SERIAL else 1
        place = (ring.state[FIRST] + ring.state[COUNT]) % size
        ring.records[place] = open_record(cache, word, -1, most, ring.state[SERIAL])
        ring.serials[place] = ring.state[SERIAL]
        ring.state[COUNT] += 1
        began += 1
    return began


@kernel
def collect(cache: HotCache, memory: Memory, rows: Picked, ring: Ring) -> None:
    """Copy those of the rows whose words are being collected."""
    for i in range(rows.words.size):
        record = record_of(cache, rows.words[i])
        if record < 0 or cache.records[record, ROWS] >= 0:
            continue
        if -1 - cache.records[record, ROWS] >= cache.records[record, HITS]:
            forget(cache, memory, record)
        elif not room(cache, memory, rows.row_at[i : i + 1]):
            ring.state[SHORT_ROWS] += 1
            forget(cache, memory, record)
        else:
            add_row(cache, memory, record, rows.row_at[i], rows.heap_at[i])


@kernel
def finish(cache: HotCache, memory: Memory, table: StreamTable, costs: F64, ring: Ring, due: int) -> None:
    """The `due` words that were begun first have been collected for a whole round: who is worth it answers from now on."""
    for _ in range(due):
        record, serial = np.int64(ring.records[ring.state[FIRST]]), ring.serials[ring.state[FIRST]]
        ring.state[FIRST] = (ring.state[FIRST] + 1) % ring.records.size
        ring.state[COUNT] -= 1
        rows = np.int64(cache.records[record, ROWS])
        if rows >= 0 or rows == NOBODY or cache.records[record, SINCE] != serial:
            continue  # the word was dropped
        waiting = count_waiting(table, cache.record_word[record], _ENOUGH)
        if -1 - rows > most_rows(costs, waiting):
            forget(cache, memory, record)
        else:
            cache.records[record, ROWS], cache.records[record, HITS] = -1 - rows, 0
            cache.records[record, SINCE] = ring.state[CYCLE]


@kernel
def review(cache: HotCache, memory: Memory, costs: F64, cycle: int, counted: int, anew: bool) -> int:
    """Forget words for which fewer tuples would wait than they cost, by their hits a cycle; returns how many went.

    `counted` is how many cycles hits have been counted, unless a word came later. Words that came in this cycle are not judged. Hits of
    those that stay are counted `anew`, or go on.
    """
    forgotten = 0
    for record in range(cache.records.shape[0]):
        rows, age = np.int64(cache.records[record, ROWS]), cycle - np.int64(cache.records[record, SINCE])
        if rows < 0 or age <= 0:
            continue
        age = age if age < counted else np.int64(counted)
        waiting = np.int64(cache.records[record, HITS]) / age
        if rows * costs[ROW_COST] + costs[WORD_COST] >= waiting * costs[WAITING_COST]:
            forget(cache, memory, record)
            forgotten += 1
        elif anew:
            cache.records[record, HITS] = 0
    return forgotten
