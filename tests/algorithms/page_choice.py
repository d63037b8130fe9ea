"""Streams and masters in small for page choices: how many tuples a load answers, measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

import semistream as ss
from semistream import algorithms
from semistream.algorithms.choice import Choice
from semistream.algorithms.hybridjoin import HybridJoin

ROWS = 240_000
MEMORY = 2_400_000
WARM, MEASURED = 12, 12  # slots of tuples


def build(folder):
    """A master of rows of 100 bytes: integer keys, so that neighbours in frequency are neighbours on the disk."""
    keys = pa.array(np.arange(ROWS, dtype=np.int64))
    wide = {f"m{number}": pa.array(np.arange(ROWS, dtype=np.int64)) for number in range(11)}
    return ss.build_master(folder, pa.table({"id": keys} | wide), key="id", page_bytes=8192)


def probabilities(exponent, *, hot_together):
    """How often each key comes: Zipf's law over the keys in order, or shuffled."""
    chance = 1.0 / np.arange(1, ROWS + 1, dtype=np.float64) ** exponent
    if not hot_together:
        chance = np.random.default_rng(7).permutation(chance)
    return chance / chance.sum()


class Measured:
    """One run in steady state."""

    def __init__(self, master, chance, choice: Choice, algorithm="hybridjoin"):
        """`algorithm` says what the choice needs of the budget."""
        join = join_with(master, choice, algorithm)
        list(join([batch_of(np.zeros(1, np.int64))]))
        self.slots = join.report()["stream_slots"]
        random = np.random.default_rng(1)
        keys = np.searchsorted(np.cumsum(chance), random.random((WARM + MEASURED) * self.slots)).clip(max=ROWS - 1)
        self.loads = self.tuples = 0

        def stream():
            for start in range(0, keys.size, 4096):
                report = join.report()
                if start >= WARM * self.slots and not self.tuples:
                    self.loads, self.tuples = -report["loads"], -left(report)
                yield batch_of(keys[start : start + 4096])
            report = join.report()
            self.loads += report["loads"]
            self.tuples += left(report)

        for batch in join(stream()):
            del batch
        self.oldest = join.report()["wait_tuples_max"] / self.slots  # the longest wait, in slots of tuples

    @property
    def per_load(self):
        """Tuples answered by a load."""
        return self.tuples / self.loads


def join_with(master, choice, algorithm):
    """A join whose recipe has this choice of pages."""
    record = algorithms.TABLE[algorithm]
    algorithms.TABLE["measured"] = replace(record, name="measured", build=lambda parts: HybridJoin(parts, choice))
    try:
        return ss.Join(master, on="id", algorithm="measured", memory=MEMORY)
    finally:
        del algorithms.TABLE["measured"]


def left(report):
    """Tuples that have left."""
    return report["matched"] + report["unmatched"]


def batch_of(keys):
    """A batch of the stream."""
    return pa.record_batch({"id": pa.array(keys)})


def partition_chances(master, chance):
    """How often each partition is needed; partitions are what 72 KB of whole pages hold."""
    pages = master.reader()
    try:
        count = pages.pages
    finally:
        pages.close()
    rows_a_page = ROWS / count
    group = ((64 << 10) + 8192) // 8192
    starts = np.ceil(np.arange(0, count, group) * rows_a_page).astype(np.int64)
    return np.add.reduceat(chance, starts)
