"""`bench spark`: `enrich` beside Spark's own joins and beside the bare way into Python, each in a process of its own."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from semistream.bench.data import Dataset, whole
from semistream.bench.launch import run_task
from semistream.bench.results import Progress, Row, Step, collect
from semistream.bench.spark_cases import SYSTEMS, SparkCase, SparkPreset, spark_preset
from semistream.errors import UsageError

CORES = 2
SHAPE, EXPONENT = "fixed", 1.0


def measure_spark(
    preset_name: str, systems: list[str] | None, cases: list[str] | None, data: Path, progress: Progress
) -> Row:
    """Results of all measurements; one that fails is a row with an error and without a rate."""
    preset = spark_preset(preset_name)
    if unknown := [name for name in systems or () if name not in SYSTEMS]:
        raise UsageError(f"bench: system {unknown[0]!r}: need some of {', '.join(SYSTEMS)}")
    chosen = [preset.case(name) for name in cases] if cases else list(preset.cases)
    steps = []
    for case in chosen:
        steps.append(Step(f"{case.name}: data", partial(_prepare, preset, case, data)))
        steps += [
            Step(f"{case.name}: {name}", partial(_measure, preset, case, name, data))
            for name in SYSTEMS
            if systems is None or name in systems
        ]
    return collect("spark", preset, steps, progress)


def _prepare(preset: SparkPreset, case: SparkCase, data: Path) -> list[Row]:
    _task(preset, case, "", data)
    return []


def _measure(preset: SparkPreset, case: SparkCase, system: str, data: Path) -> list[Row]:
    found = run_task(_task(preset, case, system, data), threads=CORES, timeout_s=preset.timeout_s)
    return [{"system": system, "case": case.name} | found]


def _task(preset: SparkPreset, case: SparkCase, system: str, data: Path) -> Row:
    """Everything a process needs to measure one system in one case."""
    dataset = Dataset(data, SHAPE, preset.master_rows)
    stream, answers = dataset.stream(EXPONENT, case.pieces, case.piece_rows)
    return {
        "task": "spark",
        "system": system,
        "stream": str(_pieces(stream)),
        "answers": str(answers),
        "rows": str(dataset.rows),
        "master": str(dataset.master()),
        "on": dataset.on,
        "memory_bytes": preset.memory_bytes,
        "counted_rows": case.counted_rows,
        "warm": case.warm,
        "runs": case.runs,
        "verified": case.pieces if case.runs else min(preset.verified, case.pieces),
    }


def _pieces(stream: Path) -> Path:
    """The batches of a stream as Parquet files, one each, of two row groups, so that both cores have something to read."""
    folder = stream.with_suffix(".files")
    if not folder.exists():
        with whole(folder) as partial_folder, pa.OSFile(str(stream)) as file, pa.ipc.open_file(file) as reader:
            partial_folder.mkdir()
            for index in range(reader.num_record_batches):
                batch = reader.get_batch(index)
                path = partial_folder / f"{index:04}.parquet"
                pq.write_table(pa.Table.from_batches([batch]), path, row_group_size=-(-batch.num_rows // 2))
    return folder
