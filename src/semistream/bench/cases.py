"""What is measured: cases, spelled like `fixed-zipf0.5-direct-2r`, and presets: how many cases, how large, how long.

fixed | retail      the table: the papers' 120-byte rows of integers, or rows as in a real shop (text, decimals)
zipf1 | 0.5 | 0     how unevenly the stream asks for keys
buffered | direct   how master pages are read: through the page cache (warm, not counted), or past it
2r                  the budget is twice the master instead of 50 MB
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from semistream.errors import UsageError
from semistream.units import parse_bytes

_FORM = re.compile(r"(fixed|retail)-zipf(\d(?:\.\d+)?)-(buffered|direct)(-2r)?")
SEED = 1


@dataclass(frozen=True)
class Case:
    """One setting in which systems are compared."""

    shape: str
    exponent: float
    io: str
    twice_master: bool = False

    @classmethod
    def parse(cls, name: str) -> Case:
        """The case of that name.

        >>> Case.parse("retail-zipf0.5-direct")
        Case(shape='retail', exponent=0.5, io='direct', twice_master=False)
        """
        form = _FORM.fullmatch(name)
        if form is None:
            raise UsageError(
                f"bench: case {name!r}: need a name such as fixed-zipf1-buffered or retail-zipf0-direct-2r"
            )
        return cls(form[1], float(form[2]), form[3], bool(form[4]))

    @property
    def name(self) -> str:
        """The name that `parse` reads."""
        return f"{self.shape}-zipf{self.exponent:g}-{self.io}{'-2r' if self.twice_master else ''}"

    @property
    def in_memory(self) -> Case:
        """The case that stands for this one where nothing is read and no budget is set."""
        return Case(self.shape, self.exponent, "buffered")


@dataclass(frozen=True)
class Preset:
    """How large the tables are, how long one measurement takes and which cases are run unless others are asked for."""

    name: str
    cases: tuple[str, ...]
    family_cases: int  # so many of them for the papers' algorithms; ours and the rivals are measured in all
    master_rows: int
    batch_rows: int
    pool_batches: int  # different batches of the stream, handed out in rotation
    warm_batches: int
    least_batches: int
    timed_s: float
    verified_batches: int
    memory_bytes: int
    repeats: int  # of the figures for start-up and building
    timeout_s: float  # of one process


_ALL = tuple(
    Case(shape, exponent, io, twice).name
    for twice in (False, True)
    for shape in ("fixed", "retail")
    for exponent in (1, 0.5, 0)
    for io in ("buffered", "direct")
)
_QUICK = (*_ALL[:8], "fixed-zipf1-buffered-2r")

PRESETS = {
    preset.name: preset
    for preset in (
        Preset("smoke", _ALL[:2], 2, 20_000, 10_000, 4, 2, 4, 0.1, 2, parse_bytes("2MB"), 1, 120),
        Preset("quick", _QUICK, 1, 2_000_000, 1_000_000, 6, 3, 4, 3.0, 2, parse_bytes("50MB"), 3, 180),
        Preset("full", _ALL, len(_ALL), 2_000_000, 1_000_000, 12, 6, 10, 20.0, 12, parse_bytes("50MB"), 5, 600),
    )
}


def preset_named(name: str) -> Preset:
    """The preset of that name, or an error that lists them."""
    if name not in PRESETS:
        raise UsageError(f"bench: preset {name!r}: need one of {', '.join(PRESETS)}")
    return PRESETS[name]
