"""HYBRIDJOIN-L: look up a tuple from the middle of the queue, for the old end is where the rare keys gather.

Naeem et al., DaWaK 2014; described in section 3.1 of their paper on a queue of frequent pages (see hybridjoin_pq.py).

Tuples of frequent keys are answered by loads made for others, so that the tuple that has waited longest is mostly a rare one, and its
page answers few. A tuple at a fixed share of the queue, counted from the young end, needs a frequent page more often.
The best place depends on the skew: near the young end if it is strong, the old end if there is none.

    stream -> stream table + arrival queue  [oldest ......... mark .... newest] -> leaves at its match
                                                               |  its key
    index  -> partition -> disk buffer   <---------------------+

Next page: that of the marked tuple, or of the oldest one when that has waited too long. Leaves: tuples whose key is complete. Stays in
memory: nothing of the master.

Departures from the print. A tuple that the mark has passed waits until somebody else needs its page, perhaps for ever: once eight stream
tables of tuples have entered after it, the oldest is served. The default place is 70 % and not 30 %, which loses to HYBRIDJOIN
unless the skew is strong and hot keys are neighbours. Preset "published": 30 %, no age limit, the published sizes.

>>> import pyarrow as pa, semistream as ss, tempfile
>>> folder = tempfile.mkdtemp() + "/colours.master"
>>> master = ss.build_master(folder, pa.table({"id": [1, 2, 3], "colour": ["red", "green", "blue"]}), key="id")
>>> join = ss.Join(master, on="id", algorithm="hybridjoin_l", memory="1MB")
>>> pa.Table.from_batches(join([pa.record_batch({"id": [3, 1, 9]})])).sort_by("id").to_pylist()
[{'id': 1, 'colour': 'red'}, {'id': 3, 'colour': 'blue'}]
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from semistream.algorithms import hybridjoin
from semistream.algorithms.choice import OldestFirst, Turn
from semistream.algorithms.hybridjoin import HybridJoin
from semistream.algorithms.record import Algorithm, Parts
from semistream.budget import Share
from semistream.parts import queue_mark
from semistream.parts.memory import I64
from semistream.pending import Pending
from semistream.protocols import Buffer, Found, Load, Reader

PLACE, PUBLISHED_PLACE = 0.7, 0.3
MOST_AGE = 8.0  # stream tables; with oldest first nobody waits for more than three


def shares(reader: Reader, memory_bytes: int) -> list[Share]:
    """As HYBRIDJOIN, and the mark."""
    return [*hybridjoin.shares(reader, memory_bytes), Share("page choice", 128)]


class FixedPlace:
    """The tuple at a share of the queue counted from the young end, unless the oldest has waited for `most_age` stream tables."""

    patience = 1

    def __init__(self, place: float, most_age: float) -> None:
        self._place, self._most_age, self._oldest = place, most_age, OldestFirst()

    def start(self, parts: Parts, buffer: Buffer, pending: Pending) -> None:
        """Put the mark into the queue."""
        self._oldest.start(parts, buffer, pending)
        self._pending = pending
        self._mark: I64 = parts.slab.take("page choice", 3, np.int64)
        queue_mark.reset(self._mark)
        pending.mark = self._mark

    def entered(self, slots: I64) -> None:
        """Tuples stand behind the newest now."""
        self._oldest.entered(slots)
        queue_mark.enter(self._mark, slots)

    def next(self) -> Turn:
        """The marked tuple's word, or that of an oldest one that has waited too long."""
        if self._oldest.is_due(self._most_age):
            return self._oldest.next()
        marked = queue_mark.settle(self._pending.records, self._mark, self._place)
        return Turn(int(self._pending.side.words[marked]))

    def loaded(self, begin: int, end: int, load: Load, left: int) -> Iterator[Found]:
        """Nobody else leaves."""
        return iter(())

    def left(self, word: int) -> None:
        """The queue has seen it."""


def choice(preset: str) -> FixedPlace:
    """The choice with the values of a preset."""
    return FixedPlace(PUBLISHED_PLACE, math.inf) if preset == "published" else FixedPlace(PLACE, MOST_AGE)


ALGORITHM = Algorithm(
    name="hybridjoin_l",
    title="HYBRIDJOIN-L",
    paper="Naeem et al. 2014",
    next_page="the partition of the tuple at a fixed place of the queue",
    leaves="tuples whose key is complete, at their match",
    keeps="nothing of the master",
    bound="once the age limit is reached, at most as many loads as tuples wait",
    needs_index=True,
    build=lambda parts: HybridJoin(parts, choice(parts.preset)),
    shares=shares,
    presets=("tuned", "published"),
)
