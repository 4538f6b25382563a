"""What the cells of columns hold: texts, lists, objects with texts in them, or something else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from samesense.data.conventions.column_names import LABEL_NAMES, SUBSET_NAMES, is_identifier, normalize_name
from samesense.data.conventions.list_cells import ListCellError, is_list, list_in, shorten_cell
from samesense.data.conventions.named_columns import join_names, quote_columns
from samesense.data.conventions.numbers import are_quantities, is_number, is_quantity, to_number, with_points
from samesense.data.conventions.yes_no import are_answers
from samesense.data.rows.columnar import Cells, may_hold_texts, may_nest_texts
from samesense.data.rows.load import names_in
from samesense.errors import DataError
from samesense.failures import excerpt
from samesense.types import Row

SNIFFED_ROWS = 1000
"""Rows of a table that are inspected to classify its columns."""

_SNIFFED_CELLS = 1_000_000  # in very wide tables fewer rows are inspected
_FEWEST_SNIFFED = 20

MOST_LOOKED_INTO = 200
"""Most columns whose cells are read only to find out which ones hold texts."""

SPLIT_NAMES = frozenset("train training dev development val valid validation test testing eval evaluation".split())
"""Names of parts of data, in lower case."""

ANSWERS = frozenset(("accept", "reject", "ignore"))
"""What Prodigy writes of each row, whether its label is right."""

NO_TEXTS = {*LABEL_NAMES, *SUBSET_NAMES, "class"}

_CODES = re.compile(
    r"https?://\S+|[^\s@]+@[^\s@]+\.[a-z]+|[a-z]{1,3}[_:-]?\d+|\d+[a-z]{1,3}\d+|"
    r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([T ][\d:.+Z-]+)?|[0-9a-f-]{16,}",
    re.IGNORECASE,
)
"""URLs, addresses of mail, dates and keys: strings that are not texts."""


def find_text_columns(rows: Sequence[Row]) -> list[str]:
    """Return the columns that hold texts: not numbers, and not labels, identifiers or subsets by their names.

    In a columnar table with more than :data:`MOST_LOOKED_INTO` candidates, all candidates are returned unread.
    """
    sniffed = sniffed_rows(rows)
    possible = [name for name in names_in(sniffed) if _may_hold_texts(sniffed, name)]
    if sniffed and isinstance(sniffed[0][1], Cells) and len(possible) > MOST_LOOKED_INTO:
        return possible  # reading them all would cost far more than reading the ones that are needed
    return [name for name in possible if are_texts([cells.get(name) for _, cells in sniffed])]


def is_text_column(rows: Sequence[Row], name: str) -> bool:
    """Return whether a column holds texts, by the rule of :func:`find_text_columns`; only this column is read."""
    sniffed = sniffed_rows(rows)
    return bool(sniffed) and _may_hold_texts(sniffed, name) and are_texts([cells.get(name) for _, cells in sniffed])


def _may_hold_texts(rows: Sequence[Row], name: str) -> bool:
    """Return whether the name and the type of a column allow texts."""
    return may_hold_texts(rows[0][1], name) and normalize_name(name) not in NO_TEXTS and not is_identifier(name)


def sniffed_rows(rows: Sequence[Row]) -> Sequence[Row]:
    """Return the first rows, which are enough to classify columns; fewer rows for very wide tables."""
    width = max((len(cells) for _, cells in rows[:1]), default=1)
    return rows[: max(_FEWEST_SNIFFED, min(SNIFFED_ROWS, _SNIFFED_CELLS // max(width, 1)))]


def are_texts(values: Iterable[object]) -> bool:
    """Return whether the cells of a column are texts, and no labels, names of splits, codes or numbers."""
    non_empty = [value for value in values if value not in (None, "")]
    texts = [value.strip() for value in non_empty if isinstance(value, str)]
    # Quantities, and answers such as yes and no, are labels; train and test are names of parts.
    if are_quantities(texts) or are_answers(texts):
        return False
    folded = {text.casefold() for text in texts}
    if folded <= SPLIT_NAMES or folded <= ANSWERS:
        return False
    are_codes = [is_code(str(text)) for text in with_points(texts)]
    # A column of texts has at least one word, and no more codes than texts.
    has_words = any(not code and to_number(text) is None for code, text in zip(are_codes, texts, strict=True))
    return len(texts) == len(non_empty) and has_words and 2 * sum(are_codes) <= len(texts)


def is_code(text: str) -> bool:
    """Return whether a text is a number, a quantity, an address, a date or a key."""
    return is_number(text) or is_quantity(text) or _CODES.fullmatch(text) is not None


def text_length(text: str) -> int:
    """Return the number of words of a text, or of characters if it is non-ASCII and has no spaces."""
    if text.isascii() or " " in text.strip():
        return len(text.split())
    return len(text)


def has_repeated_values(rows: Sequence[Row], column: str) -> bool:
    """Return whether a column's values occur twice or more on average, as classes do and texts do not."""
    counts = Counter(str(cells[column]) for _, cells in sniffed_rows(rows) if cells.get(column) not in (None, ""))
    repeated = sum(count > 1 for count in counts.values())
    # Texts may repeat too, but not each of them; of texts that were removed, one mark stands in many rows.
    return 2 * len(counts) <= counts.total() and 2 * repeated >= len(counts)


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
        cells = [text for _, row in rows[:SNIFFED_ROWS] if isinstance(text := row.get(column), str) and text.strip()]
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
    objects = describe_objects(rows)
    if objects:
        raise DataError(
            f"{source}: the only column of texts, {column!r}, repeats a few of them, and {objects} If {column!r} is "
            f"what is meant: `columns` {quote_columns(column)}"
        )


def describe_objects(rows: Sequence[Row]) -> str:
    """Return what the first column of objects holds, and the fix, as the end of a message; ``""`` without any."""
    names = object_columns(rows)
    if not names:
        return ""
    name = names[0]
    example = next(cell for _, cells in rows if (cell := cells.get(name)))
    return (
        f"column {name!r} holds objects, which are not read, such as {excerpt(example, 100)}. Write what is needed of "
        "them into columns; in pandas, json_normalize does so."
    )


def describe_lists(rows: Sequence[Row]) -> str:
    """Return which columns hold lists of several items, and the fix, as the end of a message; ``""`` without any."""
    names = [name for name in names_in(rows)[:MOST_LOOKED_INTO] if holds_lists(rows, name)]
    try:
        lists = {name: [list_in(cells.get(name)) or [] for _, cells in rows] for name in names}
    except ListCellError:
        return ""
    lengths = {name: list(map(len, lists[name])) for name in names}
    names = [name for name in names if lengths[name] == lengths[names[0]]]
    if not names or max(lengths[names[0]]) < 2:
        return ""
    if len(names) == 1:
        return (
            f"column {names[0]!r} holds lists. If each item is a text, write a row for each; in pandas: "
            f"frame.explode({names[0]!r})."
        )
    return (
        f"columns {join_names([repr(name) for name in names])} hold lists of the same length. If each place in them is "
        f"a row, write them so; in pandas: frame.explode({names})."
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
