"""Recipes in steady state over small masters, and what they count: tuples an iteration answers, and how."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

import semistream as ss

ROWS = 120_000


def build(folder, layout):
    """Rows of 100 bytes; `asked` says how often each is asked for by rank, whichever place its key has."""
    ranks = np.arange(ROWS, dtype=np.int64)
    columns = {"id": pa.array(key_of(ranks)), "asked": pa.array(ROWS - ranks)}
    columns |= {f"m{number}": pa.array(ranks) for number in range(10)}
    frequency = {"frequency": "asked"} if layout == "frequency" else {}
    return ss.build_master(folder, pa.table(columns), key="id", layout=layout, page_bytes=8192, **frequency)


def key_of(ranks):
    """Hot keys lie strewn over the keys."""
    return np.random.default_rng(5).permutation(ROWS)[ranks].astype(np.int64) * 1_000_003


class Counted(NamedTuple):
    """What a run in steady state did, and with what."""

    slots: int
    hits: float
    misses: float
    partition_rows: float
    cached_rows: int
    least: float  # tuples that make a row worth caching
    recipe: object

    @property
    def hit_share(self):
        """Of all tuples."""
        return self.hits / (self.hits + self.misses)


def steady(master, exponent, algorithm, memory, *, warm=12, measured=10, batch=2048):
    """Run a stream and count after the warm-up, both given in stream tables of tuples."""
    join = ss.Join(master, on="id", algorithm=algorithm, memory=memory)
    chance = 1 / np.arange(1, ROWS + 1) ** exponent
    cumulated, keys = np.cumsum(chance / chance.sum()), key_of(np.arange(ROWS))
    random = np.random.default_rng(1)
    before, after, recipe = {}, {}, None

    def stream():
        nonlocal before, after, recipe
        yield batch_of(keys, np.zeros(1, np.int64))
        slots = join.report()["stream_slots"]
        recipe = join._run._shop.recipe
        while after.get("waited", 0) < (warm + measured) * slots:
            ranks = np.searchsorted(cumulated, random.random(batch)).clip(max=ROWS - 1)
            yield batch_of(keys, ranks)
            after = join.report()
            if not before and after["waited"] >= warm * slots:
                before = after

    for out in join(stream()):
        del out
    done = {name: after[name] - before[name] for name in ("finished", "waited", "loads", "pages_read")}
    loads = done["loads"]
    pages = join._master.reader()
    rows_a_page = ROWS / pages.pages
    pages.close()
    front = getattr(recipe, "front", None)
    return Counted(
        slots=after["stream_slots"],
        hits=(done["finished"] - done["waited"]) / loads,
        misses=done["waited"] / loads,
        partition_rows=rows_a_page * done["pages_read"] / loads,
        cached_rows=front.slots - front.free if hasattr(front, "slots") else 0,
        least=least_of(recipe),
        recipe=recipe,
    )


def least_of(recipe):
    """The threshold of the recipe's cache, if it has one."""
    pending = getattr(getattr(recipe, "_inner", None), "_pending", None)
    showing = getattr(pending, "_showing", None)
    return showing._keeper.least if showing is not None else 0.0


def batch_of(keys, ranks):
    """A batch of the stream."""
    return pa.record_batch({"id": pa.array(keys[ranks])})
