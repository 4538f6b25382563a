"""Columns as a user names them, several in one text, and as messages list them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from samesense.data.conventions.column_names import find_name, normalize_name, spelled_names
from samesense.errors import ConfigError, DataError
from samesense.failures import abridged

MOST_LISTED = 30
"""Most columns that an error lists."""

MOST_NAMED = 10
"""Most columns that a sentence names."""

LONGEST_NAME = 100
"""Most characters of a column name in such a list; without a header line, a "name" may be a long text."""


def quote_columns(columns: str) -> str:
    """Return column names, comma-separated, quoted for a shell if needed."""
    if not re.search(r"[^\w,.-]", columns):
        return columns
    mark = "'" if '"' in columns else '"'
    return f"{mark}{columns}{mark}"


def split_columns(columns: str) -> list[str]:
    """Return the names in a text of column names; one with a comma stands in double quotes, as in CSV.

    >>> split_columns('text1, text2,"score, 0 to 5"')
    ['text1', 'text2', 'score, 0 to 5']
    """
    return [name.strip() for name in next(csv.reader([columns], skipinitialspace=True), [""])]


def requested_columns(columns: str, names: Sequence[str]) -> list[str]:
    """Return the names in a text of column names; the whole of it where the source has a column of that name."""
    if normalize_name(columns) in spelled_names(names):
        return [columns]
    return split_columns(columns)


def join_columns(names: Sequence[str]) -> str:
    """Return the text of column names that :func:`split_columns` splits into these.

    >>> join_columns(["text1", "text2", "score, 0 to 5"])
    'text1,text2,"score, 0 to 5"'
    """
    sink = io.StringIO()
    csv.writer(sink, lineterminator="").writerow(names)
    return sink.getvalue()


@contextmanager
def columns_named_by(option: str) -> Iterator[None]:
    """Read a source whose columns are named by another option than ``columns``: errors speak of that one."""
    try:
        yield
    except (ConfigError, DataError) as error:
        error.args = (str(error).replace("`columns`", f"`{option}`"), *error.args[1:])
        raise


def listed(names: Sequence[str], limit: int = MOST_LISTED) -> str:
    """Return column names for a message: the first ones, shortened, and the number of the others.

    >>> listed(["a", "b", "c", "d"], 2)
    'a, b and 2 more'
    """
    if not names:
        return "none"
    return abridged([name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}..." for name in names], limit)


def join_names(names: Sequence[str]) -> str:
    """Return names as in "a, b and c"; of more than :data:`MOST_NAMED` the first, and the number of the others."""
    if len(names) > MOST_NAMED:
        return listed(names, MOST_NAMED)
    *most, last = names
    if not most:
        return last
    return f"{', '.join(most)} and {last}"


def check_columns(columns: object) -> None:
    """Raise ConfigError if `columns` is no text of names, such as a list of them."""
    if columns is None or isinstance(columns, str):
        return
    # Of a list of names, the fix is those names.
    are_names = isinstance(columns, list | tuple) and all(isinstance(column, str) for column in columns)
    form = join_columns(columns) if are_names else "left,right,same"  # type: ignore[arg-type]  # texts
    raise ConfigError(
        f'`columns` is one text, names separated by commas; received {columns!r}. Write columns="{form}".'
    )


def named_column(names: Sequence[str], columns: str, source: str) -> str:
    """Return the column that ``columns`` names, in the source's spelling; DataError if the source lacks it."""
    if columns in names:
        return columns
    requested = requested_columns(columns, names)
    if len(requested) > 1:
        raise ConfigError(f"{source}: one text a row is read here, so that `columns` takes one name; got {columns!r}.")
    column = find_name((normalize_name(requested[0]),), spelled_names(names))
    if column is not None:
        return column
    raise DataError(
        f"{source}: `columns` names {columns!r}, which this source does not have. Its columns: {listed(names)}. "
        "Name one."
    )
