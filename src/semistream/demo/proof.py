"""The demo's proof: the same tables computed once more from the raw files by DuckDB, and compared row by row.

Nothing here knows the join, its pages or Spark: the raw orders and the raw products are read as Parquet, the answer is written down
as SQL, and what the warehouse holds is read back from its files. Both sides are compared as multisets of whole rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb

_WANTED = {
    "sales": """
        select order_id, order_ts, customer_id, channel, product_sk, vendor, pieces, price,
               cast(pieces * price as decimal(18, 2)) as total
        from once join products using (product_id)""",
    "unmatched": """
        select order_id, order_ts, customer_id, channel, product_id, pieces
        from once where product_id not in (select product_id from products)""",
}


@dataclass(frozen=True)
class Compared:
    """One table: its rows, and how many of them are missing or should not be there."""

    table: str
    rows: int
    missing: int
    surplus: int
    example: str = ""

    @property
    def equal(self) -> bool:
        """Whether the table is right."""
        return not self.missing and not self.surplus


def compare(
    inbox: Path, products: Path, warehouse: Path, pieces_of: Mapping[str, int], scratch: Path
) -> list[Compared]:
    """Both tables of the warehouse against what the raw files say."""
    with duckdb.connect() as db:
        db.execute(f"set timezone = 'UTC'; set temp_directory = '{_quoted(scratch)}'")
        db.execute(f"create view raw as from read_parquet('{_quoted(inbox)}/*.parquet')")
        db.execute(f"create view products as from read_parquet('{_quoted(products)}')")
        units = " ".join(f"when '{unit}' then {pieces}" for unit, pieces in pieces_of.items())
        db.execute(f"create table once as select distinct *, quantity * case unit {units} end as pieces from raw")
        return [_compare(db, table, wanted, warehouse / table) for table, wanted in _WANTED.items()]


def _compare(db: duckdb.DuckDBPyConnection, table: str, wanted: str, written: Path) -> Compared:
    db.execute(f"create table wanted_{table} as {wanted}")
    db.execute(
        f"create table got_{table} as from read_parquet('{_quoted(written)}/*/*.parquet', hive_partitioning = false)"
    )
    missing = f"(from wanted_{table} except all from got_{table})"
    surplus = f"(from got_{table} except all from wanted_{table})"
    example = db.execute(f"from (from {missing} union all from {surplus}) limit 1").fetchone()
    counts = _count(db, f"got_{table}"), _count(db, missing), _count(db, surplus)
    return Compared(table, *counts, "" if example is None else str(example))


def _count(db: duckdb.DuckDBPyConnection, rows: str) -> int:
    found = db.execute(f"select count(*) from {rows}").fetchone()
    return int(found[0]) if found else 0


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
