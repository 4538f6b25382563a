"""Documents of running text from files, folders and ``datasets``: sections in order, each a list of sentences."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args

from samesense.data.documents.splitting import Language, split_paragraphs, split_sentences
from samesense.data.formats.files import Row
from samesense.data.formats.lines import read_lines
from samesense.data.formats.sources import load_rows
from samesense.errors import ConfigError, DataError

Paragraphs = Literal["sections", "documents"]
"""What a paragraph of a text file is: a section of the one document that the file is, or a document of its own."""

TEXT_NAMES = ("text", "document", "article", "content")
"""Accepted names of a column that holds a whole document, the preferred ones first."""


def running_documents(
    source: str | Path, *, language: Language = "auto", paragraphs: Paragraphs = "sections"
) -> Iterator[list[list[str]]]:
    """Read documents one by one, in order.

    A text file (``.txt``, also ``.gz``) is a document, its paragraphs, parted by blank lines, are sections; a folder
    that holds text files, however deep, gives one document a file, by name. Anything else that ``load_rows`` reads,
    such as JSON lines, Parquet, or a name on the hub, gives one document a row. A row has

    - ``sections``: a list of lists of sentences, or of objects with ``sentences``; or
    - ``sentences``: a list of sentences, the one section; or
    - ``text`` (also ``document``, ``article``, ``content``): a text whose paragraphs are its sections.

    Texts are split into sentences, see :func:`~samesense.data.documents.splitting.split_sentences`; lists of sentences
    are taken as they are. Paragraphs and lists without a sentence give no section.

    Args:
        source: file, folder or name.
        language: of texts.
        paragraphs: what a paragraph of a text is.

    Yields:
        Documents; one without any text is an empty list.

    Raises:
        DataError: if the source cannot be read, holds no document, or a row is none (it is named).
        ConfigError: if a setting is not known.
        MissingExtraError: if ``nupunkt`` or ``datasets`` is needed and absent.
    """
    if paragraphs not in get_args(Paragraphs):
        raise ConfigError(f"paragraphs must be one of {', '.join(get_args(Paragraphs))}; received {paragraphs!r}.")
    found = False
    for sections, is_text in _documents(source, language):
        found = True
        if is_text and paragraphs == "documents":
            yield from ([section] for section in sections)
        else:
            yield sections
    if not found:
        raise DataError(f"{source} holds no document. Give a text file, a folder of them, or rows with text.")


def _documents(source: str | Path, language: Language) -> Iterator[tuple[list[list[str]], bool]]:
    """Yield documents, and whether each was one text."""
    path = Path(source).expanduser()
    files = _text_files(path)
    for file in files:
        text = "".join(line for _, line in read_lines(file, file.name.endswith(".gz")))
        yield _split(text, language), True
    if not files:
        column: str | None = None
        for row in load_rows(source):
            column = column or _column(source, row)
            yield _from_row(source, row, column, language), column in TEXT_NAMES


def _text_files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for ending in ("*.txt", "*.txt.gz") for file in path.rglob(ending) if file.is_file())
    return [path] if path.is_file() and path.name.removesuffix(".gz").endswith(".txt") else []


def _split(text: str, language: Language) -> list[list[str]]:
    return [split_sentences(paragraph, language) for paragraph in split_paragraphs(text)]


def _column(source: str | Path, row: Row) -> str:
    number, cells = row
    column = next((name for name in ("sections", "sentences", *TEXT_NAMES) if name in cells), None)
    if column is None:
        raise DataError(
            f"{source}, row {number}: a document has sections, sentences or text; received the columns "
            f"{', '.join(cells)}. Rename the one that holds the documents to text."
        )
    return column


def _from_row(source: str | Path, row: Row, column: str, language: Language) -> list[list[str]]:
    number, cells = row
    value = cells.get(column)
    if column in TEXT_NAMES and isinstance(value, str):
        return _split(value, language)
    sections = _lists(value) if column == "sections" else _lists([value]) if column == "sentences" else None
    if sections is None:
        wanted = {"sections": "a list of lists of sentences", "sentences": "a list of sentences"}.get(column, "a text")
        raise DataError(
            f"{source}, row {number}, column {column!r}: {wanted} is needed, none blank; received "
            f"{str(value)[:80]!r}. Correct the row, or leave it out."
        )
    return sections


def _lists(value: Any) -> list[list[str]] | None:
    """Return the lists of sentences in ``value``, without the empty ones, or ``None`` if it is something else."""
    if not isinstance(value, list):
        return None
    found = [part.get("sentences") if isinstance(part, dict) else part for part in value]
    for part in found:
        if not isinstance(part, list) or not all(isinstance(text, str) and text.strip() for text in part):
            return None
    return [part for part in found if part]
