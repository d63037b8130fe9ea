"""A calibration: unit costs, and the machine, version and way of reading they belong to. Kept as TOML."""

from __future__ import annotations

import os
import tomllib
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import semistream
from semistream.errors import CalibrationError
from semistream.machine import machine
from semistream.models import UnitCosts

FORMAT = 1


@dataclass(frozen=True)
class Calibration:
    """What `calibrate` measured."""

    machine: str
    version: str  # of semistream
    io: str  # "buffered" or "direct"
    measured: str  # when, ISO 8601
    seconds: float  # how long it took
    costs: UnitCosts
    reads: dict[str, dict[str, float]] = field(default_factory=dict)  # pattern -> bytes -> seconds

    def save(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write it, by default where `load` looks for it."""
        target = Path(path) if path is not None else default_path(self.io)
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_name(f"{target.name}.{os.getpid()}")
        unfinished.write_text(self.to_toml())
        unfinished.replace(target)
        return target

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    def to_toml(self) -> str:
        """As text."""
        lines = [f"format = {FORMAT}"]
        lines += [
            f"{name} = {_value(getattr(self, name))}" for name in ("machine", "version", "io", "measured", "seconds")
        ]
        lines += ["", "[costs]  # seconds"]
        lines += [f"{name} = {_value(value)}" for name, value in asdict(self.costs).items() if value is not None]
        for pattern, by_size in self.reads.items():
            lines += ["", f"[reads.{pattern}]  # bytes = seconds"]
            lines += [f"{size} = {_value(seconds)}" for size, seconds in by_size.items()]
        return "\n".join(lines) + "\n"

    def check(self, where: str) -> Calibration:
        """Refuse costs of another machine or version."""
        for what, theirs, ours in (
            ("on machine", self.machine, machine()),
            ("with semistream", self.version, semistream.__version__),
        ):
            if theirs != ours:
                raise CalibrationError(
                    f"{where}: was measured {what} {theirs!r}, and this is {ours!r}; run `semistream calibrate`"
                )
        return self


def default_path(io: str = "buffered") -> Path:
    """`$SEMISTREAM_CALIBRATION`, else a file in the user's settings."""
    chosen = os.environ.get("SEMISTREAM_CALIBRATION")
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return Path(chosen) if chosen else home / "semistream" / f"calibration-{io}.toml"


def load_calibration(path: str | os.PathLike[str] | None = None, io: str = "buffered") -> Calibration:
    """What was saved, if it is this machine's and this version's; else `CalibrationError`."""
    source = Path(path) if path is not None else default_path(io)
    try:
        found = parse(source.read_text(), str(source)).check(str(source))
        if found.io != io:
            raise CalibrationError(
                f"{source}: was measured with {found.io} reads, and these are {io}; run `semistream calibrate --io {io}`"
            )
        return found
    except FileNotFoundError:
        raise CalibrationError(
            f"{source}: there are no unit costs of this machine yet; run `semistream calibrate`, which takes less than a minute"
        ) from None


def parse(text: str, where: str) -> Calibration:
    """From text."""
    try:
        told: dict[str, Any] = tomllib.loads(text)
        if told["format"] != FORMAT:
            raise CalibrationError(
                f"{where}: has format {told['format']!r}, this semistream reads {FORMAT}; run `semistream calibrate`"
            )
        known = {one.name for one in fields(UnitCosts)}
        costs = UnitCosts(**{name: _seconds(value) for name, value in told["costs"].items() if name in known})
        facts = {name: str(told[name]) for name in ("machine", "version", "io", "measured")}
        return Calibration(**facts, seconds=float(told["seconds"]), costs=costs, reads=told.get("reads", {}))
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise CalibrationError(f"{where}: is no calibration ({error}); run `semistream calibrate`") from error


def _seconds(value: Any) -> float:
    seconds = float(value)
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"a cost is {value!r}, need seconds that are not negative")
    return seconds


def _value(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else f'"{value}"'
