"""What a version of a master says about itself: `manifest.json`, the last file written and the first file read.

Everything a reader must know before it touches a page stands here: the columns, the key, how rows are laid out, how many pages there
are and what every file must sum to. The manifest carries a checksum of itself, so that a flipped digit in it is noticed too.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import xxhash

from semistream.errors import MasterCorrupt, MasterFormat, MasterNotFound

FORMAT_VERSION: Final = 1
MANIFEST: Final = "manifest.json"


@dataclass(frozen=True)
class Manifest:
    """One version of a master, described; every field is plain data so that it goes to JSON and back unchanged."""

    schema: pa.Schema
    key: tuple[str, ...]
    layout: str
    page_bytes: int
    rows: int
    pages: int
    key_mode: str  # "exact": the key word is the key; "hash": the real key is compared after a match of words
    distinct_words: int
    max_multiplicity: int  # rows of the most frequent key word; rows without a key count too
    null_key_rows: int
    row_bytes: int  # width of the fixed part of a row
    created: str  # ISO 8601, UTC
    source: str = ""
    watermark: str | None = None  # how far the source had come when it was read; the source's own words
    details: dict[str, Any] = field(default_factory=dict)  # what the page reader wants to find again
    files: dict[str, dict[str, Any]] = field(default_factory=dict)  # name -> {"bytes": n, "xxh3": "..."}
    semistream_version: str = ""
    format_version: int = FORMAT_VERSION

    @property
    def fingerprint(self) -> str:
        """The same for files with the same bytes."""
        return _checksum({"files": self.files, "schema": str(self.schema)})

    def to_json(self) -> str:
        """The text of `manifest.json`."""
        body = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        body["columns"] = {f.name: str(f.type) for f in self.schema}
        body["schema"] = base64.b64encode(self.schema.serialize().to_pybytes()).decode("ascii")
        body["key"] = list(self.key)
        return json.dumps({"checksum": _checksum(body), **body}, indent=1, ensure_ascii=False) + "\n"


def parse_manifest(text: str, where: str) -> Manifest:
    """The manifest in `text`; `where` names the file in error messages."""
    try:
        body = json.loads(text)
        version = int(body["format_version"])
    except (ValueError, KeyError, TypeError) as exc:
        raise MasterCorrupt(f"{where}: is not a manifest ({exc}); restore the file or build the master again") from exc
    if version > FORMAT_VERSION:
        raise MasterFormat(
            f"{where}: format {version}, written by semistream {body.get('semistream_version', '?')}; this semistream "
            f"reads formats up to {FORMAT_VERSION}: upgrade semistream or build the master again with this one"
        )
    if body.pop("checksum", None) != _checksum(body):
        raise MasterCorrupt(f"{where}: its checksum does not match; restore the file or build the master again")
    body.pop("columns")
    body["schema"] = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(body["schema"])))
    body["key"] = tuple(body["key"])
    return Manifest(**body)


def read_manifest(version: Path) -> Manifest:
    """The manifest of the version folder `version`."""
    path = version / MANIFEST
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError as exc:
        raise MasterNotFound(f"{path}: missing; this version is not complete, build the master again") from exc
    except UnicodeDecodeError as exc:
        raise MasterCorrupt(f"{path}: is not text ({exc}); restore the file or build the master again") from exc
    return parse_manifest(text, str(path))


def _checksum(body: dict[str, Any]) -> str:
    """Of the body without its `checksum`, in one canonical spelling."""
    return xxhash.xxh3_64_hexdigest(json.dumps(body, sort_keys=True, separators=(",", ":")).encode())
