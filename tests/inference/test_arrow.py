"""Columns of Python values as Arrow arrays: each value as it is, or an error with its position."""

import pyarrow as pa
import pytest

from samesense.inference.arrow import MisfitError, infer_type, to_array, with_unsigned

HASH = 2**64 - 1


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([HASH, 1, None], pa.uint64()),
        ([1, HASH], pa.uint64()),
        ([2**63 - 1, -(2**63)], pa.int64()),
        ([[1], None, [2, HASH]], pa.list_(pa.uint64())),
        ([{"a": 1, "b": [HASH]}, {"a": -1}], pa.struct([("a", pa.int64()), ("b", pa.list_(pa.uint64()))])),
        ([1, 0.5], pa.float64()),
        ([{"a": 1}, {"b": "x"}, {}], pa.struct([("a", pa.int64()), ("b", pa.string())])),
        ([True, None], pa.bool_()),
        ([None], pa.null()),
        ([], pa.null()),
    ],
)
def test_a_type_holds_all_values(values, kind):
    assert infer_type(values) == kind
    read_back = to_array(values, kind).to_pylist()
    if pa.types.is_struct(kind):
        read_back = [{key: value for key, value in row.items() if value is not None} for row in read_back]
    assert read_back == values


@pytest.mark.parametrize(
    ("values", "position"),
    [
        ([True, 1.5], 1),
        ([1.5, 2, True], 2),
        ([1, True], 1),
        ([0, {}, 1.5], 1),
        ([[], [1], [1, "x"]], 2),
        ([{"x": 1}, {"x": "s"}], 1),
        ([1, 2**53 + 1, 0.5], 2),
        ([0.5, 2**53 + 1], 1),
        ([1, HASH + 1], 1),
        ([HASH, 0, -1], 2),
        ([[HASH], [-1]], 1),
        (["x"] * 5 + [1] + ["x"] * 5, 5),
    ],
)
def test_the_first_value_of_another_type_is_named(values, position):
    with pytest.raises(MisfitError, match="does not fit: ") as raised:
        infer_type(values)
    assert raised.value.position == position


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int64(), [1, 2.5]),
        (pa.uint64(), [1, 2.5]),
        (pa.int64(), [1, True]),
        (pa.float64(), [0.5, True]),
        (pa.list_(pa.int64()), [[1], [2, 2.5]]),
        (pa.struct([("a", pa.int64())]), [{"a": 1}, {"a": 2, "b": 3}]),
        (pa.struct([("a", pa.int64())]), [{}, {"a": 2.5}]),
        (pa.int64(), [1, HASH]),
    ],
)
def test_a_value_that_a_type_would_change_is_refused(kind, values):
    with pytest.raises(MisfitError) as raised:
        to_array(values, kind)
    assert raised.value.position == 1


def test_parts_of_a_column_join_to_the_type_with_the_larger_numbers():
    signed = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.int64()))])
    unsigned = pa.struct([("b", pa.list_(pa.uint64()))])
    assert with_unsigned(pa.int64(), [pa.int64(), pa.uint64()]) == pa.uint64()
    assert with_unsigned(pa.int64(), [pa.int64()]) == pa.int64()
    assert with_unsigned(signed, [signed, unsigned]) == pa.struct([("a", pa.int64()), ("b", pa.list_(pa.uint64()))])
