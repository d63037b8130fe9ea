"""HYBRIDJOIN: load the page that the oldest waiting tuple needs, and answer everybody else who needs it too.

Naeem, Dobbie, Weber, IJDWM 2011; Knowledge and Information Systems 2013, section 3.

The key of the oldest waiting tuple is looked up in an index and the partition of the master that holds it is loaded. Every row of it
probes the waiting tuples; those that match leave at once and make room. With skewed keys most of a load's matches are younger
tuples, and parts of the master that nobody asks for are never read.

    stream -> stream table + arrival queue -> leaves at its match
                 |  oldest key
                 v                ^ every row of the partition probes all waiting tuples
    index  -> partition -> disk buffer

Next page: that of the oldest waiting tuple. Leaves: tuples whose key is complete. Stays in memory: nothing of the master.

Departures from the print. A key that the master lacks would stay the oldest and load its page for ever: after its page was probed the
oldest tuple's key leaves, matched or not. An empty queue reads nothing. A partition is an aligned run of pages, as the cost equations
assume, and not the rows that follow the key. Keys with several rows are legal: a key leaves only when all its rows have been probed, and a
key whose rows do not fit the disk buffer is served in several reads. `preset="published"` has the disk buffer of 500 rows and charges
what the published runs charged for a waiting tuple.

>>> import pyarrow as pa, semistream as ss, tempfile
>>> folder = tempfile.mkdtemp() + "/colours.master"
>>> master = ss.build_master(folder, pa.table({"id": [1, 2, 2], "colour": ["red", "green", "blue"]}), key="id")
>>> join = ss.Join(master, on="id", algorithm="hybridjoin", memory="1MB", how="left")
>>> pa.Table.from_batches(join([pa.record_batch({"id": [2, 9]})])).sort_by("colour").to_pylist()
[{'id': 2, 'colour': 'blue'}, {'id': 2, 'colour': 'green'}, {'id': 9, 'colour': None}]
"""

from __future__ import annotations

from collections.abc import Iterator

from semistream.algorithms import published
from semistream.algorithms.choice import Choice, OldestFirst, Turn
from semistream.algorithms.record import Algorithm, Parts
from semistream.budget import Share
from semistream.protocols import Buffer, Found, Reader
from semistream.stream_side import Arriving

BUFFER_MOST = 64 << 10  # about 500 rows of 120 bytes, the papers' choice and near the optimum of the page-size curve


def shares(reader: Reader, memory_bytes: int) -> list[Share]:
    """One partition at a time lies in memory; the rest is for waiting tuples."""
    least = reader.largest_page_bytes + 8192
    return [Share("disk buffer", least, weight=1.0, most=max(least, min(BUFFER_MOST + 8192, memory_bytes // 8)))]


class HybridJoin:
    """HYBRIDJOIN at work. `choice` says which pages are next; `published_rows` is the disk buffer of the preset of that name, and
    `published_beside` are rows for which a recipe has other room in that preset.
    """

    front = None

    def __init__(
        self, parts: Parts, choice: Choice | None = None, published_rows: int = 500, published_beside: int = 0
    ) -> None:
        self._choice = choice = choice or OldestFirst()
        self._reader = parts.reader
        self.buffer = parts.buffer(most_bytes=published.buffer_bytes(parts, published_rows))
        self.area = self._pending = parts.pending(
            published.slots(parts, published_rows + published_beside, published.HYBRIDJOIN_TUPLE_BYTES)
        )
        self._key_names = parts.key_names
        self._claimed = (0, 0, -1)  # what was claimed last, and when: nobody new came, nobody new can match
        choice.start(parts, self.buffer, self._pending)
        self.patience = choice.patience

    def admit(self, block: Arriving) -> int:
        """Take what has room."""
        taken = self._pending.admit(block, block.picks.size)
        if taken:
            self._choice.entered(self._pending.admitted)
        return taken

    def step(self) -> Iterator[Found]:
        """Serve what the choice says, and with it all that its partition can serve."""
        if self._pending.waiting:
            yield from self.serve(self._choice.next(), self.buffer)

    def serve(self, turn: Turn, buffer: Buffer) -> Iterator[Found]:
        """Bring the pages of a turn into a buffer and serve everybody they can serve."""
        for begin, end in self.partitions(turn, buffer):
            load = buffer.read(begin, end)
            if self._reader.runs and self._claimed != (begin, end, self._pending.now):
                left = self._pending.waiting
                yield from self._pending.claim(load)
                self._claimed = begin, end, self._pending.now
                yield from self._choice.loaded(begin, end, load, left - self._pending.waiting)
            if turn.word is not None:
                yield from self._pending.probe_word(load, turn.word)
        if turn.word is not None:
            yield from self._pending.leave_word(turn.word)
            self._choice.left(turn.word)

    def partitions(self, turn: Turn, buffer: Buffer) -> Iterator[tuple[int, int]]:
        """The pages to load, in order; none twice, as no row may answer twice."""
        done = 0
        for first, stop in [turn.pages] if turn.word is None else self._look_up(turn.word):
            while first < stop:
                begin, end = buffer.partition(first, stop)
                yield max(begin, done), end
                first = done = end

    def _look_up(self, word: int) -> list[tuple[int, int]]:
        keys = self._pending.keys_of([word], self._key_names) if self._reader.wants_keys else []
        return self._reader.look_up(word, keys)


ALGORITHM = Algorithm(
    name="hybridjoin",
    title="HYBRIDJOIN",
    paper="Naeem, Dobbie, Weber 2011",
    next_page="the partition of the oldest waiting tuple",
    leaves="tuples whose key is complete, at their match",
    keeps="nothing of the master",
    bound="at most as many loads as tuples wait",
    needs_index=True,
    build=HybridJoin,
    shares=shares,
    presets=("tuned", "published"),
)
