"""SSBJ as printed: Algorithm 1 of the SSBJ paper (Distributed and Parallel Databases, 2019), line by line.

Six faults. `repaired=1,3` repairs the first and the third, to look at the others alone; with all six repaired the answers are right.

    1  lines 39-41 delete the oldest chunk in every iteration, also before it has seen all partitions
    2  line 33 is asked for every r anew, while the number of waiting tuples changes: some rows of a key are cached, others are not
    3  the eviction of lines 42-51 runs in every iteration of its R-cycle, and f_count was set to 0 by the one before
    4  line 45 divides by 10 whatever the age of the cached key
    5  line 33 stands inside "if r matches": a key without rows is never asked about and never cached as absent
    6  s_count of a key that arrives within the incrementing cycle has missed the rows before
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from tests.stories.printed.told import Moment, Pages, Told
from tests.stories.script import shorten

STATES = ("phase-out", "incrementing", "switching")


@dataclass
class Cached:
    """A key in H_R: its rows, how often it was asked for, and the R-cycle in which it came."""

    rows: list[str] = field(default_factory=list)
    f_count: int = 0
    since: int = 0


class Ssbj:
    """The state of the algorithm, and what its lines do to it. Tuples have the bytes v_S and v_R; s_f is 1."""

    def __init__(self, pages: Pages, repaired: frozenset[int], stream_bytes: int, master_bytes: int) -> None:
        self.pages, self.repaired, self.told = pages, repaired, Told()
        self.stream_bytes, self.master_bytes = stream_bytes, master_bytes
        self.waiting: dict[int | None, list[str]] = {}  # H_S
        self.s_count: dict[int | None, int] = {}
        self.queue: deque[Moment] = deque()
        self.cache: dict[int | None, Cached] = {}  # H_R
        self.switching: dict[int | None, list[str]] = {}  # s_B
        self.chosen: set[int | None] = set()  # repair 2: keys that switch, decided once
        self.counted: set[int | None] = set()  # repair 6: keys that waited all through the incrementing cycle
        self.cycle = 0  # rc

    def iterate(self, number: int, chunk: Moment) -> None:
        """One iteration of the outer loop, lines 2 to 52."""
        said = []
        if number == 0:  # lines 3-14
            self.cycle += 1
            self.begin_cycle()
            said.append(f"cycle {self.cycle} ({STATES[self.cycle % 3]})")
        if 3 in self.repaired and number == 0 and self.cycle % 10 == 0:
            said += self.evict()
        hits = self.cache_phase(chunk)
        met = self.disk_phase(number)
        gone = self.expire()
        if 3 not in self.repaired and self.cycle % 10 == 0:  # line 42
            said += self.evict()
        said.append(f"page {number}")
        said += [
            f"{verb} {shorten(names)}" for verb, names in (("hits", hits), ("gives", met), ("deletes", gone)) if names
        ]
        self.told.happened.append(f"{', '.join(said)}; cache {self.shown()}")

    def begin_cycle(self) -> None:
        state = self.cycle % 3
        if state == 1:
            self.counted = set(self.waiting)
        if state == 2 and 2 in self.repaired:
            self.chosen = {key for key in self.waiting if self.worth(key)}
            absent = {key for key in self.chosen if not self.s_count.get(key)} if 5 not in self.repaired else set()
            self.switching = {key: [] for key in self.chosen - absent}
        if state == 0:  # lines 9-13
            for key, rows in self.switching.items():
                cached = self.cache.setdefault(key, Cached(since=self.cycle))
                cached.rows += rows
            self.switching, self.s_count = {}, {}

    def worth(self, key: int | None) -> bool:
        """The cache inequality, lines 31-33."""
        if 6 in self.repaired and key not in self.counted:
            return False
        disk_bytes = len(self.waiting[key]) * self.stream_bytes
        return disk_bytes > self.s_count.get(key, 0) * self.master_bytes

    def cache_phase(self, chunk: Moment) -> list[str]:
        """Lines 15-23."""
        hits, missed = [], []
        for name, key in chunk:
            if key in self.cache:
                self.told.pairs += [(name, label) for label in self.cache[key].rows]
                self.cache[key].f_count += 1
                hits.append(name)
            else:
                self.waiting.setdefault(key, []).append(name)
                missed.append((name, key))
        self.queue.append(missed)
        return hits

    def disk_phase(self, number: int) -> list[str]:
        """Lines 24-38."""
        met = []
        for key, label in self.pages[number]:
            if self.cycle % 3 == 2 and 2 in self.repaired and key in self.switching:
                self.switching[key].append(label)
            if key not in self.waiting:
                continue
            self.told.pairs += [(name, label) for name in self.waiting[key]]
            met.append(f"{','.join(shorten(self.waiting[key]).split())}+{label}")
            if self.cycle % 3 == 1:  # lines 28-29
                self.s_count[key] = self.s_count.get(key, 0) + 1
            elif self.cycle % 3 == 2 and 2 not in self.repaired and self.worth(key):  # lines 30-36
                self.switching.setdefault(key, []).append(label)
        return met

    def expire(self) -> list[str]:
        """Lines 39-41; s_count belongs to the entry of H_S and goes with it."""
        if 1 in self.repaired and len(self.queue) < len(self.pages):
            return []
        gone = self.queue.popleft()
        for name, key in gone:
            self.waiting[key].remove(name)
            if not self.waiting[key]:
                del self.waiting[key]
                self.s_count.pop(key, None)
                self.counted.discard(key)
        return [name for name, _ in gone]

    def evict(self) -> list[str]:
        """Lines 43-50."""
        evicted = []
        for key, cached in list(self.cache.items()):
            age = min(self.cycle - cached.since, 10) if 4 in self.repaired else 10
            if age and len(cached.rows) * self.master_bytes >= cached.f_count / age * self.stream_bytes:
                del self.cache[key]
                evicted.append(str(key))
            cached.f_count = 0
        return [f"evicts {shorten(evicted)}"] if evicted else []

    def shown(self) -> str:
        """What H_R holds, and in brackets what is on its way to it."""
        held = [f"{key}: {shorten(cached.rows) or 'no row'}" for key, cached in self.cache.items()]
        coming = [f"{key}: {shorten(rows) or 'no row'}" for key, rows in self.switching.items()]
        return f"[{'; '.join(held)}]" + (f" coming [{'; '.join(coming)}]" if coming else "")


def run(
    pages: Pages,
    moments: list[Moment],
    repaired: str = "",
    stream_bytes: int = 20,
    master_bytes: int = 20,
    more: int = 0,
) -> Told:
    """An iteration for every moment, then `more`."""
    faults = frozenset(map(int, str(repaired).split(","))) if repaired else frozenset()
    ssbj = Ssbj(pages, faults, stream_bytes, master_bytes)
    for iteration, chunk in enumerate([*moments, *([[]] * more)]):
        ssbj.iterate(iteration % len(pages), chunk)
    ssbj.told.waiting = [name for names in ssbj.waiting.values() for name in names]
    return ssbj.told
