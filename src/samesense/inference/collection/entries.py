"""What a collection holds: a text, its id, and whatever else is known of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from samesense.data.formats.columns import SINGLE_NAMES, first_of, spelled_names
from samesense.data.formats.delimited import read_lines
from samesense.data.formats.files import Row, missing_file, split_suffix
from samesense.data.formats.sources import load_rows
from samesense.errors import DataError
from samesense.inference.collection.conditions import json_text

LARGEST_ID = 2**63 - 2


@dataclass(frozen=True)
class Entry:
    """One text of a collection.

    Attributes:
        text: what is found.
        id: a number of its own, 0 or more; ``None`` lets the collection count on.
        metadata: JSON values by name, by which a query can choose.
    """

    text: str
    id: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


def metadata_json(entry: Entry, place: str) -> str:
    """Return the metadata as JSON; ``place`` says in messages where they come from.

    DataError for an empty text, an id that is none, or what JSON cannot hold.
    """
    if not isinstance(entry.text, str) or not entry.text.strip():
        raise DataError(f"{place}: a text that is not empty is needed; received {entry.text!r}. Leave the row out.")
    is_number = isinstance(entry.id, int) and not isinstance(entry.id, bool)
    if entry.id is not None and not (is_number and 0 <= entry.id <= LARGEST_ID):
        raise DataError(
            f"{place}: an id is a whole number from 0 to 2**63 - 2; received {entry.id!r}. Keep names under another "
            "column: it becomes metadata, by which texts are found and deleted as well."
        )
    if not all(isinstance(name, str) for name in entry.metadata):
        raise DataError(f"{place}: names of metadata are texts; received {list(entry.metadata)!r}.")
    try:
        entry.text.encode()
        metadata = json_text(dict(entry.metadata)) if entry.metadata else "{}"
        metadata.encode()
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{place}: text and metadata must be JSON: whole characters, finite numbers, true, false, lists and "
            f"objects ({error}). Leave the column out, or write it as text."
        ) from error
    return metadata


def read_entries(source: str, *, column: str | None = None) -> Iterator[Entry]:
    """Yield the entries of a file, lazily: of a text file with one text a line, or of rows that ``load_rows`` reads.

    Of a row, the text column is ``column``, or else ``sentence``, ``text``, ``sent`` or ``question``; the column
    ``id``, if there is one, is the id, and every other column that is not empty is metadata under its name. DataError
    for a missing or broken file, one without a text, no text column, or an id that is no number.
    """
    entry = None
    for entry in _entries(source, column):
        yield entry
    if entry is None:
        raise DataError(f"{source} holds no text to keep; at least one is needed.")


def _entries(source: str, column: str | None) -> Iterator[Entry]:
    is_text = source.removesuffix(".gz").endswith(".txt") or Path(source).expanduser().is_file()
    if is_text and column is None and not split_suffix(source)[0]:
        return _of_lines(source)
    return _of_rows(source, column)


def _of_lines(source: str) -> Iterator[Entry]:
    path = Path(source).expanduser()
    if not path.is_file():
        raise missing_file(source)
    for number, line in read_lines(path, split_suffix(source)[1]):
        text = line.rstrip("\r\n")
        if not text.strip():
            raise DataError(f"{source}, row {number}: every line must hold a text; this one is empty. Remove it.")
        yield Entry(text)


def _of_rows(source: str, column: str | None) -> Iterator[Entry]:
    text: str | None = None
    for row in load_rows(source):
        text = text or _text_column(list(row[1]), source, column)
        yield _entry(row, text, source)


def _text_column(found: list[str], source: str, column: str | None) -> str:
    wanted = SINGLE_NAMES if column is None else (column.casefold(),)
    text = first_of(wanted, spelled_names(found))
    if text is None:
        raise DataError(
            f"{source}: the column of texts could not be found. Columns: {', '.join(found)}. Accepted: "
            f"{', '.join(wanted)}. Name it: `column` {found[0] if found else 'NAME'}"
        )
    return text


def _entry(row: Row, text: str, source: str) -> Entry:
    number, cells = row
    identifier = next((name for name in cells if name.strip().casefold() == "id"), None)  # not in every row of JSON
    value, given = cells.get(text), cells[identifier] if identifier else None
    if not isinstance(value, str):
        raise DataError(f"{source}, row {number}, column {text!r}: a text is needed, received {value!r}.")
    if isinstance(given, str):
        given = int(given) if given.isascii() and given.isdigit() else given
    metadata = {name: cell for name, cell in cells.items() if name not in (text, identifier) and cell not in (None, "")}
    entry = Entry(value, given, metadata)  # type: ignore[arg-type]  # metadata_json says what is wrong with an id
    metadata_json(entry, f"{source}, row {number}")
    return entry
