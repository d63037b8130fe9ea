"""Unit costs, and what an iteration costs with them: every term has the name of the verb that it pays for.

verb       symbol   is done for
read       c_IO     a load: a start, and every byte
probe      c_H      a master row that is looked for among the waiting tuples, and a stream tuple that is looked for in the cache
settle     c_O      a row of output
leave      c_E      a tuple that is taken out of stream table and queue
take       c_S      a tuple that comes from the stream
admit      c_A      a tuple that begins to wait
check      c_F      a row of a load, to see whether it is worth keeping
keep       c_B      a row that is copied into the cache
hand over  c_AI     a tuple that goes from one thread to another
look up    -        the index, once a load; the papers do not count it
step       -        what an iteration costs whatever it does; the papers do not count it
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True)
class UnitCosts:
    """Seconds for one of each. A read is random or part of a scan."""

    read_s: float
    read_byte_s: float
    scan_s: float
    scan_byte_s: float
    probe_s: float
    settle_s: float
    leave_s: float
    take_s: float
    admit_s: float
    check_s: float
    keep_s: float
    hand_over_s: float = 0.0
    hit_s: float | None = None  # a look-up in the cache, where it was measured on its own
    look_up_s: float = 0.0
    step_s: float = 0.0
    piece_s: float = 0.0  # of taking tuples from the stream, beside what each costs: for all that are taken at once
    settle_byte_s: float = 0.0  # of output, beside what a row costs whatever its width

    def read(self, count_bytes: float, *, scanning: bool) -> float:
        """Reading so many bytes at once."""
        if scanning:
            return self.scan_s + count_bytes * self.scan_byte_s
        return self.read_s + count_bytes * self.read_byte_s

    @property
    def cache_probe_s(self) -> float:
        """Looking a stream tuple up in the cache; the papers have one cost for both tables."""
        return self.probe_s if self.hit_s is None else self.hit_s


@dataclass(frozen=True)
class Iteration:
    """One iteration: how many tuples it finishes, and what that costs, term by term.

    Phases run one after the other, unless there are several: then the longest counts.
    """

    hits: float  # w_N: tuples that the cache, or what is pinned, answers
    misses: float  # w_S: tuples that the load answers
    phases: Mapping[str, Mapping[str, float]]
    shared: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))  # terms of no phase

    @property
    def tuples(self) -> float:
        """All of them."""
        return self.hits + self.misses

    @property
    def phase_seconds(self) -> dict[str, float]:
        """Every phase by itself."""
        return {name: sum(terms.values()) for name, terms in self.phases.items()}

    @property
    def seconds(self) -> float:
        """How long it takes (c_loop)."""
        return max(self.phase_seconds.values()) + sum(self.shared.values())

    @property
    def terms(self) -> dict[str, float]:
        """Seconds by verb, phases added up."""
        total: dict[str, float] = {}
        for terms in [*self.phases.values(), self.shared]:
            for name, seconds in terms.items():
                total[name] = total.get(name, 0.0) + seconds
        return total

    @property
    def rate(self) -> float:
        """Tuples a second (the service rate)."""
        return self.tuples / self.seconds if self.seconds else float("inf")


def one_after_the_other(hits: float, misses: float, terms: Mapping[str, float]) -> Iteration:
    """An iteration of one thread."""
    return Iteration(hits, misses, {"all": {name: cost for name, cost in terms.items() if cost}})
