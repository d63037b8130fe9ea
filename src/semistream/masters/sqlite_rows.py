"""Rows of SQLite as Arrow: the URL, the column types, and the values, converted without loss or not at all.

SQLite stores any value in any column; the declared type is only a wish. Here it becomes a promise: a column is given the Arrow type its
declaration asks for, and a value that does not fit it is an error that names row, column and value. Columns without a declared type
(expressions of a query) get the type of the values they hold, found by one look at all of them.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

import pyarrow as pa

from semistream.errors import MasterBusy, MasterCorrupt, SourceError, UsageError
from semistream.masters.sources import Source, make_source
from semistream.masters.sqlite_values import Relation, quoted, to_batch

FETCH_ROWS: Final = 8_192
BUSY_SECONDS: Final = 2.0  # how long a writer's lock is waited for
_FORM: Final = "sqlite:///file.db?table=name, with &key=a,b for a master in place, or sqlite:///file.db?query=SELECT..."
_DECIMAL: Final = re.compile(r"(?:DECIMAL|NUMERIC)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
_BY_NAME: Final[tuple[tuple[str, pa.DataType], ...]] = (  # first match wins, as in SQLite's own rules
    (r"BOOL", pa.bool_()),
    (r"TIMESTAMPTZ|TIMESTAMP WITH TIME ZONE", pa.timestamp("us", tz="UTC")),
    (r"TIMESTAMP|DATETIME", pa.timestamp("us")),
    (r"DATE", pa.date32()),
    (r"TIME", pa.time64("us")),
    (r"INT", pa.int64()),
    (r"CHAR|CLOB|TEXT|STRING|JSON|UUID", pa.string()),
    (r"BLOB|BINARY", pa.binary()),
    (r"REAL|FLOA|DOUB|NUMERIC|DECIMAL|NUMBER", pa.float64()),
)
_BY_VALUE: Final = {
    frozenset[str](): pa.null(),
    frozenset({"integer"}): pa.int64(),
    frozenset({"real"}): pa.float64(),
    frozenset({"integer", "real"}): pa.float64(),
    frozenset({"text"}): pa.string(),
    frozenset({"blob"}): pa.binary(),
}


@dataclass(frozen=True)
class SqliteUrl:
    """The parts of `sqlite:///relative.db?table=t&key=a,b` (four slashes before an absolute path)."""

    path: Path
    table: str | None
    query: str | None
    key: tuple[str, ...]


def parse_sqlite_url(url: str) -> SqliteUrl:
    """Take the URL apart.

    >>> parse_sqlite_url("sqlite:///shop.db?table=product&key=id")
    SqliteUrl(path=PosixPath('shop.db'), table='product', query=None, key=('id',))
    """
    parts = urlsplit(url)
    asked = parse_qs(parts.query, keep_blank_values=True)
    unknown = set(asked) - {"table", "query", "key"}
    if parts.netloc or not parts.path.strip("/") or unknown or ("table" in asked) == ("query" in asked):
        raise UsageError(f"{url}: need {_FORM}")
    key = tuple(name for name in asked.get("key", [""])[0].split(",") if name)
    table, query = (asked[name][0] if name in asked else None for name in ("table", "query"))
    return SqliteUrl(Path(unquote(parts.path)[1:]), table, query, key)


def connect(path: Path, where: str) -> sqlite3.Connection:
    """A read-only connection inside one read transaction: what it sees does not change while it is open."""
    if not path.is_file():
        raise SourceError(f"{where}: there is no file {path}")
    link = sqlite3.connect(
        f"{path.resolve().as_uri()}?mode=ro", BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=True
    )
    link.execute("BEGIN")
    link.execute("SELECT count(*) FROM sqlite_master").fetchone()  # a transaction begins with its first read
    return link


@contextmanager
def explained(where: str) -> Iterator[None]:
    """SQLite's errors as ours: a lock may go away, anything else is wrong with the file."""
    try:
        yield
    except sqlite3.ProgrammingError as exc:
        raise UsageError(f"{where}: {exc}; open the master again") from exc
    except sqlite3.Error as exc:
        if "locked" in str(exc):
            raise MasterBusy(f"{where}: {exc}; another process is writing, try again") from exc
        raise MasterCorrupt(f"{where}: {exc}") from exc


def fetched(cursor: sqlite3.Cursor, where: str, rows: int) -> list[tuple[Any, ...]]:
    """The next rows of a query."""
    with explained(where):
        return cursor.fetchmany(rows)


def describe(link: sqlite3.Connection, url: SqliteUrl, where: str) -> Relation:
    """Find out the columns of the URL's table or query."""
    if url.query is None:
        name, sql = str(url.table), quoted(str(url.table))
    else:
        name, sql = "semistream_query", f"({url.query})"
        link.execute(f"CREATE TEMP VIEW {name} AS {url.query}")
    columns = [(row[1], row[2].upper()) for row in link.execute(f"PRAGMA table_xinfo({quoted(name)})") if row[6] != 1]
    if not columns:
        raise SourceError(f"{where}: there is no table {name}; it has {', '.join(_tables(link)) or 'no tables'}")
    fields = [pa.field(column, _arrow_type(link, sql, column, kind, where)) for column, kind in columns]
    return Relation(where, sql, pa.schema(fields), tuple(kind for _, kind in columns))


def _tables(link: sqlite3.Connection) -> list[str]:
    return [
        row[0] for row in link.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name")
    ]


def _arrow_type(link: sqlite3.Connection, sql: str, column: str, declared: str, where: str) -> pa.DataType:
    if number := _DECIMAL.search(declared):
        precision, scale = int(number[1]), int(number[2] or 0)
        return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
    for pattern, kind in _BY_NAME:
        if re.search(pattern, declared):
            return kind
    found = frozenset(row[0] for row in link.execute(f"SELECT DISTINCT typeof({quoted(column)}) FROM {sql}")) - {"null"}
    if found not in _BY_VALUE:
        raise SourceError(
            f"{where}: column {column} has no declared type and holds {' and '.join(sorted(found))} values; "
            "give it one type with CAST in ?query="
        )
    return _BY_VALUE[found]


def sqlite_source(url: str) -> Source:
    """A table or query of a SQLite file, read in one snapshot."""
    parsed = parse_sqlite_url(url)
    where = f"{parsed.path} ({parsed.table or 'query'})"
    with closing(connect(parsed.path, where)) as link:
        relation = describe(link, parsed, where)
        count = link.execute(f"SELECT count(*) FROM {relation.sql}").fetchone()[0]

    def read() -> Iterator[pa.RecordBatch]:
        with closing(connect(parsed.path, where)) as link:
            describe(link, parsed, where)  # a query is a view of its connection
            cursor, seen = link.execute(f"SELECT {relation.columns()} FROM {relation.sql}"), 0
            while rows := cursor.fetchmany(FETCH_ROWS):
                yield to_batch(rows, relation, seen)
                seen += len(rows)

    return make_source(url, relation.schema, count, read)
