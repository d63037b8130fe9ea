"""Spark types and Arrow types, each way; only what both sides can hold without loss.

Spark sends its rows to Python as Arrow and takes Arrow back, but it is strict: a column declared `bigint` must come as
`int64`, one declared `string` must not come as a dictionary. So `to_arrow` says what Spark sends, `spark_form` says which
Arrow type a master column must be given before Spark takes it, and `to_spark` names the Spark type of that form.
Timestamps cross as microseconds; the zone on an Arrow timestamp is only how it prints, so UTC stands for all of them.

>>> to_spark(spark_form(pa.uint8(), "n")), to_arrow(st.LongType(), "n")
(ShortType(), DataType(int64))
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import types as st

from semistream.errors import ColumnError

_PLAIN: tuple[tuple[type[st.DataType], pa.DataType], ...] = (
    (st.BooleanType, pa.bool_()),
    (st.ByteType, pa.int8()),
    (st.ShortType, pa.int16()),
    (st.IntegerType, pa.int32()),
    (st.LongType, pa.int64()),
    (st.FloatType, pa.float32()),
    (st.DoubleType, pa.float64()),
    (st.StringType, pa.string()),
    (st.BinaryType, pa.binary()),
    (st.DateType, pa.date32()),
    (st.TimestampType, pa.timestamp("us", tz="UTC")),
    (st.TimestampNTZType, pa.timestamp("us")),
    (st.NullType, pa.null()),
)

_WIDENED: dict[pa.DataType, pa.DataType] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}


def to_arrow(spark_type: st.DataType, column: str) -> pa.DataType:
    """The Arrow type in which Spark sends a column of `spark_type`; `column` is named if there is none."""
    for known, arrow_type in _PLAIN:
        if isinstance(spark_type, known):  # isinstance, because char(n) and varchar(n) are kinds of string
            return arrow_type
    if isinstance(spark_type, st.DecimalType):
        return pa.decimal128(spark_type.precision, spark_type.scale)
    if isinstance(spark_type, st.DayTimeIntervalType):
        return pa.duration("us")
    if isinstance(spark_type, st.ArrayType):
        element = to_arrow(spark_type.elementType, f"{column}[]")
        return pa.list_(pa.field("element", element, spark_type.containsNull))
    if isinstance(spark_type, st.MapType):
        value = pa.field("value", to_arrow(spark_type.valueType, f"{column}[value]"), spark_type.valueContainsNull)
        return pa.map_(pa.field("key", to_arrow(spark_type.keyType, f"{column}[key]"), nullable=False), value)
    if isinstance(spark_type, st.StructType):
        return pa.struct([_arrow_field(field, f"{column}.{field.name}") for field in spark_type.fields])
    raise ColumnError(
        f"stream column {column}: Spark's {spark_type.simpleString()} has no Arrow form that can cross into Python; "
        "cast it, or drop it before enrich and join it back"
    )


def to_spark(arrow_type: pa.DataType) -> st.DataType:
    """The Spark type of an Arrow type that `spark_form` gave."""
    for spark_type, known in _PLAIN:
        if arrow_type == known:
            return spark_type()
    if pt.is_decimal(arrow_type):
        return st.DecimalType(arrow_type.precision, arrow_type.scale)
    if pt.is_duration(arrow_type):
        return st.DayTimeIntervalType()
    if pt.is_map(arrow_type):
        nullable = arrow_type.item_field.nullable
        return st.MapType(to_spark(arrow_type.key_type), to_spark(arrow_type.item_type), nullable)
    if pt.is_struct(arrow_type):
        return st.StructType([st.StructField(f.name, to_spark(f.type), f.nullable) for f in arrow_type])
    return st.ArrayType(to_spark(arrow_type.value_type), arrow_type.value_field.nullable)


def spark_form(arrow_type: pa.DataType, column: str) -> pa.DataType:
    """The nearest Arrow type that Spark takes and that holds every value of `arrow_type`; an error if there is none."""
    if arrow_type in _WIDENED:
        return _WIDENED[arrow_type]
    if any(arrow_type == known for _, known in _PLAIN):
        return arrow_type
    if pt.is_dictionary(arrow_type):
        return spark_form(arrow_type.value_type, column)
    if pt.is_fixed_size_binary(arrow_type):
        return pa.binary()
    if pt.is_decimal(arrow_type) and arrow_type.precision <= 38 and 0 <= arrow_type.scale <= arrow_type.precision:
        return pa.decimal128(arrow_type.precision, arrow_type.scale)
    if pt.is_timestamp(arrow_type) and arrow_type.unit != "ns":
        return pa.timestamp("us", tz="UTC" if arrow_type.tz else None)
    if pt.is_duration(arrow_type) and arrow_type.unit != "ns":
        return pa.duration("us")
    nested = _nested_form(arrow_type, column)
    if nested is None:
        raise ColumnError(
            f"master column {column}: Spark has no type that holds every {arrow_type}; "
            f"leave it out with columns=[...], or build the master with {column} cast to a type that Spark has"
        )
    return nested


def _nested_form(arrow_type: pa.DataType, column: str) -> pa.DataType | None:
    if pt.is_list(arrow_type) or pt.is_large_list(arrow_type) or pt.is_fixed_size_list(arrow_type):
        return pa.list_(_formed(arrow_type.value_field, f"{column}[]", "element"))
    if pt.is_map(arrow_type):
        key = _formed(arrow_type.key_field, f"{column}[key]", "key")
        return pa.map_(key, _formed(arrow_type.item_field, f"{column}[value]", "value"))
    if pt.is_struct(arrow_type):
        return pa.struct([_formed(field, f"{column}.{field.name}", field.name) for field in arrow_type])
    return None


def _formed(field: pa.Field, column: str, name: str) -> pa.Field:
    return pa.field(name, spark_form(field.type, column), field.nullable)


def _arrow_field(field: st.StructField, column: str) -> pa.Field:
    return pa.field(field.name, to_arrow(field.dataType, column), field.nullable)


def arrow_schema(schema: st.StructType) -> pa.Schema:
    """The Arrow schema in which Spark sends rows of `schema`."""
    return pa.schema([_arrow_field(field, field.name) for field in schema.fields])


def spark_schema(schema: pa.Schema) -> st.StructType:
    """The Spark schema that holds every row of an Arrow schema."""
    return st.StructType([st.StructField(f.name, to_spark(spark_form(f.type, f.name)), f.nullable) for f in schema])
