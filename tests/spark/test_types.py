"""Spark types and Arrow types, each way."""

from __future__ import annotations

import pyarrow as pa
import pytest

from semistream.errors import ColumnError
from semistream.spark.types import arrow_schema, spark_form, spark_schema, to_spark
from tests.cases import PAYLOADS
from tests.spark.test_enrich_batch import PAYLOAD


def test_the_arrow_form_of_a_frame_is_the_one_that_spark_sends(spark):
    frame = spark.sql(
        "select 1Y a, 2S b, 3 c, 4L d, 5F e, 6D f, 1.5 g, 's' h, x'00' i, true j, date'2026-01-01' k, timestamp'2026-01-01' l, "
        "timestamp_ntz'2026-01-01' m, interval '1' day n, array(1, null) o, map('k', 1L) p, named_struct('x', 1, 'y', 'z') q, null r, "
        "cast('c' as varchar(3)) s"
    )
    sent = frame.toArrow().schema
    assert [(f.name, f.type) for f in arrow_schema(frame.schema)] == [(f.name, f.type) for f in sent]


def test_a_schema_goes_there_and_back(spark):
    schema = pa.schema([pa.field(name, spark_form(PAYLOADS[name].type, name)) for name in [*PAYLOAD, "uint64"]])
    assert arrow_schema(spark_schema(schema)).equals(schema)


@pytest.mark.parametrize(
    "kind",
    [pa.timestamp("ns"), pa.duration("ns"), pa.time64("us"), pa.decimal256(60, 5), pa.decimal128(5, -2)],
    ids=str,
)
def test_types_that_spark_cannot_hold_without_loss_are_refused(kind):
    with pytest.raises(ColumnError, match="price"):
        spark_form(kind, "price")
    with pytest.raises(ColumnError, match="price"):
        spark_form(pa.list_(kind), "price")


def test_nested_types_keep_whether_they_may_be_null():
    kind = pa.struct([pa.field("a", pa.list_(pa.field("x", pa.uint8(), nullable=False)), nullable=False)])
    assert to_spark(spark_form(kind, "c")).simpleString() == "struct<a:array<smallint>>"
    assert not to_spark(spark_form(kind, "c")).fields[0].nullable
