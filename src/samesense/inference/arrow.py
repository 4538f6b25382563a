"""Columns of Python values as Arrow arrays, without a value that is changed on the way.

``pyarrow.array`` cuts 1.5 to 1 in a column of whole numbers, makes 1.0 of true in one of decimals, drops the keys that
a struct does not have, and takes no whole number from 2**63 on unless the type says uint64.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, TypeVar

import pyarrow as pa

from samesense.failures import excerpt, first_line

T = TypeVar("T")

_LARGEST = 2**63 - 1  # of int64
_REFUSALS = (pa.ArrowException, TypeError, ValueError, OverflowError)


class MisfitError(ValueError):
    """A value does not fit into its column.

    Attributes:
        position: its index in the column.
    """

    def __init__(self, position: int, value: Any, reason: str) -> None:
        super().__init__(f"{excerpt(value, 60)} does not fit: {reason}")
        self.position = position


def infer_type(values: Sequence[Any]) -> pa.DataType:
    """Return the type that holds all values, with uint64 for whole numbers from 2**63 on.

    >>> infer_type([2**64 - 1, 1])
    DataType(uint64)

    Raises:
        MisfitError: if values are of several types, such as numbers and lists.
    """

    def convert(some: Sequence[Any]) -> pa.DataType:
        kind = _widened(pa.infer_type(some), some)
        _exact_array(some, kind)
        return kind

    return _converted(values, convert)


def to_array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return values as an array of a type.

    >>> to_array([1, 2.5], pa.int64())
    Traceback (most recent call last):
    samesense.inference.arrow.MisfitError: 2.5 does not fit: int64 holds no float

    Raises:
        MisfitError: for a value that the type does not hold as it is.
    """
    return _converted(values, lambda some: _exact_array(some, kind))


def with_unsigned(kind: pa.DataType, parts: Sequence[pa.DataType]) -> pa.DataType:
    """Return a type with uint64 in place of int64 wherever one of its parts has uint64.

    Arrow joins int64 and uint64 to int64, which does not hold the larger numbers.
    """
    if kind == pa.int64():
        return pa.uint64() if pa.uint64() in parts else kind
    if pa.types.is_list(kind):
        elements = [part.value_type for part in parts if pa.types.is_list(part)]
        return pa.list_(with_unsigned(kind.value_type, elements))
    if pa.types.is_struct(kind):
        structs = [part for part in parts if pa.types.is_struct(part)]
        return pa.struct(
            [
                (
                    field.name,
                    with_unsigned(
                        field.type, [part.field(field.name).type for part in structs if field.name in part.names]
                    ),
                )
                for field in kind
            ]
        )
    return kind


def has_empty_struct(kind: pa.DataType) -> bool:
    """Return whether a type has objects without any key, which Parquet cannot store."""
    if pa.types.is_struct(kind) and kind.num_fields == 0:
        return True
    return any(has_empty_struct(kind.field(index).type) for index in range(kind.num_fields))


def _converted(values: Sequence[Any], convert: Callable[[Sequence[Any]], T]) -> T:
    """Return the converted values; MisfitError with the first value that cannot stand below those above it."""
    try:
        return convert(values)
    except _REFUSALS as error:
        refusal = error

    def fails(count: int) -> bool:
        nonlocal refusal
        try:
            convert(values[:count])
        except _REFUSALS as error:
            refusal = error
            return True
        return False

    # The shortest beginning that fails ends with the first value that does not fit.
    count = bisect_left(range(len(values)), True, lo=1, key=fails)
    raise MisfitError(count - 1, values[count - 1], _reason(refusal)) from refusal


def _reason(refusal: Exception) -> str:
    if isinstance(refusal, OverflowError):
        return "whole numbers of a column are from -2**63 to 2**63 - 1, or from 0 to 2**64 - 1"
    return first_line(refusal)


def _exact_array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    array = pa.array(values, kind)
    _refuse_changes(values, kind)
    return array


def _refuse_changes(values: Iterable[Any], kind: pa.DataType) -> None:
    """Raise TypeError where ``pyarrow.array`` would change or drop a value without an error."""
    filled = [value for value in values if value is not None]
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        refused = bool if pa.types.is_floating(kind) else bool | float
        misfits = [value_type for value_type in set(map(type, filled)) if issubclass(value_type, refused)]
        if misfits:
            raise TypeError(f"{kind} holds no {misfits[0].__name__}")
    elif _is_list(kind):
        _refuse_changes(chain.from_iterable(filled), kind.value_type)
    elif pa.types.is_struct(kind):
        names = [field.name for field in kind]
        unknown = {key for value in filled for key in value}.difference(names)
        if unknown:
            raise TypeError(f"objects of this column have no key {sorted(unknown)[0]!r}")
        for name in names:
            _refuse_changes((value.get(name) for value in filled), kind.field(name).type)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _widened(kind: pa.DataType, values: Iterable[Any]) -> pa.DataType:
    """Return an inferred type with uint64 in place of int64 wherever a number is too large for that."""
    filled = [value for value in values if value is not None]
    if kind == pa.int64():
        is_large = any(isinstance(value, int) and value > _LARGEST for value in filled)
        return pa.uint64() if is_large else kind
    if pa.types.is_list(kind):
        return pa.list_(_widened(kind.value_type, chain.from_iterable(filled)))
    if pa.types.is_struct(kind):
        return pa.struct(
            [(field.name, _widened(field.type, [value.get(field.name) for value in filled])) for field in kind]
        )
    return kind
