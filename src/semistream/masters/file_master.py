"""A master on disk, opened: what a join, the command line and a curious user can do with one version of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from semistream.errors import UsageError
from semistream.keys import KeyCodec
from semistream.masters import folder as folders
from semistream.masters import page_scan
from semistream.masters.claims import Pin
from semistream.masters.export import write_file
from semistream.masters.manifest import read_manifest
from semistream.masters.pages import stored_codec
from semistream.masters.progress import Progress
from semistream.masters.reader import FileReader

if TYPE_CHECKING:
    from semistream.masters.sqlite import SqliteMaster


def open_master(
    path: str | PathLike[str], io: str = "buffered", version: str | None = None
) -> FileMaster | SqliteMaster:
    """Open a built master by its path, or a table that stays where it is by its URL: `sqlite:///file.db?table=t&key=id`.

    `io="direct"` reads pages past the page cache, so that the operating system keeps no copy of them. `version` names an older version that
    is still there, such as "v-1"; without it the current one is opened.
    """
    if io not in ("buffered", "direct"):
        raise UsageError(f"io={io!r}: need 'buffered' (through the page cache) or 'direct' (past it)")
    if str(path).startswith("sqlite:"):
        from semistream.masters.sqlite import SqliteMaster

        if version is not None:
            raise UsageError(f"version={version!r}: a table in place has none; leave it out")
        return SqliteMaster(str(path))
    return FileMaster(path, io, version)


class FileMaster:
    """The version that was current when the master was opened. It is pinned until `close`, or until nobody refers to it.

    A pickled master is a name: whoever unpickles it, in another process or on another machine, opens the same version.
    """

    indexed = True

    def __init__(self, folder: str | PathLike[str], io: str = "buffered", version: str | None = None) -> None:
        self.folder = Path(folder)
        self.name = str(folder)
        self.io, self._direct = io, io == "direct"
        self._pin = folders.pin_version(self.folder, version) if version else folders.pin_current(self.folder)
        self.version = self.folder / self._pin.version
        try:
            self.manifest = read_manifest(self.version)
            self.schema = self.manifest.schema
            self.keys = KeyCodec([self.schema.field(name) for name in self.manifest.key])
            self.codec = stored_codec(self.schema, self.keys)
        except BaseException:
            self._pin.release()
            raise
        self.word_order = self.manifest.layout == "key"
        self.rows = self.manifest.rows
        self.row_bytes = self.codec.width + self.manifest.details["heap_bytes"] / max(1, self.rows)
        self.most_rows_per_key = self.manifest.max_multiplicity
        self.has_null_keys = self.manifest.null_key_rows > 0
        self.fingerprint = f"{self.version.name} {self.manifest.fingerprint}"

    def __reduce__(self) -> tuple[type[FileMaster], tuple[str, str, str]]:
        return FileMaster, (str(self.folder.absolute()), self.io, self.version.name)

    def reader(self) -> FileReader:
        """Pages of this version, for one join; the reader holds a pin of its own."""
        if not self._pin.held:
            raise UsageError(f"{self.name}: is closed; open it again")
        self._pin.renew()
        pin = Pin(self.folder, self._pin.version)
        unique = self.manifest.max_multiplicity <= 1
        try:
            return FileReader(
                self.version,
                self.codec,
                direct=self._direct,
                sorted_=self.word_order,
                unique=unique,
                release=pin.release,
            )
        except BaseException:
            pin.release()
            raise

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, in the order they lie on disk."""
        return page_scan.batches(self.version, self.keys, self.codec, self.schema)

    def info(self) -> dict[str, Any]:
        """What this version holds, as plain values."""
        manifest = self.manifest
        return {
            "path": self.name,
            "version": self.version.name,
            "layout": manifest.layout,
            "key": list(manifest.key),
            "rows": manifest.rows,
            "distinct_keys": manifest.distinct_words,
            "max_rows_per_key": manifest.max_multiplicity,
            "null_key_rows": manifest.null_key_rows,
            "pages": manifest.pages,
            "page_bytes": manifest.page_bytes,
            "bytes": sum(int(file["bytes"]) for file in manifest.files.values()),
            "columns": {field.name: str(field.type) for field in manifest.schema},
            "source": manifest.source,
            "watermark": manifest.watermark,
            "created": manifest.created,
            "format_version": manifest.format_version,
            "semistream_version": manifest.semistream_version,
        }

    def verify(self, progress: Progress | None = None) -> None:
        """Check every byte of this version against its checksums; MasterCorrupt names the file, page and byte that is wrong."""
        page_scan.verify(self.version, self.manifest, progress)

    def export(self, target: str | PathLike[str]) -> None:
        """Write all rows to a Parquet, Arrow or CSV file, by its ending."""
        write_file(Path(target), self.schema, self.batches())

    def vacuum(
        self,
        keep: int = 1,
        older_than: str | float | timedelta = folders.RETENTION,
        pins: Sequence[str | PathLike[str]] = (),
    ) -> folders.VacuumReport:
        """Remove old versions that nobody reads; see `folder.vacuum`."""
        return folders.vacuum(self.folder, keep=keep, older_than=older_than, pins=pins)

    def close(self) -> None:
        """Let go of the version; readers that are open keep theirs."""
        self._pin.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
