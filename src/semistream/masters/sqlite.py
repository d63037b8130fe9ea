"""A SQLite table in place as a master: nothing is copied, a join reads the table through the same protocol as a built master.

What a join sees does not change while it runs: all readers of one opened master share one read transaction. In WAL mode writers go on
meanwhile; in the older rollback mode they wait. Opening walks the key's index once to cut it into pages (sqlite_pages.py), and reads
the table once if it has columns of variable length, because a budget must know the largest page before the first row is read.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import cached_property
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, Final, Self

import pyarrow as pa
import xxhash

from semistream.errors import ColumnError, MasterCorrupt, MasterNotFound, UsageError
from semistream.keys import KeyCodec
from semistream.masters import sqlite_pages as pages
from semistream.masters.export import write_file
from semistream.masters.pages import encode_rows, stored_codec
from semistream.masters.progress import Progress
from semistream.masters.sqlite_reader import SqliteReader
from semistream.masters.sqlite_rows import (
    FETCH_ROWS,
    SqliteUrl,
    connect,
    describe,
    explained,
    fetched,
    parse_sqlite_url,
)
from semistream.masters.sqlite_values import Relation, quoted, to_batch
from semistream.records import RowCodec

_PAGE_BYTES: Final = 16 << 10
_SAMPLE_ROWS: Final = 1000

_CELL_BYTES = 64.0  # of a text value; SQLite keeps no average, and only the reorder buffer's first window depends on it


class SqliteMaster:
    """A table, opened at `sqlite:///file.db?table=name[&key=a,b]`; without `key` its primary key is the key.

    A pickled master is its URL: whoever unpickles it opens the table as it is then.
    """

    def __init__(self, url: str) -> None:
        self.name = url
        parsed = parse_sqlite_url(url)
        if parsed.table is None:
            raise UsageError(
                f"{url}: a query has no index and no row numbers; give table=, or build a master from the query"
            )
        if not parsed.path.is_file():
            raise MasterNotFound(f"{url}: there is no file {parsed.path}")
        self._where = f"{parsed.path} ({parsed.table})"
        self._table = parsed.table
        with explained(self._where):
            self.link = connect(parsed.path, self._where)
            self._finalizer = weakref.finalize(self, self.link.close)
            try:
                self._describe(parsed)
            except BaseException:
                self._finalizer()
                raise

    word_order = False  # pages follow the database's order of keys

    def __reduce__(self) -> tuple[type[SqliteMaster], tuple[str]]:
        return SqliteMaster, (self.name,)

    def _describe(self, parsed: SqliteUrl) -> None:
        self.relation: Relation = describe(self.link, parsed, self._where)
        self.schema = self.relation.schema
        if not pages.identity(self.link, self._table) or self._is_view():
            raise UsageError(f"{self.name}: is a view; give a table, or build a master from ?query=SELECT ...")
        key = list(parsed.key) or pages.primary_key(self.link, self._table)
        missing = [name for name in key if name not in self.schema.names]
        if missing or not key:
            raise ColumnError(
                f"{self.name}: "
                + (
                    f"there is no column {missing[0]!r}"
                    if missing
                    else "has no primary key; add &key=column to the URL"
                )
                + f"; columns are {', '.join(self.schema.names)}"
            )
        self.keys = KeyCodec([self.schema.field(name) for name in key])
        self.codec: RowCodec = stored_codec(self.schema, self.keys)
        self._count(key)
        self._cut(key)

    @cached_property
    def fingerprint(self) -> str:
        """Of columns, keys' places and sizes of rows. Values that change where they stand are not noticed: it would take a scan."""
        known = [str(self.schema), str(self.keys.fields), *(repr((s.bounds, s.counts, s.sizes)) for s in self.sections)]
        return f"{self._table} {xxhash.xxh3_64_hexdigest(chr(10).join(known).encode())}"

    def _is_view(self) -> bool:
        kind = self.link.execute("SELECT type FROM sqlite_master WHERE name = ?", [self._table]).fetchone()
        return kind is not None and kind[0] == "view"

    def _count(self, key: list[str]) -> None:
        names, table = ", ".join(quoted(name) for name in key), self.relation.sql
        groups = f"SELECT count(*) AS n FROM {table} GROUP BY {names}"
        self.row_bytes = self.codec.width + _CELL_BYTES * len(self.codec.cells)
        self.rows, self.distinct, self.most_rows_per_key = self.link.execute(
            f"SELECT coalesce(sum(n), 0), count(*), coalesce(max(n), 0) FROM ({groups})"
        ).fetchone()
        lacking = " OR ".join(f"{quoted(name)} IS NULL" for name in key)
        self.null_key_rows = self.link.execute(f"SELECT count(*) FROM {table} WHERE {lacking}").fetchone()[0]
        self.has_null_keys = self.null_key_rows > 0

    def _cut(self, key: list[str]) -> None:
        table, identity = self.relation.sql, pages.identity(self.link, self._table)
        ordered = pages.indexed_order(self.link, self.relation, self._table, key)
        self.indexed = ordered is not None
        self.sections = [pages.Section(identity, "true")]
        if ordered is not None:
            pages.check_keys(self.link, self.relation, key)
            self.key_places = [key.index(name) for name in ordered]
            present = " AND ".join(f"{quoted(name)} IS NOT NULL" for name in key)
            columns = tuple(pages.key_sql(name, self.schema.field(name).type) for name in ordered)
            self.sections = [pages.Section(columns, present), pages.Section(identity, f"NOT ({present})")]
        page_rows = max(1, _PAGE_BYTES // self._row_bytes())
        for section in self.sections:
            pages.cut(self.link, table, section, page_rows, self._cell_bytes(key))
        self.index_bytes = sum(sys.getsizeof(v) + 16 for s in self.sections for v in chain(s.bounds, *s.bounds)) + 1024

    def _row_bytes(self) -> int:
        """What one of the first rows takes in a page."""
        rows = encode_rows(next(self.batches(_SAMPLE_ROWS), _no_rows(self.schema)), self.keys, self.codec)
        return int(self.codec.width + 8 + int(rows.ends[-1]) // max(1, rows.words.size))

    def _cell_bytes(self, key: list[str]) -> str:
        """SQL for an upper bound of the bytes of variable length in all rows: their cells, and the hidden copy of the key."""
        cells = [column.name for column in self.codec.cells if column.name in self.schema.names]
        if self.keys.hidden is not None:
            cells += [name for name in key if self.codec.by_name[name].is_cell]
        hidden = 9 * len(key) if self.keys.hidden is not None else 0
        lengths = "".join(f" + coalesce(length(CAST({quoted(name)} AS BLOB)), 0)" for name in cells)
        return f"total({hidden + 7}{lengths})" if self.codec.cells else "0"

    def reader(self) -> SqliteReader:
        """Pages of the table as it was when the master was opened."""
        return SqliteReader(self)

    def batches(self, batch_rows: int = FETCH_ROWS) -> Iterator[pa.RecordBatch]:
        """All rows, in the order of the table."""
        cursor, seen = self.link.execute(f"SELECT {self.relation.columns()} FROM {self.relation.sql}"), 0
        while rows := fetched(cursor, self._where, batch_rows):
            yield to_batch(rows, self.relation, seen)
            seen += len(rows)

    def info(self) -> dict[str, Any]:
        """What the table holds, as plain values."""
        return {
            "path": self.name,
            "layout": "sqlite",
            "key": [field.name for field in self.keys.fields],
            "indexed": self.indexed,
            "rows": self.rows,
            "distinct_keys": self.distinct,
            "max_rows_per_key": self.most_rows_per_key,
            "null_key_rows": self.null_key_rows,
            "pages": sum(len(section.bounds) for section in self.sections),
            "columns": {field.name: str(field.type) for field in self.schema},
        }

    def verify(self, progress: Progress | None = None) -> None:
        """Let SQLite check the file, and read every value."""
        with explained(self._where):
            found = self.link.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if found != "ok":
            raise MasterCorrupt(f"{self._where}: {found}")
        done = 0
        for batch in self.batches():
            done += batch.num_rows
            if progress is not None:
                progress(done, self.rows, "checking")

    def export(self, target: str | PathLike[str]) -> None:
        """Write all rows to a Parquet, Arrow or CSV file, by its ending."""
        write_file(Path(target), self.schema, self.batches())

    def vacuum(
        self, keep: int = 1, older_than: str | float | timedelta = 0, pins: Sequence[str | PathLike[str]] = ()
    ) -> Any:
        """A table in place has no old versions."""
        raise UsageError(f"{self.name}: a table in place has no versions to remove")

    def close(self) -> None:
        """End the read transaction; readers of this master end with it."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], kind) for kind in schema.types], schema=schema)
