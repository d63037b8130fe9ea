"""What `bench spark` measures: three cases, six systems, and how large both are.

batch1000    a streaming query whose micro-batches are small: what one costs
batch1m      one whose micro-batches are large: how many rows a second
frame10m     one batch DataFrame over a master that would fit into memory

Streams are Zipf 1 over the papers' rows of 120 bytes; every system has the same session, two cores and the same files.
"""

from __future__ import annotations

from dataclasses import dataclass

from semistream.errors import UsageError
from semistream.units import parse_bytes

SYSTEMS = ("enrich", "pass_through", "spark_default", "spark_broadcast", "spark_merge", "spark_cached")


@dataclass(frozen=True)
class SparkCase:
    """One setting: `pieces` files of `piece_rows` rows, one a micro-batch, or all of them in one frame, which is run `runs` times."""

    name: str
    piece_rows: int
    pieces: int
    warm: int  # of the micro-batches, or runs, so many are not counted
    runs: int = 0  # 0: a streaming query

    @property
    def counted_rows(self) -> int:
        """Rows of what is timed as one."""
        return self.piece_rows * self.pieces if self.runs else self.piece_rows


@dataclass(frozen=True)
class SparkPreset:
    """How large the tables are and how often everything is done."""

    name: str
    master_rows: int
    batch_rows: int  # of the largest micro-batch
    memory_bytes: int
    verified: int  # pieces whose answers are checked
    timeout_s: float  # of one process
    cases: tuple[SparkCase, ...]

    def case(self, name: str) -> SparkCase:
        """The case of that name, or an error that lists them."""
        found = {case.name: case for case in self.cases}
        if name not in found:
            raise UsageError(f"bench: case {name!r}: need some of {', '.join(found)}")
        return found[name]


def _cases(small: int, large: int, pieces: int, runs: int) -> tuple[SparkCase, ...]:
    return (
        SparkCase("batch1000", small, 2 * pieces, 2 * pieces // 3),
        SparkCase("batch1m", large, pieces, pieces // 3),
        SparkCase("frame10m", large, pieces, 1, runs),
    )


SPARK_PRESETS = {
    preset.name: preset
    for preset in (
        SparkPreset("smoke", 20_000, 2000, parse_bytes("8MB"), 1, 120, _cases(200, 2000, 3, 2)),
        SparkPreset("quick", 2_000_000, 1_000_000, parse_bytes("50MB"), 1, 240, _cases(1000, 1_000_000, 10, 4)),
        SparkPreset("full", 2_000_000, 1_000_000, parse_bytes("50MB"), 10, 1200, _cases(1000, 1_000_000, 10, 10)),
    )
}


def spark_preset(name: str) -> SparkPreset:
    """The preset of that name, or an error that lists them."""
    if name not in SPARK_PRESETS:
        raise UsageError(f"bench: preset {name!r}: need one of {', '.join(SPARK_PRESETS)}")
    return SPARK_PRESETS[name]
