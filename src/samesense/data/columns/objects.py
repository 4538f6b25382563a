"""Columns of objects, which are not read, and the texts in them."""

from __future__ import annotations

from collections.abc import Sequence

from samesense.data.columns.text_columns import MOST_LOOKED_INTO, has_repeated_values, text_length
from samesense.data.conventions.named_columns import quote_columns
from samesense.data.rows.columnar import may_nest_texts
from samesense.data.rows.sources import names_in
from samesense.errors import DataError
from samesense.failures import excerpt
from samesense.types import Row

_FEWEST_REPEATED = 4
"""Rows from which on values that repeat are no chance."""

_OBJECT_ROWS = 8
"""Rows that are inspected for objects."""

_DEEPEST = 5
"""Levels of an object that are inspected."""

_FEW_WORDS = 2
"""Most words of a text in an object that is taken for a setting, such as a name."""


def refuse_objects(rows: Sequence[Row], column: str, source: str) -> None:
    """Raise DataError if the only column of texts repeats a few, as a status does, and objects beside it hold texts."""
    if len(rows) < _FEWEST_REPEATED or not has_repeated_values(rows, column):
        return
    objects = object_columns(rows)
    if objects:
        raise DataError(
            f"{source}: the only column of texts, {column!r}, repeats a few of them, and "
            f"{describe_objects(rows, objects[0])} If {column!r} is what is meant: `columns` {quote_columns(column)}"
        )


def describe_objects(rows: Sequence[Row], name: str) -> str:
    """Return what a column of objects holds, and the fix, as the end of a message."""
    example = next(cell for _, cells in rows if (cell := cells.get(name)))
    return (
        f"column {name!r} holds objects, which are not read, such as {excerpt(example, 100)}. Write what is needed of "
        "them into columns; in pandas, json_normalize does so."
    )


def object_columns(rows: Sequence[Row]) -> list[str]:
    """Return the columns of objects, or of lists of objects, that hold texts of several words."""
    first_rows = rows[:_OBJECT_ROWS]
    names = names_in(first_rows)[:MOST_LOOKED_INTO]
    return [name for name in names if any(map(_holds_object, nested_texts(first_rows, name)))]


def nested_texts(rows: Sequence[Row], name: str) -> list[object]:
    """Return the cells of a column that are objects or lists, and hold texts of several words."""
    if not rows or not may_nest_texts(rows[0][1], name):
        return []
    cells = [cells.get(name) for _, cells in rows[:_OBJECT_ROWS]]
    return [cell for cell in cells if isinstance(cell, dict | list) and _holds_words(cell)]


def _holds_object(cell: object) -> bool:
    """Return whether a cell is an object, or a list of them."""
    return isinstance(cell, dict) or (isinstance(cell, list) and any(isinstance(value, dict) for value in cell))


def _holds_words(value: object, depth: int = 0) -> bool:
    """Return whether there is a text of several words in an object or a list."""
    if depth > _DEEPEST:
        return False
    if isinstance(value, dict):
        return any(_holds_words(cell, depth + 1) for cell in value.values())
    if isinstance(value, list):
        return any(_holds_words(cell, depth + 1) for cell in value)
    return isinstance(value, str) and text_length(value) > _FEW_WORDS
