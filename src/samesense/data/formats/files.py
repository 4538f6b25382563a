"""Reads the rows of one file: TSV, CSV, JSON lines, a JSON list or Parquet."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from samesense.data.formats.columnar import parquet_rows
from samesense.data.formats.delimited import delimited_rows
from samesense.data.formats.endings import LIKE_THEM, PACKERS, SUFFIXES, split_suffix
from samesense.data.formats.lines import WORKBOOKS, Line, read_lines, workbook_error
from samesense.errors import BadRowsError, DataError
from samesense.urls import is_file, is_readable, is_url, local

Row = tuple[int, Mapping[str, object]]
"""Row number as the file counts it, and the cells by column name."""


def leads_to(source: str | Path, check: Callable[[Path], bool]) -> bool:
    """Return the result of ``Path.exists``, ``is_file`` or ``is_dir``; false for a text too long to be a path."""
    try:
        path = Path(source).expanduser()
        return is_readable(path) if check is Path.is_file else check(path)
    except (OSError, RuntimeError):  # pathlib raises for a name that is too long, and for the home of an unknown user
        return False


def read_rows(source: str | Path) -> Iterator[Row]:
    """Read the rows of one file, lazily.

    The row number is the line on which the row starts (the header is line 1); for Parquet and a JSON list it is the
    number of the record, from 1. DataError if the file is missing, has an unknown suffix, or breaks a rule of its
    format.
    """
    path = str(source) if is_url(source) else Path(local(str(source))).expanduser()
    if not (is_file(path) if is_url(source) else leads_to(path, Path.is_file)):
        raise missing_file(str(source))
    suffix, packing = split_suffix(str(path))
    if not suffix and str(path).lower().endswith(WORKBOOKS):
        raise workbook_error(str(source))
    if not suffix:
        raise DataError(
            f"{source}: the format is told from the end of the file name, which is none of {', '.join(SUFFIXES)} "
            f"({LIKE_THEM}). Rename or convert the file."
        )
    if suffix == ".parquet":
        if packing:
            packer = PACKERS[packing]
            raise DataError(
                f"{source}: Parquet compresses by itself and is not read inside {packer.name}. Unpack it: "
                f"{packer.unpack} {source}"
            )
        return parquet_rows(path)
    if suffix == ".json":
        return _json_rows(path, read_lines(path, bounded=False, carriage_returns=True))
    return rows_of_lines(suffix, path, read_lines(path, carriage_returns=suffix == ".csv"))


def rows_of_lines(suffix: str, path: str | Path, lines: Iterable[Line]) -> Iterator[Row]:
    """Yield the rows in the lines of a file with this suffix: ``.tsv``, ``.csv``, or else JSON lines."""
    if suffix in (".tsv", ".csv"):
        return delimited_rows(suffix, path, lines)
    return _json_lines_rows(path, lines)


def missing_file(source: str) -> DataError:
    """Build the error for a missing file."""
    return DataError(f"{source}: there is no such file. Check the spelling and the working directory.")


def _json_lines_rows(path: str | Path, lines: Iterable[Line]) -> Iterator[Row]:
    for number, line in lines:
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(
                f"{path}, row {number}: every line must be one JSON object; this one is not JSON ({error}). "
                "Correct the line; a JSON list belongs in a file that ends in .json."
            ) from error
        # A JSON list of rows on one line is a .json file with the wrong ending.
        if isinstance(record, list) and any(isinstance(cell, dict | list) for cell in record):
            raise DataError(
                f"{path}, row {number}: every line must be one JSON object; this one is a list of rows. Rename the "
                "file to end in .json."
            )
        yield number, _as_object(path, number, record)


def _json_rows(path: str | Path, lines: Iterable[Line]) -> Iterator[Row]:
    """Yield the rows of a JSON list, or of JSON lines, which often have this ending too."""
    numbered_lines = list(lines)
    text = "".join(line for _, line in numbered_lines)
    if not text.strip():
        return
    try:
        records = json.loads(text)
    except (ValueError, RecursionError) as error:
        # The first line is an object by itself, so the file has JSON lines.
        if _is_object(next(line for _, line in numbered_lines if line.strip())):
            yield from _json_lines_rows(path, numbered_lines)
            return
        raise DataError(
            f"{path}: the file must be one JSON list of objects, or one object a line; it is not JSON ({error})."
        ) from error
    if isinstance(records, dict):
        records = _rows_of(records)
    if not isinstance(records, list):
        raise DataError(
            f"{path}: the file must be one JSON list of objects; received {_kind(records)}. "
            "Put the rows into a list, or one on each line of a .jsonl file."
        )
    for number, record in enumerate(records, 1):
        yield number, _as_object(path, number, record)


def _rows_of(record: dict[str, object]) -> object:
    """Return the rows of a JSON object: columns of one length, its only list of objects, or the object as one row."""
    values = list(record.values())
    if len(values) == 1 and isinstance(values[0], list) and all(isinstance(row, dict) for row in values[0]):
        return values[0]
    columns = [value for value in values if isinstance(value, list)]
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


_LISTS = {2: ("anchor", "positive"), 3: ("anchor", "positive", "negative")}
"""Column names of a row that is a list, by its length."""


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


@dataclass(frozen=True)
class BadRow:
    """One cell that breaks a rule."""

    row: int
    column: str
    what: str
    fix: str


def bad_rows_error(
    source: str, problems: Sequence[BadRow], total: int, limit: int = 5, *, can_drop: bool = True
) -> BadRowsError:
    """Build the error that counts all bad rows and lists the first ``limit``; it also carries all of them as data.

    With ``can_drop``, the message says how to leave them out.
    """
    ordered = sorted(problems, key=lambda problem: problem.row)
    listed = ordered[: max(1, limit)]
    count = len({problem.row for problem in ordered})
    lines = [f"{source}: {count} of {total} rows cannot be used."]
    lines += [f"  row {bad.row}, column {bad.column!r}: {bad.what}. Fix: {bad.fix}." for bad in listed]
    if len(ordered) > len(listed):
        lines.append(f"  and {len(ordered) - len(listed)} more.")
    lines.append("Correct these rows, or leave them out with `drop_bad_rows`." if can_drop else "Correct these rows.")
    return BadRowsError("\n".join(lines), [asdict(bad) for bad in ordered])


def text_problem(value: object) -> str:
    """Return what is wrong with a cell that should be a text; an empty string if it is usable."""
    if value is None:
        return "there is no text"
    if not isinstance(value, str):
        return f"a text is needed, received {type(value).__name__} {str(value)[:40]!r}"
    if not value.strip():
        return "the text is empty"
    return character_problem(value)


def character_problem(text: str) -> str:
    """Return a message if a text has an invalid character, which JSON escapes can express; an empty string if not."""
    if "\0" in text:
        return "the text holds NUL, which is no character"
    return "the text holds half of a surrogate pair, which is no character" if holds_half_character(text) else ""


def holds_half_character(text: str) -> bool:
    """Return whether a text has half of a surrogate pair, which no tokenizer accepts."""
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)
