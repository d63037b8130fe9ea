"""Cutting a SQLite table into pages: ranges of its key index, so that all rows of a key lie in one page.

    SELECT ... WHERE k >= first key of the page AND k < first key of the next page

A `Section` is a run of such pages over one set of rows. An indexed table has two: rows with a key, cut along the key's index, and rows
whose key has a missing part, cut along the row ids. A table without a usable index has one, cut along its row ids, and can only be scanned.
Only first keys and sizes are kept; finding them walks the index once, in SQLite.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from semistream.errors import SourceError
from semistream.masters.sqlite_values import Relation, quoted

_STORED: Final = {  # key types that can be compared in SQL, and how SQLite stores them
    pa.int64(): ("integer",),
    pa.bool_(): ("integer",),
    pa.float64(): ("real", "integer"),
    pa.string(): ("text",),
    pa.binary(): ("blob",),
}


@dataclass
class Section:
    """Pages over the rows of `where`, in the order of `columns`; `bounds` are the first keys, `counts` and `sizes` rows and cell bytes."""

    columns: tuple[str, ...]
    where: str
    bounds: list[tuple[Any, ...]] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def condition(self, first: int, stop: int) -> tuple[str, list[Any]]:
        """SQL for the rows of pages first to stop - 1, and its parameters."""
        condition = f"{self.where} AND {self.compared('>=')}"
        if stop == len(self.bounds):
            return condition, [*self.bounds[first]]
        return f"{condition} AND {self.compared('<')}", [*self.bounds[first], *self.bounds[stop]]

    def order(self) -> str:
        """SQL of the order of rows."""
        return ", ".join(self.columns)

    def compared(self, operator: str) -> str:
        """SQL that compares a row's place in the order with a given one."""
        return f"({self.order()}) {operator} ({', '.join('?' * len(self.columns))})"

    def find(self, key: tuple[Any, ...]) -> int:
        """The page whose range holds `key`, -1 if it lies before the first."""
        return bisect_right(self.bounds, key) - 1


def cut(link: sqlite3.Connection, table: str, section: Section, page_rows: int, cell_bytes: str) -> None:
    """Fill the section with pages of about `page_rows` rows; `cell_bytes` is SQL for the bytes of variable length in all rows."""
    order, base = section.order(), f"SELECT {section.order()} FROM {table} WHERE {section.where}"
    bound = link.execute(f"{base} ORDER BY {order} LIMIT 1").fetchone()
    while bound is not None:
        section.bounds.append(bound)
        full = f"{base} AND {section.compared('>=')} ORDER BY {order} LIMIT 1 OFFSET {page_rows}"
        bound = link.execute(full, bound).fetchone()
        if bound == section.bounds[-1]:  # one key fills more than a page
            bound = link.execute(f"{base} AND {section.compared('>')} ORDER BY {order} LIMIT 1", bound).fetchone()
    for number in range(len(section.bounds)):
        condition, values = section.condition(number, number + 1)
        count, size = link.execute(f"SELECT count(*), {cell_bytes} FROM {table} WHERE {condition}", values).fetchone()
        section.counts.append(count)
        section.sizes.append(int(size))


def indexed_order(link: sqlite3.Connection, relation: Relation, table: str, key: Sequence[str]) -> list[str] | None:
    """The key columns in the order of an index that has them all in front, or None: keys cannot be looked up.

    Text must be indexed byte by byte (BINARY), and types of which SQLite keeps one value in several spellings (dates, decimals) cannot be
    compared in SQL.
    """
    kinds = {name: relation.schema.field(name).type for name in key}
    if any(kind not in _STORED for kind in kinds.values()):
        return None
    if pa.string() in kinds.values() and link.execute("PRAGMA encoding").fetchone()[0] != "UTF-8":
        return None
    for columns in _indexes(link, table):
        front = columns[: len(key)]
        one_direction = len({descending for _, descending, _ in front}) == 1
        by_bytes = all(collation == "BINARY" or kinds.get(name) != pa.string() for name, _, collation in front)
        if {name for name, _, _ in front} == set(key) and one_direction and by_bytes:
            return [name for name, _, _ in front]
    return None


def check_keys(link: sqlite3.Connection, relation: Relation, key: Sequence[str]) -> None:
    """SQLite keeps anything anywhere, and a key of another type than its column's would be looked for in the wrong place."""
    for name in key:
        kind = relation.schema.field(name).type
        wanted = ", ".join(f"'{stored}'" for stored in _STORED[kind])
        query = (
            f"SELECT {quoted(name)} FROM {relation.sql} WHERE typeof({quoted(name)}) NOT IN ('null', {wanted}) LIMIT 1"
        )
        for (value,) in link.execute(query):
            raise SourceError(
                f"{relation.where}: key column {name} (read as {kind}) holds {value!r:.60}, which does not fit; correct it"
            )


def key_sql(name: str, kind: pa.DataType) -> str:
    """A key column in comparisons: text is compared byte by byte, whatever the column's own rule."""
    return f"{quoted(name)} COLLATE BINARY" if kind == pa.string() else quoted(name)


def _indexes(link: sqlite3.Connection, table: str) -> list[list[tuple[str, int, str]]]:
    """(column, descending, collation) of every complete index, and of the primary key that is the row id itself."""
    found = []
    primary = primary_key(link, table)
    if len(primary) == 1 and _is_integer_key(link, table):
        found.append([(primary[0], 0, "BINARY")])
    for _, name, _, _, partial in link.execute(f"PRAGMA index_list({quoted(table)})").fetchall():
        columns = link.execute(f"PRAGMA index_xinfo({quoted(name)})").fetchall()
        if not partial:
            found.append([(str(column[2]), column[3], column[4]) for column in columns if column[5]])
    return found


def primary_key(link: sqlite3.Connection, table: str) -> list[str]:
    """Columns of the declared primary key, in its order."""
    rows = link.execute(f"PRAGMA table_info({quoted(table)})").fetchall()
    return [row[1] for row in sorted(rows, key=lambda row: row[5]) if row[5]]


def _is_integer_key(link: sqlite3.Connection, table: str) -> bool:
    """Whether the primary key is the row id: an INTEGER PRIMARY KEY has no index of its own."""
    listed = link.execute(f"PRAGMA index_list({quoted(table)})").fetchall()
    return all(row[3] != "pk" for row in listed) and has_row_id(link, table)


def has_row_id(link: sqlite3.Connection, table: str) -> bool:
    """Whether rows have numbers (tables made WITHOUT ROWID have none)."""
    try:
        link.execute(f"SELECT _rowid_ FROM {quoted(table)} LIMIT 0")
    except sqlite3.OperationalError:
        return False
    return True


def identity(link: sqlite3.Connection, table: str) -> tuple[str, ...]:
    """Columns that every row has, that tell rows apart, and that SQLite keeps in order."""
    return ("_rowid_",) if has_row_id(link, table) else tuple(quoted(name) for name in primary_key(link, table))
