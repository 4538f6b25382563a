"""Entries of a collection: a text, its id and its metadata."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from typing import Any

from samesense.data.columns.guesses import text_column
from samesense.data.columns.text_columns import SNIFFED_ROWS
from samesense.data.columns.unread_columns import warn_of_bytes
from samesense.data.rows.bad_rows import warn_left_out
from samesense.data.rows.load import TEXT, line_rows, load_rows
from samesense.data.rows.sources import refuse_columns
from samesense.data.texts import is_table
from samesense.errors import DataError
from samesense.failures import shortened
from samesense.inference.collection.conditions import check_depth, json_text
from samesense.types import Row

logger = logging.getLogger(__name__)

# One below SQLite's largest integer, so that the next id is one too.
LARGEST_ID = 2**63 - 2

_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")
"""A text that is an id: without leading zeros, as 007 would come back as 7, and the two may be different things."""


@dataclass(frozen=True)
class Entry:
    """One text of a collection.

    Attributes:
        text: the text.
        id: a unique number, 0 or more; ``None`` for the next free one.
        metadata: JSON values by name, which a query can filter by.
        location: file and row that it was read from, for messages.
    """

    text: str
    id: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    location: str = field(default="", compare=False, repr=False)


def metadata_json(entry: Entry, location: str) -> str:
    """Return the metadata as JSON; ``location`` names their origin in messages.

    DataError for an empty text, an invalid id, or metadata that JSON cannot hold.
    """
    if not isinstance(entry.text, str) or not entry.text.strip():
        raise DataError(f"{location}: a text that is not empty is needed; received {entry.text!r}. Leave the row out.")
    is_number = isinstance(entry.id, int) and not isinstance(entry.id, bool)
    if entry.id is not None and not (is_number and 0 <= entry.id <= LARGEST_ID):
        raise DataError(
            f"{location}: an id is a whole number from 0 to 2**63 - 2, without leading zeros or decimals; received "
            f"{entry.id!r}. Keep other names of texts in a column that is not called id: it becomes metadata, by which "
            "texts are found and deleted as well."
        )
    if not all(isinstance(name, str) for name in entry.metadata):
        raise DataError(f"{location}: names of metadata are texts; received {list(entry.metadata)!r}.")
    try:
        entry.text.encode()  # fails for lone surrogates
        check_depth(entry.metadata)
        metadata = json_text(dict(entry.metadata)) if entry.metadata else "{}"
        metadata.encode()
    except (TypeError, ValueError) as error:
        names = [name for name, value in entry.metadata.items() if not _is_json(value)]
        where = f", column {names[0]!r}" if names else ""
        raise DataError(
            f"{location}{where}: text and metadata must be JSON: whole characters, finite numbers, true, false, lists "
            f"and objects ({shortened(error)}). Leave the column out of the data, or write it as text."
        ) from error
    return metadata


def _is_json(value: object) -> bool:
    try:
        check_depth(value)
        json_text(value).encode()
    except (TypeError, ValueError):
        return False
    return True


def read_entries(source: str, *, columns: str | None = None, drop_bad_rows: bool = False) -> Iterator[Entry]:
    """Yield the entries of a file, lazily: of a text file with one text a line, or of rows that ``load_rows`` reads.

    The text of a row is in the column named by ``columns``, or else that of
    :func:`~samesense.data.columns.guesses.text_column`; the column ``id``, if there is one, is the id, and every
    other column that is not empty is metadata under its name. DataError for a missing or broken file, one without a
    text, no text column or several, or an invalid id. ``drop_bad_rows`` leaves invalid rows out and logs them at the
    end.
    """
    entry = None
    total = 0
    reason = ""
    left_out: list[int] = []
    for number, read_entry in _entries(source, columns):
        total += 1
        try:
            entry = read_entry()
        except DataError as error:
            if not drop_bad_rows:
                raise DataError(f"{error} `drop_bad_rows` leaves such rows out.") from error
            left_out.append(number)
            reason = reason or str(error)
            continue
        yield entry
    warn_left_out(source, left_out, total, f"they cannot be kept (the first: {reason.removesuffix('.')})")
    if entry is None:
        raise DataError(f"{source} holds no text to keep; at least one is needed.")


_RowEntry = tuple[int, Callable[[], Entry]]
"""Number of a row, and a function that returns its entry, or raises DataError."""


def _entries(source: str, columns: str | None) -> Iterator[_RowEntry]:
    if not is_table(source):
        refuse_columns(source, columns=columns)
        for row in line_rows(source):
            yield row[0], partial(_entry, row, TEXT, source)
        return
    rows = load_rows(source)
    first_rows = list(islice(rows, SNIFFED_ROWS))
    if first_rows:
        text = text_column(first_rows, columns, source)
        if columns is None:
            logger.info(f"{source}: texts of column {text!r}")
        warn_of_bytes(first_rows, [text], source)
        for row in chain(first_rows, rows):
            yield row[0], partial(_entry, row, text, source)


def _entry(row: Row, text: str, source: str) -> Entry:
    number, cells = row
    # Looked up in each row, because rows of JSON need not have the same names.
    identifier = next((name for name in cells if name.strip().casefold() == "id"), None)
    value = cells.get(text)
    entry_id = cells[identifier] if identifier else None
    if not isinstance(value, str):
        raise DataError(f"{source}, row {number}, column {text!r}: a text is needed, received {value!r}.")
    if isinstance(entry_id, str) and _NUMBER.fullmatch(entry_id):
        entry_id = int(entry_id)
    metadata = {name: cell for name, cell in cells.items() if name not in (text, identifier) and cell not in (None, "")}
    location = f"{source}, row {number}"
    entry = Entry(value, entry_id, metadata, location)  # type: ignore[arg-type]  # metadata_json checks the id
    metadata_json(entry, location)
    return entry
