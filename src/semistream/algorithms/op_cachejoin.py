"""OP-CACHEJOIN: P-CACHEJOIN with two disk buffers, which two more threads fill while the disk phase serves.

Naeem, Mehmood, Malik, Jamil, Journal of Database Management 2020.

In P-CACHEJOIN the disk phase waits for every page it needs. Here it finds pages in memory: while it serves one buffer a loader fills the
other. The key of the oldest waiting tuple says what the one buffer brings, that of the newest what the other brings, and the disk phase
takes them in turns, or whichever is full.

    oldest key -> loader -> disk buffer ---+
                                           +--> disk phase, else as P-CACHEJOIN
    newest key -> loader -> disk buffer ---+        a buffer is empty, being filled, full, busy, and empty again

Next page: that of the oldest tuple, then that of the newest one. Leaves: tuples whose key is cached, at once; others when their key is
complete. Stays in memory: the rows of hot keys, and keys that are hot and absent from the master.

Departures from the print. Those of P-CACHEJOIN. What the paper leaves open: when both keys lie on the same pages only one buffer brings
them; when a buffer is full and nobody waits for its key any more, as the other one has served it, the load is thrown away unprobed. While a
tuple has waited for longer than `max_wait` the oldest key's buffer is served, whatever else is full. The loaders are two threads besides
those that compute. Where there is one thread in all there is one buffer, read when it is needed, and the two keys take turns. That two
loaders halve the time to read, as the cost model says, is the best case: a disk may have one arm, time to compute is not halved, and to
have a thread read a page from the page cache takes longer than to read it.

>>> import pyarrow as pa, semistream as ss, tempfile
>>> folder = tempfile.mkdtemp() + "/colours.master"
>>> master = ss.build_master(folder, pa.table({"id": [1, 2, 2], "colour": ["red", "green", "blue"]}), key="id")
>>> join = ss.Join(master, on="id", algorithm="op_cachejoin", memory="1MB", how="left", threads=2)
>>> pa.Table.from_batches(join([pa.record_batch({"id": [2, 9]})])).sort_by("colour").to_pylist()
[{'id': 2, 'colour': 'blue'}, {'id': 2, 'colour': 'green'}, {'id': 9, 'colour': None}]
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from semistream.algorithms import cachejoin, p_cachejoin, published
from semistream.algorithms.choice import Turn
from semistream.algorithms.hybridjoin import HybridJoin
from semistream.algorithms.loader import Loader, first_full
from semistream.algorithms.record import Parts
from semistream.budget import Share
from semistream.protocols import Found, Reader
from semistream.stream_rows import StreamRows
from semistream.stream_side import Arriving

_SECOND = "second disk buffer"


class TwoBuffers:
    """The disk phase: HYBRIDJOIN's, with two buffers that are filled ahead."""

    def __init__(self, parts: Parts) -> None:
        rows = cachejoin.PUBLISHED_ROWS
        self._disk = HybridJoin(parts, published_rows=rows, published_beside=rows if parts.threads > 1 else 0)
        second, threads = self._disk.buffer, None
        if parts.threads > 1:
            second = parts.buffer(_SECOND, second.room_bytes)
            threads = ThreadPoolExecutor(2, "semistream-loader")
            parts.closing.callback(threads.shutdown)
        self._oldest, self._newest = Loader(self._disk.buffer, threads), Loader(second, threads)
        self._turns = [self._oldest, self._newest]
        self.area = self._pending = self._disk.area
        self.patience = self._disk.patience

    def admit(self, block: Arriving) -> int:
        """Take what has room."""
        return self._disk.admit(block)

    def step(self) -> Iterator[Found]:
        """Serve what a full buffer holds, while the other is being filled."""
        if not self._pending.waiting:
            return
        loader = self._next()
        assert loader.turn is not None
        yield from self._disk.serve(loader.turn, loader.buffer)
        loader.empty()
        self._turns = [other for other in (self._oldest, self._newest) if other is not loader] + [loader]

    def _next(self) -> Loader:
        """A full buffer for which somebody still waits."""
        while True:
            self._begin(self._oldest, self._newest, self._pending.oldest_word())
            self._begin(self._newest, self._oldest, self._pending.newest_word())
            urgent = self._pending.hurry and self._oldest.turn is not None
            loader = first_full([self._oldest] if urgent else self._turns)
            if loader.turn is not None and loader.turn.word is not None and self._pending.waits_for(loader.turn.word):
                return loader
            loader.empty()

    def _begin(self, loader: Loader, other: Loader, word: int) -> None:
        """Have an empty buffer filled, unless the other one brings the same."""
        if loader.turn is not None:
            return
        turn = Turn(word)
        pages = next(self._disk.partitions(turn, loader.buffer), (0, 0))
        if other.turn is None or (word != other.turn.word and (pages != other.pages or pages == (0, 0))):
            loader.begin(turn, pages)


def waiting_shares(reader: Reader, rows: StreamRows, memory_bytes: int, threads: int) -> list[Share]:
    """What P-CACHEJOIN asks for, and a second disk buffer; one thread alone reads when it needs to, and has one."""
    asked = p_cachejoin.waiting_shares(reader, rows, memory_bytes, threads)
    (second,) = published.buffer_of(cachejoin.PUBLISHED_ROWS)(reader, memory_bytes)
    return [*asked, replace(second, part=_SECOND)] if threads > 1 else asked


ALGORITHM = replace(
    p_cachejoin.in_threads(cachejoin.ALGORITHM, TwoBuffers),
    name="op_cachejoin",
    title="OP-CACHEJOIN",
    paper="Naeem, Mehmood, Malik, Jamil 2020",
    next_page="the partition of the oldest waiting tuple, then that of the newest",
    waiting_shares=waiting_shares,
)
