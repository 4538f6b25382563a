"""Columns whose cells are lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from samesense.data.conventions.list_cells import ListCellError, is_list, list_in, shorten_cell
from samesense.errors import DataError
from samesense.types import Row

SNIFFED_CELLS = 1000
"""Rows that are inspected to decide whether a column of single texts holds lists instead."""


def holds_lists(rows: Iterable[Row], column: str) -> bool:
    """Return whether a column holds lists: a real list, or at least half of its texts are written like lists."""
    values = (row.get(column) for _, row in rows)
    cells = [value for value in values if value is not None and not (isinstance(value, str) and not value)]
    if any(not isinstance(cell, str) and is_list(cell) for cell in cells):
        return True
    # Half of the cells, because a single text may begin with a bracket.
    list_like = sum(map(is_list, cells))
    return list_like > 0 and 2 * list_like >= len(cells)


def refuse_lists(rows: Sequence[Row], columns: Iterable[str], source: str) -> None:
    """Raise DataError if at least half of the cells of a column of single texts are lists written as text."""
    for column in columns:
        cells = [text for _, row in rows[:SNIFFED_CELLS] if isinstance(text := row.get(column), str) and text.strip()]
        lists = [cell for cell in cells if cell.lstrip().startswith(("[", "(")) and _holds_texts(cell)]
        if lists and 2 * len(lists) >= len(cells):
            raise DataError(
                f"{source}: column {column!r} is read as one text a row, and its cells are lists, as in "
                f"{shorten_cell(lists[0])}. Write one text a row (in pandas: frame.explode({column!r})), or name the "
                "column positives, negatives or sentences if it holds these."
            )


def _holds_texts(cell: str) -> bool:
    try:
        values = list_in(cell)
    except ListCellError:
        return True
    return bool(values) and all(isinstance(value, str) for value in values or ())
