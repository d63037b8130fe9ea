"""`bench core`: all systems in all cases, each in a process of its own, then building and start-up."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from semistream.algorithms import algorithms
from semistream.bench.cases import Case, Preset, preset_named
from semistream.bench.data import Dataset, build_task, join_task
from semistream.bench.launch import run_task
from semistream.bench.results import Progress, Row, Step, collect
from semistream.bench.rivals import RIVALS
from semistream.bench.startup import measure_startup
from semistream.errors import UsageError

BUILDERS = ("build_master", "duckdb_sort_parquet")
STARTUP = "startup"
OURS = "adaptive"
RIVAL_THREADS = 2


def measure_core(
    preset_name: str, systems: list[str] | None, cases: list[str] | None, data: Path, progress: Progress
) -> Row:
    """Results of all measurements; one that fails is a row with an error and without a rate."""
    preset = preset_named(preset_name)
    chosen = [Case.parse(name) for name in cases or preset.cases]
    family_cases = chosen if systems or cases else chosen[: preset.family_cases]
    return collect("core", preset, list(_steps(preset, checked_systems(systems), chosen, family_cases, data)), progress)


def checked_systems(asked: list[str] | None) -> list[str]:
    """The systems asked for, in the order of all: own algorithms, rivals, builders, start-up."""
    known = [*(one.name for one in algorithms()), *RIVALS, *BUILDERS, STARTUP]
    unknown = [name for name in asked or () if name not in known]
    if unknown:
        raise UsageError(f"bench: system {unknown[0]!r}: need some of {', '.join(known)}")
    return [name for name in known if asked is None or name in asked]


def _steps(
    preset: Preset, systems: list[str], cases: list[Case], family_cases: list[Case], data: Path
) -> Iterator[Step]:
    """What to do, in order: all systems of a case in a row, so that they see the machine in the same state."""
    remembered: dict[tuple[str, str], Row] = {}
    joining = [name for name in systems if name not in (*BUILDERS, STARTUP)]
    rehearsed: set[tuple[str, str]] = set()
    for case in cases:
        yield Step(f"{case.name}: data", partial(_prepare, preset, case, data))
        for name in joining:
            if case not in family_cases and name not in (*RIVALS, OURS):
                continue
            if name not in RIVALS and (name, case.shape) not in rehearsed:
                rehearsed.add((name, case.shape))
                yield Step(f"{case.name}: {name} compiles", partial(_rehearse, preset, case, name, data))
            yield Step(f"{case.name}: {name}", partial(_join, preset, case, name, data, remembered))
    for shape in dict.fromkeys(case.shape for case in cases):
        for name in (name for name in systems if name in BUILDERS):
            yield Step(f"{shape}-build: {name}", partial(_build, preset, shape, name, data))
    if STARTUP in systems:
        yield Step(STARTUP, partial(measure_startup, data, preset))


def _prepare(preset: Preset, case: Case, data: Path) -> list[Row]:
    join_task(data, preset, case, "")
    return []


def _rehearse(preset: Preset, case: Case, system: str, data: Path) -> list[Row]:
    """Fill the cache of kernels; what goes wrong here goes wrong again, and is reported, when it is measured."""
    task = join_task(data, preset, case, system) | {"task": "rehearse"}
    run_task(task, threads=_threads(system), timeout_s=preset.timeout_s)
    return []


def _join(preset: Preset, case: Case, system: str, data: Path, remembered: dict[tuple[str, str], Row]) -> list[Row]:
    """One join. A rival reads nothing and has no budget: measured once, it stands for all cases like it."""
    names = {"system": system, "case": case.name}
    same = (system, case.in_memory.name)
    if system in RIVALS and same in remembered:
        return [remembered[same] | names | {"measured_in": remembered[same]["case"]}]
    threads = RIVAL_THREADS if system in RIVALS else _threads(system)
    row = names | run_task(join_task(data, preset, case, system), threads=threads, timeout_s=preset.timeout_s)
    remembered[same] = row
    return [row]


def _build(preset: Preset, shape: str, system: str, data: Path) -> list[Row]:
    task = build_task(Dataset(data, shape, preset.master_rows), system, preset.repeats)
    return [
        {"system": system, "case": f"{shape}-build"} | run_task(task, threads=RIVAL_THREADS, timeout_s=preset.timeout_s)
    ]


def _threads(algorithm: str) -> int:
    """Cores an algorithm may use: as many as it says it has threads."""
    record = next(one for one in algorithms() if one.name == algorithm)
    threads: Any = record.capabilities.get("threads", 1)
    return int(threads)
