"""An explanation: what was predicted, line by line, and beside it what a run has measured. As text and as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from semistream.errors import UsageError
from semistream.units import format_bytes


@dataclass(frozen=True)
class Line:
    """One algorithm. `terms` are seconds a tuple."""

    algorithm: str
    memory_bytes: int
    rate: float
    twice_memory_rate: float
    slots: float
    hits: float  # tuples that the cache answers between two loads
    misses: float  # and that a load answers
    pages_per_tuple: float
    wait_tuples: float
    wait_s: float
    bytes_by_part: dict[str, int]
    terms: dict[str, float]


class Compared(NamedTuple):
    """A figure, predicted and measured."""

    what: str
    predicted: float
    measured: float

    @property
    def deviation(self) -> float | None:
        """Predicted relative to measured, 0 if they agree; None where nothing was measured."""
        return self.predicted / self.measured - 1 if self.measured else None


@dataclass(frozen=True)
class Explanation:
    """Algorithms, best first; those that cannot do it, and why; and a run beside its prediction."""

    memory_bytes: int | None
    rate: float | None
    lines: list[Line]
    left_out: dict[str, str]
    compared: list[Compared]

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "memory_bytes": self.memory_bytes,
            "rate": self.rate,
            "algorithms": [asdict(line) for line in self.lines],
            "left_out": self.left_out,
            "measured": [{**one._asdict(), "deviation": one.deviation} for one in self.compared],
        }

    def __str__(self) -> str:
        goal = f"in {format_bytes(self.memory_bytes)}" if self.memory_bytes else f"for {self.rate:,.0f} tuples/s"
        head = f"{'predicted ' + goal:<24} {'tuples/s':>12} {'memory':>9} {'hits':>5} {'pages/tuple':>11} {'wait':>9}   twice the memory"
        rows = [
            f"  {line.algorithm:<22} {line.rate:>12,.0f} {format_bytes(line.memory_bytes):>9} "
            f"{line.hits / (line.hits + line.misses):>5.0%} {line.pages_per_tuple:>11.4f} {_time(line.wait_s):>9}   "
            f"x {line.twice_memory_rate / line.rate:.2f}"
            for line in self.lines
        ]
        best = self.lines[0]
        parts = sorted(best.bytes_by_part.items(), key=lambda one: -one[1])[:5]
        dearest, whole = sorted(best.terms.items(), key=lambda one: -one[1])[:4], sum(best.terms.values())
        rows += ["", f"{best.algorithm}: " + ", ".join(f"{part} {format_bytes(size)}" for part, size in parts)]
        rows += ["  time for: " + ", ".join(f"{term} {cost / whole:.0%}" for term, cost in dearest)]
        rows += [f"not {name}: {why}" for name, why in self.left_out.items()]
        if self.compared:
            rows += ["", f"{'measured':<24} {'predicted':>12} {'measured':>12} {'deviation':>10}"]
        for one in self.compared:
            rows.append(
                f"  {one.what:<22} {one.predicted:>12,.4g} {one.measured:>12,.4g} {_percent(one.deviation):>10}"
            )
        return "\n".join([head, *rows])


def beside(lines: Sequence[Line], report: Mapping[str, Any]) -> list[Compared]:
    """The counters of a run, beside what was predicted for its algorithm."""
    found = [line for line in lines if line.algorithm == report.get("algorithm")]
    if not found:
        raise UsageError(f"report: is of algorithm {report.get('algorithm')!r}, for which nothing is predicted here")
    line, loads, finished = found[0], report["loads"] or 1, report["finished"]
    if not finished:
        raise UsageError("report: no tuple was finished yet; give the report of a run that has seen some of the stream")
    both = line.hits + line.misses
    return [
        Compared("tuples a load", both, finished / loads),
        Compared("of these by the load", line.misses, report["waited"] / loads),
        Compared("of these by the cache", line.hits, (finished - report["waited"]) / loads),
        Compared("pages a tuple", line.pages_per_tuple, report["pages_read"] / finished),
        Compared("slots", line.slots, float(report["stream_slots"])),
        Compared("tuples/s", line.rate, report["rows_per_s"]),
    ]


def _time(seconds: float) -> str:
    return (
        f"{seconds:,.1f} s"
        if seconds >= 1
        else f"{seconds * 1e3:.0f} ms"
        if seconds >= 1e-3
        else f"{seconds * 1e6:.0f} us"
    )


def _percent(deviation: float | None) -> str:
    return "-" if deviation is None else f"{deviation:+.1%}"
