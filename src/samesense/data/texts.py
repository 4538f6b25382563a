"""One text a row: lines of a text file or of standard input, a column of a table, or passages of documents."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from samesense.data.columns.guesses import text_column
from samesense.data.columns.unread_columns import log_unread, warn_of_bytes
from samesense.data.documents import document_files
from samesense.data.extraction.files import holds_document_files, read_document_file
from samesense.data.passages import cut_passages
from samesense.data.rows.bad_rows import BadRow, bad_rows_error, bad_texts, warn_left_out
from samesense.data.rows.load import TEXT, line_rows, load_rows, names_in, no_rows_error
from samesense.data.rows.memory import SENTENCE
from samesense.data.rows.sources import Source, holds_lines, in_memory, name_of, refuse_columns
from samesense.data.rows.text import STANDARD_INPUT
from samesense.errors import DataError
from samesense.types import Row

logger = logging.getLogger(__name__)

PASSAGE_WORDS = 96
"""Length of a passage in words and punctuation marks, used where no model counts its tokens."""


class TextRows(NamedTuple):
    """The rows of a source that have a usable text.

    Attributes:
        rows: the rows, with all their columns.
        column: name of the column of texts.
        indices: index of each row in the source, from 0.
        total: number of rows of the source.
        names: names of all columns.
    """

    rows: Sequence[Row]
    column: str
    indices: Sequence[int]
    total: int
    names: list[str]

    @property
    def texts(self) -> list[str]:
        """The text of each row."""
        return [str(cells[self.column]) for _, cells in self.rows]


class SourceTexts(NamedTuple):
    """The usable texts of a source, without its other columns.

    Attributes:
        texts: the texts.
        indices: index of each text's row, from 0.
        total: number of rows.
        names: names of all columns.
    """

    texts: list[str]
    indices: Sequence[int]
    total: int
    names: list[str]


def is_table(source: Source) -> bool:
    """Return whether a source has columns: it is no text file, and not standard input."""
    return in_memory(source) or not (str(source) == STANDARD_INPUT or holds_lines(source))


def open_rows(source: Source) -> Iterator[Row]:
    """Return the rows of a source lazily: lines, passages of a folder of documents, or rows of a table.

    A line or passage is in the column :data:`~samesense.data.rows.load.TEXT`. Blank lines at the end of a text file
    are no rows.
    """
    if not is_table(source):
        return line_rows(str(source))
    if _is_document_folder(source):
        return iter(_read_passages(str(source)))
    return load_rows(source)


def _is_document_folder(source: Source) -> bool:
    return not in_memory(source) and holds_document_files(str(source))


def read_text_rows(source: Source, columns: str | None = None, *, drop_bad_rows: bool | None = None) -> TextRows:
    """Read the rows of a source with one text each.

    Args:
        source: text file (plain or compressed), or ``"-"`` for standard input, with one text a line; or a table that
            :func:`~samesense.data.load_rows` reads, a folder of documents, or data in memory.
        columns: name of the column of texts in a table; by default the only one, which is logged.
        drop_bad_rows: leave out rows without a text, and log which; ``None`` if the caller has no such option.

    Raises:
        DataError: if the source cannot be read, ``columns`` is not given and no column or several hold texts, or a row
            has no text.
        ConfigError: if ``columns`` is given for a text file.
    """
    name = _displayed_name(source)
    if is_table(source):
        rows = list(open_rows(source))
        if not rows:
            raise no_rows_error(source)
        column = _choose_column(rows, columns, source)
    else:
        rows = list(_open_lines(source, columns))
        if not rows:
            raise _no_lines(name)
        column = TEXT
    problems = [problem for row in rows for problem in bad_texts(row, [column])]
    left_out = _left_out(name, problems, len(rows), drop_bad_rows)
    if not left_out:
        return TextRows(rows, column, range(len(rows)), len(rows), names_in(rows))
    indices = [index for index, (number, _) in enumerate(rows) if number not in left_out]
    return TextRows([rows[index] for index in indices], column, indices, len(rows), names_in(rows))


def _open_lines(source: Source, columns: str | None) -> Iterator[Row]:
    """Return the lines of a text file or of standard input as rows; ConfigError if ``columns`` is given."""
    # Before the lines are read: standard input may never end.
    refuse_columns(_displayed_name(source), columns=columns)
    return open_rows(source)


def _no_lines(name: str) -> DataError:
    return DataError(f"{name} holds no text; one text a line is needed.")


def _left_out(name: str, problems: Sequence[BadRow], total: int, drop_bad_rows: bool | None) -> set[int]:
    """Return the numbers of the rows to leave out, with a warning; DataError if bad rows are not to be left out."""
    if problems and not drop_bad_rows:
        raise bad_rows_error(name, problems, total, can_drop=drop_bad_rows is not None)
    warn_left_out(name, [problem.row for problem in problems], total)
    return {problem.row for problem in problems}


def _displayed_name(source: Source) -> str:
    if not is_table(source) and str(source) == STANDARD_INPUT:
        return "standard input"
    return name_of(source)


def read_texts(source: Source, columns: str | None = None) -> list[str]:
    """Return the texts of a source in order, none of them empty; see :func:`read_text_rows`."""
    return read_usable(source, columns, drop_bad_rows=None).texts


def read_usable(source: Source, columns: str | None = None, *, drop_bad_rows: bool | None = False) -> SourceTexts:
    """Return the usable texts of a source with the numbers of their rows; see :func:`read_text_rows`."""
    name = _displayed_name(source)
    if not is_table(source):
        read = _collect_texts(name, _open_lines(source, columns), TEXT, drop_bad_rows)
        if not read.total:
            raise _no_lines(name)
        return read
    if columns is None and _holds_plain_texts(source):
        return _collect_texts(name, load_rows(source), SENTENCE, drop_bad_rows)
    text_rows = read_text_rows(source, columns, drop_bad_rows=drop_bad_rows)
    return SourceTexts(text_rows.texts, text_rows.indices, text_rows.total, text_rows.names)


def _holds_plain_texts(source: Source) -> bool:
    return isinstance(source, list | tuple) and len(source) > 0 and all(isinstance(row, str) for row in source)


def _collect_texts(name: str, rows: Iterable[Row], column: str, drop_bad_rows: bool | None) -> SourceTexts:
    """Return the texts of rows of one column, row by row: all rows would take three times the memory of the texts."""
    texts: list[str] = []
    problems: list[BadRow] = []
    for row in rows:
        bad_cells = bad_texts(row, [column])
        problems += bad_cells
        if not bad_cells:
            texts.append(str(row[1][column]))
    total = len(texts) + len(problems)
    left_out = _left_out(name, problems, total, drop_bad_rows)
    # Rows are numbered from 1.
    indices = [index for index in range(total) if index + 1 not in left_out] if left_out else range(total)
    return SourceTexts(texts, indices, total, [column])


def _choose_column(rows: Sequence[Row], columns: str | None, source: Source) -> str:
    """Return the column of texts of a table; where it is not given, it is logged, and so are columns left unread."""
    if columns is None and _is_document_folder(source):
        return TEXT  # its columns are ours
    name = name_of(source)
    column = text_column(rows, columns, name)
    if columns is None:
        if not in_memory(source):
            logger.info(f"{name}: texts of column {column!r}")
        log_unread(rows, [column], name, "To read another: `columns`", metadata=False)
    else:
        warn_of_bytes(rows, [column], name)
    return column


def _read_passages(source: str) -> list[Row]:
    """Return the passages of a folder of documents as rows: ``text``, ``file``, ``passage``, ``title`` and so on.

    Passages do not overlap, so that no text occurs in two rows, and have about :data:`PASSAGE_WORDS` words, which most
    models read without truncation. A file that cannot be read is left out with a warning; DataError if none can.
    """
    rows: list[Row] = []
    files = document_files(Path(source).expanduser())
    for file in files:
        try:
            document = read_document_file(file)
        # One damaged file must not stop the reading of a whole folder.
        except DataError as error:
            logger.warning(f"left out: {error}")
            continue
        for passage in cut_passages(document, chunk_size=PASSAGE_WORDS, chunk_overlap=0):
            rows.append((len(rows) + 1, {TEXT: passage.text, "file": file.name, **passage.metadata}))
    if not rows:
        raise DataError(f"{source}: none of {len(files)} documents could be read.")
    logger.info(f"{source}: {len(rows):,} passages of {len(files):,} documents")
    return rows
