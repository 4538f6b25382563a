"""Lists of texts in one cell: of JSON and Parquet, and as pandas and ``datasets`` write them to CSV."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

LONGEST_LITERAL = 2**20
"""Most characters of a Python list that is parsed; JSON has no such limit, because its parser needs little memory."""

DEEPEST = 8
"""Most levels of nested lists that are parsed."""

FIX = (
    "write the cell as a JSON list, [\"a\", \"b\"], or as a Python list with commas, ['a', 'b']; a text that begins "
    "like a list is written as a list of one text"
)
"""Advice for a cell that begins like a list and is not one."""

_BEGINS = re.compile(
    r"\s*\[\s*([\[({]*\s*[uUbBrR]{0,2}['\"]|[\[({]{8}|\]\s*$|[\w.]+\(['\"]|(None|nan|NaN|null)\s*[,\]])"
)
"""Matches the beginning of a list of texts; ``[[Paris]] is nice`` and ``[ ] buy milk`` are texts."""

_PRINTED = re.compile(r"\s*(array|Index|Series|deque|set|frozenset)\(\[.*\].*\)\s*", re.DOTALL)
_COLLECTION = re.compile(r"\s*[\[({].*[\])}]\s*", re.DOTALL)
_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<string>[uU]?(?:'(?:[^'\\\n\r]|\\.)*'|"(?:[^"\\\n\r]|\\.)*"))
    |(?P<open>[\[({])|(?P<close>[\])}])
    |(?P<between>[,:])
    |(?P<other>None|True|False|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)""",
    re.VERBOSE,
)


class ListCellError(ValueError):
    """A cell that begins like a list and cannot be parsed as one; the message says why."""


def list_in(cell: object) -> list[Any] | None:
    """Return the list in a cell, also if it is written as text; ``None`` for anything else, such as one text.

    A tuple of texts counts as a list. ListCellError for a cell that begins like a list and cannot be parsed, such as
    ``['a' 'b']``, which NumPy prints without commas.

    >>> list_in("['a', 'b']"), list_in('["a"]'), list_in("[laughs] a")
    (['a', 'b'], ['a'], None)
    """
    if isinstance(cell, list | tuple):
        return list(cell)
    if getattr(cell, "ndim", 0) == 1 and hasattr(cell, "tolist"):  # an array of NumPy, as pandas reads lists of Parquet
        return list(cell.tolist())
    # Only text with a bracket, or a printed array, Index, Series, deque, set or frozenset, can be a list.
    if not isinstance(cell, str) or cell.lstrip()[:1] not in ("[", "(", "{", "a", "I", "S", "d", "s", "f"):
        return None
    # What Python prints may be shortened, and a set has no order.
    if _PRINTED.fullmatch(cell):
        raise ListCellError(f"{shorten_cell(cell)} is an array or a set as Python prints it, and no list")
    if _COLLECTION.fullmatch(cell) is None and _BEGINS.match(cell) is None:
        return None
    try:
        value = json.loads(cell)
    except (ValueError, RecursionError):
        value = _literal(cell)
    if isinstance(value, set | frozenset):
        raise ListCellError(f"{shorten_cell(cell)} is a set, whose texts have no order")
    if isinstance(value, tuple) and not all(isinstance(item, str) for item in value):
        return None  # a text may have numbers in brackets
    if not isinstance(value, list | tuple):
        return None
    return list(value)


def texts_in(cell: object) -> list[object]:
    """Return the texts of a cell: those of a list, see :func:`list_in`; a single text; or none if it is empty.

    ListCellError also for a list that is written as text and has items other than texts.
    """
    values = list_in(cell)
    if values is None and isinstance(cell, str) and _is_object(cell):
        raise ListCellError(f"{shorten_cell(cell)} is an object, and no text")
    if values is None:
        if cell is None or cell == "":
            return []
        return [cell]
    if isinstance(cell, str) and not all(isinstance(value, str) for value in values):
        raise ListCellError(f"{shorten_cell(cell)} is a list that holds something else than texts")
    return values


def _is_object(cell: str) -> bool:
    """Return whether a cell is a dictionary written by JSON or Python, such as ``{'text': 'a'}``."""
    # Nearly no cell looks like this, so that few are parsed.
    if not re.fullmatch(r"\s*\{\s*['\"].*\}\s*", cell, re.DOTALL):
        return False
    try:
        return isinstance(json.loads(cell), dict)
    except (ValueError, RecursionError):
        return isinstance(_literal(cell), dict)


def is_list(cell: object) -> bool:
    """Return whether a cell is a list, or is written like one, even if it cannot be parsed."""
    try:
        return list_in(cell) is not None
    except ListCellError:
        return True


def _literal(cell: str) -> object:
    """Return the value of a Python literal, ``None`` if it is not one and does not begin like a list."""
    # A text may stand in brackets; only what begins like a list has to be one.
    begins = _BEGINS.match(cell) is not None
    try:
        _check_tokens(cell)
        return ast.literal_eval(cell.strip())
    except ListCellError:
        if begins:
            raise
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        if begins:
            raise ListCellError(f"{shorten_cell(cell)} begins like a list and is none") from error
    return None


def _check_tokens(cell: str) -> None:
    """Raise ListCellError for a cell that ``literal_eval`` would misread, or parse with too much memory.

    Python concatenates adjacent strings, so that ``['a' 'b']`` would become one text.
    """
    if len(cell) > LONGEST_LITERAL:
        raise ListCellError(f"{shorten_cell(cell)} is a list of more than {LONGEST_LITERAL:,} characters")
    position = 0
    depth = 0
    previous = ""
    while position < len(cell):
        token = _TOKEN.match(cell, position)
        if token is None:
            reason = " (it is cut short by ...)" if cell.startswith("...", position) else ""
            raise ListCellError(f"{shorten_cell(cell)} begins like a list and is none{reason}")
        kind = str(token.lastgroup)
        if kind == "string" == previous:
            raise ListCellError(f"{shorten_cell(cell)} has texts without a comma between, as NumPy prints arrays")
        # Deep nesting would overflow the parser's stack.
        depth += (kind == "open") - (kind == "close")
        if depth > DEEPEST:
            raise ListCellError(f"{shorten_cell(cell)} has lists within lists, more than {DEEPEST} deep")
        if kind != "space":
            previous = kind
        position = token.end()


def shorten_cell(cell: str) -> str:
    """Return the beginning of a cell for a message."""
    text = cell.strip()
    return repr(text if len(text) <= 60 else f"{text[:60]}...")
