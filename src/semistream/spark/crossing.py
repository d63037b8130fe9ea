"""The way of rows from the Java machine into Python, and how it is made fast where that is safe.

Spark measures every single row on that way, to end a batch at `maxBytesPerBatch`; it costs more than the join does. The check is skipped
when the setting is exactly 2147483647, and then `maxRecordsPerBatch` alone bounds a batch. So both are set together, and only where no row
can be wider than is known: then the number of rows is as good a bound as the number of bytes.

What is changed are two settings of the session that the stream belongs to. Sessions do not see each other's settings, and a streaming query
copies them when it starts, so other sessions and queries that run already stay as they are. Frames of the same session that are run
later do not: where one takes wide rows into Python, say crossing="as_set". Neither the rows that go in nor those that come out may be wider
than is known, since what follows the join may take them into Python again.
"""

from __future__ import annotations

import logging

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import SparkSession

from semistream.errors import UsageError
from semistream.units import parse_bytes

BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
UNCHECKED = (1 << 31) - 1
DEFAULTS = {BYTES: "67108864", ROWS: "10000"}  # of Spark
MARK = "semistream.crossing.rows"  # the rows that we set, and what they were before
BATCH_BYTES = 8 << 20  # of Arrow data that a task holds at a time on its way in
_LOG = logging.getLogger("semistream.spark")


def prepare(spark: SparkSession, joined: pa.Schema, crossing: str, row_bytes: int | str | None) -> None:
    """Make the crossing of rows fast, unless told not to or not safe; says what it did. The schema is that of the join's output."""
    if crossing not in ("fast", "as_set"):
        raise UsageError(f"crossing={crossing!r}: need 'fast', or 'as_set' for no change to the session's settings")
    widest = parse_bytes(row_bytes, "row_bytes") if row_bytes is not None else widest_row(joined)
    before = _rows_before(spark)
    if crossing == "as_set" or (before is None and not _is_default(spark)):
        return
    if widest is not None:
        rows = rows_per_batch(widest, int(_now(spark, ROWS)))
        before = before or _now(spark, ROWS)
        _set(spark, BYTES, str(UNCHECKED))
        _set(spark, ROWS, str(rows))
        spark.conf.set(MARK, f"{rows} {before}")
        return
    _LOG.info("enrich: rows of the join have no widest size, so Spark measures each; with row_bytes= it need not")
    if before is not None:  # an earlier call, with narrow rows, is the reason why nobody measures these
        _set(spark, BYTES, DEFAULTS[BYTES])
        _set(spark, ROWS, before)
        spark.conf.unset(MARK)


def _rows_before(spark: SparkSession) -> str | None:
    """What the rows were before we set both; None where we did not, or somebody has set one of them since."""
    rows, _, before = (spark.conf.get(MARK, "") or "").partition(" ")
    return before if before and (_now(spark, BYTES), _now(spark, ROWS)) == (str(UNCHECKED), rows) else None


def _is_default(spark: SparkSession) -> bool:
    """Whether the bytes are Spark's own default, which nobody has chosen, as far as can be told."""
    try:
        return str(parse_bytes(_now(spark, BYTES))) == DEFAULTS[BYTES]
    except UsageError:
        return False


def widest_row(stream: pa.Schema) -> int | None:
    """Bytes of the widest row that there can be, None if there is no such thing."""
    widths = [width(field.type) for field in stream]
    return None if None in widths else sum(one for one in widths if one is not None)


def rows_per_batch(widest: int, now: int) -> int:
    """As many rows of that width as a batch may hold, but never more than are set now, which others may rely on.

    >>> rows_per_batch(20, now=10_000), rows_per_batch(4096, now=10_000), rows_per_batch(20, now=0)
    (10000, 2048, 419430)
    """
    fits = max(1, BATCH_BYTES // max(widest, 1))
    return fits if now <= 0 else min(fits, now)


def width(kind: pa.DataType) -> int | None:
    """Bytes of one value in Arrow, its place in the null bits included; None where values have any length.

    >>> width(pa.int64()), width(pa.struct({"a": pa.int32(), "b": pa.bool_()})), width(pa.string())
    (9, 8, None)
    """
    if pt.is_struct(kind):
        inner = [width(field.type) for field in kind]
        return None if None in inner else 1 + sum(one for one in inner if one is not None)
    if pt.is_null(kind):
        return 1
    try:
        return 1 + (int(kind.bit_width) + 7) // 8
    except ValueError:
        return None


def _now(spark: SparkSession, name: str) -> str:
    return spark.conf.get(name, DEFAULTS[name]) or DEFAULTS[name]


def _set(spark: SparkSession, name: str, value: str) -> None:
    before = _now(spark, name)
    if before != value:
        spark.conf.set(name, value)
        _LOG.warning(
            "enrich set %s=%s (was %s) in this session, for a faster way into Python; crossing='as_set' leaves it alone",
            name,
            value,
            before,
        )
