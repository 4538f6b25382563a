"""A table in memory scored: the same kind of table comes back, with the new columns behind its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from samesense.inference.scoring.columns import Values


def with_columns(source: Any, values: Values) -> Any:
    """Return a table in memory with further columns: the same kind, a new object.

    Data frames of pandas and polars, tables of Arrow, datasets, dicts of columns, and lists of dicts or of tuples are
    known. What else speaks Arrow becomes a table of Arrow, and what does not, a table of the new columns alone.
    """
    kind = type(source).__module__.partition(".")[0]
    if kind == "pandas":
        return _of_pandas(source, values)
    if kind == "polars":
        polars = import_module("polars")
        return source.with_columns([polars.Series(name, cells) for name, cells in values.items()])
    if kind == "datasets":
        for name, cells in values.items():
            source = source.add_column(name, cells)
        return source
    if isinstance(source, Mapping):
        return {**source, **values}
    if isinstance(source, Sequence):
        return [_row(row, values, number) for number, row in enumerate(source)]
    return _of_arrow(source, values)


def _of_pandas(source: Any, values: Values) -> Any:
    """Return a frame with its index; yes and no are nullable where a row has none."""
    pandas = import_module("pandas")
    columns = {name: pandas.Series(cells, index=source.index, dtype=_dtype(cells)) for name, cells in values.items()}
    frame = source.copy()
    for name, column in columns.items():
        frame[name] = column.array
    return frame


def _dtype(cells: Sequence[Any]) -> str:
    filled = next((cell for cell in cells if cell is not None), None)
    if not isinstance(filled, bool):
        return "float64"
    return "boolean" if None in cells else "bool"


def _row(row: Any, values: Values, number: int) -> Any:
    cells = {name: column[number] for name, column in values.items()}
    if isinstance(row, Mapping):
        return {**row, **cells}
    return (*row, *cells.values())


def _of_arrow(source: Any, values: Values) -> Any:
    import pyarrow as pa

    if not hasattr(source, "__arrow_c_stream__"):
        return pa.table(values)
    table = pa.table(source)
    for name, cells in values.items():
        table = table.append_column(name, pa.array(cells))
    return table
