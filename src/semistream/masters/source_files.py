"""Rows from files: one Parquet, CSV or Arrow file, or a folder of files of one of these kinds, local or behind a URI.

Columns are the union of all files' columns, read from every file before the first row is; numbers widen where files differ, anything
else that differs is an error. Folders written as `day=2024-01-01/part.parquet` give their column too. Table formats that only look like
a folder of Parquet (Delta, Iceberg, Hudi) are refused: their files hold rows that have been deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import csv, fs

from semistream.errors import SourceError
from semistream.masters.sources import BATCH_ROWS, Source, make_source

_KINDS: Final = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
    ".arrows": "stream",
}
_PACKED: Final = (".gz", ".bz2", ".zst", ".lz4", ".snappy")
_TABLE_FORMATS: Final = {"_delta_log": "Delta", ".hoodie": "Hudi", "metadata": "Iceberg"}


def file_source(text: str) -> Source:
    """The rows of the file or folder named by a path or URI."""
    system, path = fs.FileSystem.from_uri(text) if "://" in text else (fs.LocalFileSystem(), text)
    info = system.get_file_info(path)
    if info.type == fs.FileType.NotFound:
        raise SourceError(f"{text}: there is no such file or folder")
    paths = _files(system, path, text) if info.type == fs.FileType.Directory else [path]
    kinds = {_kind(system, file) for file in paths}
    if len(kinds) != 1 or None in kinds:
        raise SourceError(f"{text}: need files of one kind (.parquet, .csv, .tsv, .arrow), got {_endings(paths)}")
    kind = kinds.pop()
    if kind == "stream":
        return _stream_source(system, paths, text)
    dataset = _dataset(system, path, paths, str(kind))
    if kind == "parquet":
        return _parquet_source(dataset, text)
    options = {"batch_size": BATCH_ROWS, "batch_readahead": 2, "fragment_readahead": 1}
    return make_source(text, dataset.schema, None, lambda: dataset.scanner(**options).to_batches())


def _files(system: fs.FileSystem, folder: str, text: str) -> list[str]:
    found = system.get_file_info(fs.FileSelector(folder, recursive=True))
    below = {info.path: PurePosixPath(info.path).relative_to(PurePosixPath(folder)).parts for info in found}
    for parts in below.values():
        table_format = _TABLE_FORMATS.get(parts[0])
        if table_format == "Iceberg" and not parts[-1].endswith(".metadata.json"):
            continue
        if table_format is not None:
            raise SourceError(
                f"{text}: is a {table_format} table; open it with a {table_format} library and give its Arrow reader"
            )
    hidden = ("_", ".")  # markers such as _SUCCESS
    paths = sorted(i.path for i in found if i.is_file and not any(part.startswith(hidden) for part in below[i.path]))
    if not paths:
        raise SourceError(f"{text}: is a folder without data files; give one that holds .parquet, .csv or .arrow files")
    return paths


def _kind(system: fs.FileSystem, path: str) -> str | None:
    """By the ending, else by the first bytes."""
    name = PurePosixPath(path)
    suffix = name.with_suffix("").suffix if name.suffix in _PACKED else name.suffix
    if suffix.lower() in _KINDS:
        kind = _KINDS[suffix.lower()]
        return "stream" if kind == "arrow" and _head(system, path)[:4] == b"\xff\xff\xff\xff" else kind
    head = _head(system, path)
    if head.startswith(b"PAR1"):
        return "parquet"
    return "arrow" if head.startswith(b"ARROW1") else None


def _head(system: fs.FileSystem, path: str) -> bytes:
    with system.open_input_file(path) as file:
        return bytes(file.read(8))


def _endings(paths: list[str]) -> str:
    return ", ".join(sorted({PurePosixPath(path).suffix or PurePosixPath(path).name for path in paths})[:5])


def _dataset(system: fs.FileSystem, root: str, paths: list[str], kind: str) -> ds.Dataset:
    if kind == "tsv":
        file_format: Any = ds.CsvFileFormat(csv.ParseOptions(delimiter="\t"))
    else:
        file_format = {"parquet": ds.ParquetFileFormat, "csv": ds.CsvFileFormat, "arrow": ds.IpcFileFormat}[kind]()
    folders = {} if paths == [root] else {"partitioning": ds.HivePartitioning.discover(), "partition_base_dir": root}
    factory = ds.FileSystemDatasetFactory(system, paths, file_format, ds.FileSystemFactoryOptions(**folders))
    return factory.finish(factory.inspect(promote_options="permissive", fragments=None))


def _parquet_source(dataset: ds.Dataset, text: str) -> Source:
    """File by file and batch by batch: the dataset scanner would hold whole row groups of several files."""
    rows = sum(fragment.metadata.num_rows for fragment in dataset.get_fragments())

    def read() -> Iterator[pa.RecordBatch]:
        for fragment in dataset.get_fragments():
            constants = ds.get_partition_keys(fragment.partition_expression)
            with fragment.filesystem.open_input_file(fragment.path) as handle:
                file = pq.ParquetFile(handle, pre_buffer=False, buffer_size=1 << 16)
                for batch in file.iter_batches(BATCH_ROWS):
                    yield _in_schema(batch, dataset.schema, constants)

    return make_source(text, dataset.schema, rows, read)


def _in_schema(batch: pa.RecordBatch, schema: pa.Schema, constants: dict[str, Any]) -> pa.RecordBatch:
    arrays = []
    for wanted in schema:
        place = batch.schema.get_field_index(wanted.name)
        if place >= 0:
            arrays.append(batch.column(place).cast(wanted.type))
        else:
            value = pa.scalar(constants.get(wanted.name), wanted.type)
            arrays.append(pa.repeat(value, batch.num_rows))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _stream_source(system: fs.FileSystem, paths: list[str], text: str) -> Source:
    with system.open_input_stream(paths[0]) as handle:
        schema = pa.ipc.open_stream(handle).schema

    def read() -> Iterator[pa.RecordBatch]:
        for path in paths:
            with system.open_input_stream(path) as handle:
                yield from pa.ipc.open_stream(handle)

    return make_source(text, schema, None, read)
