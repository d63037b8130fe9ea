"""`ss.calibrate()`: measure what this machine needs for each verb, in less than a minute, and keep it."""

from __future__ import annotations

import datetime as dt
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import semistream
from semistream.errors import UsageError
from semistream.machine import machine
from semistream.models import UnitCosts
from semistream.tuning import experiments, part_experiments
from semistream.tuning.calibration import Calibration
from semistream.tuning.experiments import Ground

Progress = Callable[[int, "int | None", str], None]
_STEPS = 12


def calibrate(
    path: str | os.PathLike[str] | None = None,
    *,
    folder: str | os.PathLike[str] | None = None,
    io: str = "buffered",
    progress: Progress | None = None,
) -> Calibration:
    """Unit costs of this machine, saved to `path`, by default where `explain` looks for them.

    `folder` is where a temporary master of 30 MB is written and read: name one on the disk that your masters are on. `io` is how it is
    read, "buffered" or "direct", as with `open_master`.
    """
    if io not in ("buffered", "direct"):
        raise UsageError(f'io={io!r}: need "buffered" or "direct"')
    if folder is not None and not Path(folder).is_dir():
        raise UsageError(
            f"folder={str(folder)!r}: there is no such folder; make it, or leave it out for a temporary one"
        )
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="semistream-calibrate-", dir=folder) as place:
        costs, reads = _measure(Path(place), io, progress or (lambda *_: None))
    found = Calibration(
        machine=machine(),
        version=semistream.__version__,
        io=io,
        measured=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        seconds=round(time.perf_counter() - begun, 1),
        costs=costs,
        reads={
            pattern: {str(size): seconds for size, seconds in by_size.items()} for pattern, by_size in reads.items()
        },
    )
    found.save(path)
    return found


def _measure(place: Path, io: str, progress: Progress) -> tuple[UnitCosts, dict[str, dict[int, float]]]:
    """Every experiment once; each needs what the ones before it found."""
    done = iter(range(_STEPS))

    def says(doing: str) -> None:
        progress(next(done), _STEPS, doing)

    says("building a master")
    ground = Ground(place, io)
    try:
        says("reading")
        reads = part_experiments.read_costs(ground)
        (read, read_byte), (scan, scan_byte) = (line(reads[pattern]) for pattern in ("random", "scan"))
        says("taking tuples")
        take = experiments.take_s(ground)
        says("letting them wait")
        admit = experiments.admit_s(ground, take)
        says("hitting a cache, and writing output")
        hit, settle, settle_byte = experiments.hit_and_settle_s(ground, take)
        says("taking tuples piece by piece")
        piece = experiments.piece_s(ground)
        output = settle + experiments.NARROW_BYTES * settle_byte
        says("probing")
        probe = part_experiments.probe_s(ground)
        says("looking keys up")
        look_up = part_experiments.look_up_s(ground)

        def tuple_s(memory: int) -> float:
            return take + piece / experiments.taken_at_once(memory) + admit + output

        def load_s(size: float) -> float:
            return read + size * read_byte + look_up

        says("letting tuples go")
        leave, step = experiments.leave_and_step_s(ground, tuple_s, load_s, probe)
        says("filling a cache")
        keep = part_experiments.keep_s(ground, scan_byte)
        says("showing rows to a cache")
        check = experiments.check_s(ground, lambda memory: tuple_s(memory) + hit + leave, load_s, probe, step)
        says("handing over")
        hand_over = part_experiments.hand_over_s()
    finally:
        ground.close()
    return (
        UnitCosts(
            read_s=read,
            read_byte_s=read_byte,
            scan_s=scan,
            scan_byte_s=scan_byte,
            probe_s=probe,
            settle_s=settle,
            leave_s=leave,
            take_s=take,
            admit_s=admit,
            check_s=check,
            keep_s=keep,
            hand_over_s=hand_over,
            hit_s=hit,
            look_up_s=look_up,
            step_s=step,
            piece_s=piece,
            settle_byte_s=settle_byte,
        ),
        reads,
    )


def line(by_size: dict[int, float]) -> tuple[float, float]:
    """Seconds = start + bytes * per byte, where relative deviations are least; neither is negative.

    >>> start, per_byte = line({1000: 3e-3, 2000: 4e-3, 4000: 6e-3})
    >>> round(start, 6), round(per_byte, 9)
    (0.002, 1e-06)
    """
    size, seconds = np.array(list(by_size), np.float64), np.array(list(by_size.values()), np.float64)
    per_byte, start = (float(value) for value in np.polyfit(size, seconds, 1, w=1 / seconds))
    if start < 0:
        return 0.0, float((1 / seconds * size).sum() / ((size / seconds) ** 2).sum())
    if per_byte < 0:
        return float(seconds.mean()), 0.0
    return start, per_byte
