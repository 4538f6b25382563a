"""Rows of JSON: one object a line, or a list of objects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from shlex import quote
from typing import Any

from samesense.data.conventions.named_columns import MOST_NAMED, listed
from samesense.data.rows.text import Line
from samesense.errors import DataError
from samesense.failures import excerpt
from samesense.types import Row


class _RepeatedKeyError(Exception):
    """A key stands more than once in an object; json keeps the last value alone."""


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    cells = dict(pairs)
    if len(cells) == len(pairs):
        return cells
    keys = [key for key, _ in pairs]
    repeated = next(key for key in keys if keys.count(key) > 1)
    values = [value for key, value in pairs if key == repeated]
    raise _RepeatedKeyError(
        f"the keys of an object must differ; {repeated!r} stands more than once, with the values "
        f"{' and '.join(excerpt(value, 40) for value in values[:2])}. Rename one, or make them a list."
    )


# Made once: json.loads makes one for each call that is not of the default form.
_decode = json.JSONDecoder(object_pairs_hook=_object_of).decode


def json_lines_rows(path: str | Path, lines: Iterable[Line]) -> Iterator[Row]:
    """Yield the rows of JSON lines; DataError for a line that is no object."""
    for number, line in lines:
        if not line.strip():
            continue
        try:
            record = _decode(line)
        except _RepeatedKeyError as error:
            raise DataError(f"{path}, row {number}: {error}") from error
        except (ValueError, RecursionError) as error:
            raise DataError(
                f"{path}, row {number}: every line must be one JSON object; this one is not JSON ({error}). "
                f"{_fix_of_line(line)}"
            ) from error
        # A JSON list of rows on one line is a .json file with the wrong ending.
        if isinstance(record, list) and any(isinstance(cell, dict | list) for cell in record):
            raise DataError(
                f"{path}, row {number}: every line must be one JSON object; this one is a list of rows. Rename the "
                "file to end in .json."
            )
        yield number, _as_object(path, number, record)


def _fix_of_line(line: str) -> str:
    """Return the fix of a line that is not JSON, by its form."""
    text = line.strip()
    if text.startswith(("{'", "['")):
        return "Rows of Python are written as JSON by json.dumps(row)."
    if text.endswith("},"):
        return "Take the commas between the lines off, or make the file a list that ends in .json."
    if text == "{" or (text.startswith("{") and "}{" in text.replace(" ", "")):
        return "Put each object on one line: jq -c . FILE"
    return "Correct the line; a JSON list belongs in a file that ends in .json."


def json_rows(path: str | Path, lines: Iterable[Line]) -> Iterator[Row]:
    """Yield the rows of a JSON list, or of JSON lines, which often have this ending too."""
    numbered_lines = list(lines)
    text = "".join(line for _, line in numbered_lines)
    if not text.strip():
        return
    try:
        # As a whole: a list may be written over any number of lines.
        records = _decode(text)
    except (_RepeatedKeyError, ValueError, RecursionError) as error:
        # The first line is an object by itself, so the file has JSON lines; a message has the number of the line.
        if _is_object(next(line for _, line in numbered_lines if line.strip())):
            yield from json_lines_rows(path, numbered_lines)
            return
        if isinstance(error, _RepeatedKeyError):
            raise DataError(f"{path}: {error}") from error
        raise DataError(
            f"{path}: the file must be one JSON list of objects, or one object a line; it is not JSON ({error}). "
            "Correct it; objects over several lines, one after the other, are put on one line each by jq -c ."
        ) from error
    if isinstance(records, dict):
        records = _rows_of(records)
    if not isinstance(records, list):
        raise DataError(
            f"{path}: the file must be one JSON list of objects; received {_described(records)}. "
            f"{_fix_of_file(records)}"
        )
    for number, record in enumerate(records, 1):
        yield number, _as_object(path, number, record)


def _fix_of_file(records: object) -> str:
    """Return the fix of a JSON file that is no list: which of its values has the rows, where that is certain."""
    lists = {key: value for key, value in records.items() if _holds_objects(value)} if isinstance(records, dict) else {}
    if len(lists) == 1:
        (key,) = lists
        path = quote(f".[{json.dumps(key)}]")
        return f"If the rows are in the list {key!r}, write it alone: jq {path} FILE"
    return (
        "Put the rows into a list, or one on each line of a .jsonl file; in pandas: frame.to_json(path, "
        'orient="records").'
    )


def _holds_objects(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


def _rows_of(record: dict[str, object]) -> object:
    """Return the rows of a JSON object: columns of one length, its only list of objects, or the object as one row."""
    values = list(record.values())
    if len(values) == 1 and isinstance(values[0], list) and all(isinstance(row, dict) for row in values[0]):
        return values[0]
    columns = [value for value in values if isinstance(value, list)]
    # A single list of numbers or texts may be a cell of one row.
    if len(values) > 1 and len(columns) == len(values) and len({len(column) for column in columns}) == 1:
        return [dict(zip(record, row, strict=True)) for row in zip(*columns, strict=True)]
    return record


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _as_object(path: str | Path, number: int, record: object) -> dict[str, object]:
    """Return the cells of a row by column; lists of texts are pairs and triplets, as in sentence-transformers."""
    if isinstance(record, dict):
        return record
    if isinstance(record, list) and len(record) in _LISTS and all(isinstance(cell, str) for cell in record):
        return dict(zip(_LISTS[len(record)], record, strict=True))
    raise DataError(
        f"{path}, row {number}: a row must be a JSON object with named columns; received {_kind(record)}. "
        'Write it as {"sentence1": ..., "sentence2": ..., "score": ...}.'
    )


_LISTS = {2: ("sentence1", "sentence2"), 3: ("anchor", "positive", "negative")}
"""Column names of a row that is a list, by its length; two texts may be a text and its class, as in memory."""


def _described(value: object) -> str:
    """Return what a value is, and of an object its first keys."""
    if not isinstance(value, dict):
        return _kind(value)
    return f"an object with the keys {listed([repr(key) for key in value], MOST_NAMED)}"


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
