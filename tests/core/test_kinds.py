"""What is known of each Arrow type."""

from __future__ import annotations

import pyarrow as pa
import pytest

from semistream import kinds
from semistream.errors import ColumnError
from tests.core.values import NESTED, PLAIN, VALUES

CELLS = {
    "string", "large string", "string view", "binary", "large binary", "binary view", "binary(0)", *NESTED
}  # fmt: skip
FEW_ROWS = [
    (pa.dictionary(pa.int8(), pa.string()), 127),
    (pa.dictionary(pa.uint8(), pa.string()), 127),
    (pa.dictionary(pa.int16(), pa.string()), 2**15 - 1),
    (pa.run_end_encoded(pa.int16(), pa.int64()), 2**15 - 1),
    (pa.run_end_encoded(pa.int32(), pa.int64()), 2**31 - 1),
]
UNIONS = {
    "union": pa.dense_union([pa.field("a", pa.int8())]),
    "list": pa.list_(pa.sparse_union([pa.field("a", pa.int8())])),
    "struct": pa.struct({"s": pa.struct({"u": pa.dense_union([pa.field("a", pa.int8())])})}),
    "map": pa.map_(pa.string(), pa.dense_union([pa.field("a", pa.int8())])),
}


@pytest.mark.parametrize("name", [*PLAIN, *NESTED])
def test_a_value_is_kept_in_its_own_width_or_in_a_cell(name):
    kind = VALUES[name].type
    shape = kinds.shape_of(kind)
    assert shape.is_cell == (name in CELLS)
    if not shape.is_cell:
        special = {"null": 0, "bool": 1, "narrow decimal": 8}
        assert shape.size == special.get(name, kind.bit_width // 8 if name not in special else 0)


def test_wrappers_are_kept_as_what_they_wrap():
    for kind, inner in [
        (pa.dictionary(pa.int8(), pa.int16()), pa.int16()),
        (pa.run_end_encoded(pa.int32(), pa.string()), pa.string()),
        (pa.uuid(), pa.binary(16)),
        (pa.run_end_encoded(pa.int32(), pa.uuid()), pa.binary(16)),
    ]:
        assert kinds.plain_type(kind) == inner
        assert kinds.shape_of(kind) == kinds.shape_of(inner)


@pytest.mark.parametrize("where", list(UNIONS))
def test_a_union_is_refused_wherever_it_hides(where):
    with pytest.raises(ColumnError, match=r"column 'col' has type .*union.* cannot be kept in rows"):
        kinds.shape_of(UNIONS[where], "col")


@pytest.mark.parametrize("kind", [kind for kind, most in FEW_ROWS if most < 2**31 - 1], ids=str)
def test_small_indices_inside_a_nested_type_are_refused(kind):
    assert kinds.shape_of(kind)
    for outer in (pa.list_(kind), pa.struct({"a": pa.list_(kind)})):
        with pytest.raises(ColumnError, match="cannot be kept in rows"):
            kinds.shape_of(outer)


@pytest.mark.parametrize(("kind", "most"), FEW_ROWS, ids=str)
def test_a_batch_has_no_more_rows_than_small_indices_can_count(kind, most):
    assert kinds.most_rows(kind) == most


def test_other_types_do_not_limit_a_batch():
    for name in ("string", "struct", "uuid", "int8"):
        assert kinds.most_rows((VALUES[name]).type) >= 2**40


@pytest.mark.parametrize("name", list(VALUES))
def test_what_is_said_to_be_takeable_is(name):
    column = VALUES[name]
    picks = pa.array([len(column) - 1, 0, 0])
    if kinds.is_takeable(column.type):
        assert column.take(picks).to_pylist() == [column[len(column) - 1].as_py(), column[0].as_py(), column[0].as_py()]
    else:
        assert not str(column.type).startswith(("int", "string<"))
