"""Tables and streams for the cases, made once and kept: the same bytes for every system and every later run.

    <data>/<shape>-r<rows>-s<seed>-<digest>/
        master.parquet, few.parquet     the master's rows in random order of keys; a few of them for rehearsals
        master-<digest>/                the same as a semistream master
        zipf1-<pool>x<batch>.arrow      the stream
        zipf1-<pool>x<batch>.json       number and checksum of the answers to each of its batches, and their schema

The digests are of the sources of the generators and of the master's format, so nothing stale is used after a change.
The right answers come from a fourth engine, Acero (the one inside pyarrow), which is not measured.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import semistream as ss
from semistream.bench.cases import SEED, Case, Preset
from semistream.bench.checksum import Checksum, checksum
from semistream.workloads import Tables, find

FEW_ROWS = 10_000
BUILD_BYTES = 1 << 30
SOURCES = Path(__file__).parents[1]


@dataclass(frozen=True)
class Answers:
    """What a right answer looks like: its schema and, per batch of the stream, number and checksum of its rows."""

    schema: pa.Schema
    batches: list[Checksum]

    @classmethod
    def load(cls, path: str | Path) -> Answers:
        """Read what `save` wrote."""
        found = json.loads(Path(path).read_text())
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(found["schema"])))
        return cls(schema, [Checksum(*batch) for batch in found["batches"]])

    def save(self, path: Path) -> None:
        """Write as JSON."""
        schema = base64.b64encode(self.schema.serialize()).decode()
        path.write_text(json.dumps({"schema": schema, "batches": self.batches}))


@dataclass(frozen=True)
class Dataset:
    """The files for one shape of table at one size; every property makes its file if it is not there yet."""

    data: Path
    shape: str
    master_rows: int
    seed: int = SEED

    @property
    def folder(self) -> Path:
        """Where all of them lie."""
        return self.data / f"{self.shape}-r{self.master_rows}-s{self.seed}-{_digest('workloads')}"

    @property
    def rows(self) -> Path:
        """The master's rows as Parquet, in random order of keys, so that whoever sorts them has to work."""
        return self._parquet("master.parquet", self.master_rows)

    @property
    def few_rows(self) -> Path:
        """Some of these rows."""
        return self._parquet("few.parquet", min(FEW_ROWS, self.master_rows))

    @property
    def on(self) -> dict[str, str]:
        """Stream column to master column."""
        return self._tables().on

    @property
    def row_bytes(self) -> float:
        """Mean size of a master row in Arrow."""
        rows = pq.read_table(self.few_rows)
        return float(rows.nbytes / rows.num_rows)

    def master(self, page_bytes: int | None = None) -> Path:
        """A semistream master of all rows."""
        return self._build("master", self.rows, page_bytes)

    def small_master(self) -> Path:
        """A semistream master of a few rows."""
        return self._build("few", self.few_rows, None)

    def stream(self, exponent: float, batches: int, batch_rows: int) -> tuple[Path, Path]:
        """The stream and its answers."""
        path = self.folder / f"zipf{exponent:g}-{batches}x{batch_rows}.arrow"
        answers = path.with_suffix(".json")
        if not answers.exists():
            reader = self._tables(exponent).stream(batches * batch_rows, batch_rows, self.seed)
            with whole(path) as partial, pa.ipc.new_file(str(partial), reader.schema) as writer:
                for batch in reader:
                    writer.write_batch(batch)
            with whole(answers) as partial:
                self._answers(path).save(partial)
        return path, answers

    def _answers(self, stream: Path) -> Answers:
        master = pq.read_table(self.rows)
        schema: pa.Schema | None = None
        sums = []
        with pa.OSFile(str(stream)) as file, pa.ipc.open_file(file) as reader:
            for index in range(reader.num_record_batches):
                batch = pa.Table.from_batches([reader.get_batch(index)])
                joined = batch.join(master, keys=list(self.on), right_keys=list(self.on.values()), join_type="inner")
                schema = schema or joined.schema
                sums.append(checksum(joined.to_batches(), schema))
        assert schema is not None
        return Answers(schema, sums)

    def _tables(self, exponent: float = 1.0) -> Tables:
        return find(self.shape).make(master_rows=self.master_rows, exponent=exponent, shuffled=True)

    def _parquet(self, name: str, rows: int) -> Path:
        path = self.folder / name
        if not path.exists():
            reader = self._tables().master(rows, self.seed)
            with whole(path) as partial, pq.ParquetWriter(partial, reader.schema) as writer:
                for batch in reader:
                    writer.write_batch(batch)
        return path

    def _build(self, name: str, rows: Path, page_bytes: int | None) -> Path:
        path = self.folder / f"{name}-{page_bytes or 'default'}-{_digest('masters', 'parts')}"
        if not path.exists():
            with whole(path) as partial:
                ss.build_master(partial, rows, key=list(self.on.values()), page_bytes=page_bytes)
        return path


def join_task(data: Path, preset: Preset, case: Case, system: str, page_bytes: int | None = None) -> dict[str, Any]:
    """Everything a process needs to measure one system in one case."""
    dataset = Dataset(data, case.shape, preset.master_rows)
    stream, answers = dataset.stream(case.exponent, preset.pool_batches, preset.batch_rows)
    memory_bytes = int(2 * dataset.row_bytes * preset.master_rows) if case.twice_master else preset.memory_bytes
    return {
        "task": "join",
        "system": system,
        "stream": str(stream),
        "answers": str(answers),
        "rows": str(dataset.rows),
        "rehearsal_rows": str(dataset.few_rows),
        "master": str(dataset.master(page_bytes)),
        "on": dataset.on,
        "io": case.io,
        "memory_bytes": memory_bytes,
        "batch_rows": preset.batch_rows,
        "warm_batches": preset.warm_batches,
        "least_batches": preset.least_batches,
        "timed_s": preset.timed_s,
        "verified_batches": preset.verified_batches,
    }


def build_task(dataset: Dataset, system: str, repeats: int) -> dict[str, Any]:
    """Everything a process needs to measure how fast a table is sorted and written."""
    return {
        "task": "build",
        "system": system,
        "rows": str(dataset.rows),
        "few_rows": str(dataset.few_rows),
        "key": list(dataset.on.values()),
        "memory_bytes": BUILD_BYTES,
        "repeats": repeats,
    }


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A name to write to that becomes `path` only when all is written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial-{os.getpid()}")
    try:
        yield partial
        partial.rename(path)
    finally:
        if partial.is_dir():
            shutil.rmtree(partial)
        partial.unlink(missing_ok=True)


def _digest(*folders: str) -> str:
    """Of all sources in these folders of the package."""
    seen = hashlib.sha256()
    for folder in folders:
        for source in sorted((SOURCES / folder).rglob("*.py")):
            seen.update(source.read_bytes())
    return seen.hexdigest()[:10]
