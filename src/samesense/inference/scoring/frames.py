"""Add new columns to a table in memory; the result has the same type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from samesense.inference.scoring.columns import Values


def with_columns(source: Any, values: Values) -> Any:
    """Return a new table of the same type with more columns.

    Supported are data frames of pandas and polars, Arrow tables, datasets, dicts of columns, and lists of dicts or
    tuples. The rows of an array become tuples. Other objects with the Arrow interface become Arrow tables; for anything
    else the result is an Arrow table of the new columns only.
    """
    # By the name of the module, so that no library is imported that the table is not of.
    kind = type(source).__module__.partition(".")[0]
    if kind == "pandas":
        return _of_pandas(source, values)
    if kind == "polars":
        polars = import_module("polars")
        return source.with_columns([polars.Series(name, cells) for name, cells in values.items()])
    if kind == "datasets" and isinstance(source, Mapping):
        splits: Any = type(source)
        return splits({name: with_columns(split, values) for name, split in source.items()})  # there is one
    if kind == "datasets":
        for name, cells in values.items():
            source = source.add_column(name, cells)
        return source
    if isinstance(source, Mapping):
        return {**source, **values}
    if isinstance(source, Sequence):
        return [_row(row, values, number) for number, row in enumerate(source)]
    if kind == "numpy":  # an array has one type, and its texts no place for numbers
        return [_row(row, values, number) for number, row in enumerate(source.tolist())]
    return _of_arrow(source, values)


def _of_pandas(source: Any, values: Values) -> Any:
    """Return a data frame with the same index; the boolean column is nullable if a row has no value."""
    pandas = import_module("pandas")
    # With a stated type, as a column of None alone would hold objects.
    columns = {name: pandas.Series(cells, index=source.index, dtype=_dtype(cells)) for name, cells in values.items()}
    # A copy, so that the caller's frame stays as it is.
    frame = source.copy()
    for name, column in columns.items():
        frame[name] = column.array
    return frame


def _dtype(cells: Sequence[Any]) -> str:
    filled = next((cell for cell in cells if cell is not None), None)
    if not isinstance(filled, bool):
        return "float64"
    if None in cells:
        return "boolean"
    return "bool"


def _row(row: Any, values: Values, number: int) -> Any:
    cells = {name: column[number] for name, column in values.items()}
    if isinstance(row, Mapping):
        return {**row, **cells}
    return (*row, *cells.values())


def _of_arrow(source: Any, values: Values) -> Any:
    # pyarrow is needed for its own tables alone.
    import pyarrow as pa

    if not hasattr(source, "__arrow_c_stream__"):
        return pa.table(values)
    table = pa.table(source)
    for name, cells in values.items():
        table = table.append_column(name, pa.array(cells))
    return table
