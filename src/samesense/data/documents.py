"""Documents of running text from files, folders and ``datasets``: sections in order, each a list of sentences."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal, get_args

from samesense.data.columns.unread_columns import log_unread
from samesense.data.conventions.list_cells import FIX, ListCellError, list_in
from samesense.data.extraction.files import (
    DocumentFile,
    check_readers,
    find_documents,
    holds_document_files,
    is_document_name,
    read_document_file,
)
from samesense.data.rows.compression import is_text_file, split_suffix
from samesense.data.rows.line_formats import describe_no_document
from samesense.data.rows.load import SNIFFED_LINES, load_rows, read_rows
from samesense.data.rows.text import read_lines
from samesense.data.sentence_splitting import Language, split_paragraphs, split_sentences
from samesense.errors import ConfigError, DataError
from samesense.hashes import rows_hash
from samesense.types import Row

logger = logging.getLogger(__name__)

Paragraphs = Literal["sections", "documents"]
"""What a paragraph of a text file is: a section of one document (the file), or a document."""

TEXT_NAMES = ("text", "document", "article", "content")
"""Accepted names of a column that holds a whole document, the preferred ones first."""

JSON_LINES_ENDINGS = (".jsonl", ".ndjson")
"""Endings of files that can hold documents; each may be followed by ``.gz`` and the like."""

Document = list[list[str]]
"""Sections in order, each a list of sentences."""


def read_documents(
    source: str | Path, *, language: Language = "auto", paragraphs: Paragraphs = "sections"
) -> Iterator[Document]:
    """Read documents one by one, in order.

    A text file (``.txt``, also compressed) is a document whose paragraphs, separated by blank lines, are its sections.
    A Markdown, HTML, PDF or Word file (``.md``, ``.html``, ``.pdf``, ``.docx``) is a document with one section per
    heading. A folder with such files, at any depth, gives one document a file, in order of name; a file that cannot
    be read is left out with a warning. Anything else that ``load_rows`` reads, such as JSON lines, Parquet, or a name
    on the hub, gives one document a row. A row has

    - ``sections``: a list of lists of sentences, or of objects with ``sentences``; or
    - ``sentences``: a list of sentences, which is the only section; or
    - ``text`` (also ``document``, ``article``, ``content``): a text whose paragraphs are its sections.

    Texts are split into sentences, see :func:`~samesense.data.sentence_splitting.split_sentences`; lists of
    sentences are used as they are. Paragraphs and lists without a sentence give no section.

    Yields:
        Documents; a row without any text is an empty list.

    Raises:
        DataError: if the source cannot be read, has no document, or a row is no document (the message names it).
        ConfigError: if a setting is not known.
        MissingExtraError: if ``nupunkt`` or ``datasets`` is needed and absent.
    """
    if paragraphs not in get_args(Paragraphs):
        raise ConfigError(f"paragraphs must be one of {', '.join(get_args(Paragraphs))}; received {paragraphs!r}.")
    # Files and rows are read lazily, so an empty source shows only at the end.
    is_empty = True
    for documents in _read_each(source, language, paragraphs):
        is_empty = False
        yield from documents
    if is_empty:
        raise DataError(f"{source} holds no document. Give a text file, a folder of them, or rows with text.")


def document_sentences(documents: Iterable[Document]) -> Iterator[str]:
    """Yield the sentences of all documents, in order."""
    return (sentence for document in documents for section in document for sentence in section)


def first_words(documents: Iterable[Document], most: int | None) -> Iterator[Document]:
    """Yield documents up to and with the one that reaches ``most`` words, which spaces part."""
    count = 0
    for document in documents:
        yield document
        count += sum(len(sentence.split()) for sentence in document_sentences([document]))
        if most is not None and count >= most:
            return


def drop_held_out(documents: Iterable[Document], fraction: float) -> Iterator[Document]:
    """Yield the documents that :func:`take_held_out` does not yield."""
    return (document for document in documents if not _is_held_out(document, fraction))


def take_held_out(documents: Iterable[Document], fraction: float) -> Iterator[Document]:
    """Yield this share of the documents with two different sentences or more, chosen by a hash of their content."""
    return (document for document in documents if _is_held_out(document, fraction))


def _is_held_out(document: Document, fraction: float) -> bool:
    # A document of one sentence allows no comparison, so it may be learnt from.
    if len(set(document_sentences([document]))) < 2:
        return False
    # The first 12 hexadecimal digits of the hash, as a uniform number below 16**12.
    return int(rows_hash(document)[:12], 16) < fraction * 16**12


def _read_each(source: str | Path, language: Language, paragraphs: Paragraphs) -> Iterator[list[Document]]:
    """Yield the documents of each file or row, which are several only where the paragraphs of a text are documents."""
    path = Path(source).expanduser()
    files = document_files(path)
    _warn_of_classes(files, str(source))
    for file in files:
        try:
            sections = _read_sections(file, language)
        except DataError as error:
            # An unreadable file is left out of a folder, but not if it was given by name.
            if not path.is_dir():
                raise
            logger.warning(f"left out: {error}")
            continue
        yield _documents_of_text(sections, paragraphs)
    if not files:
        column: str | None = None
        for row in load_rows(source):
            # The columns of the first row decide for all rows.
            if column is None:
                column = _find_column(source, row)
                log_unread([row], [column], str(source), f"Only {column!r} is read of documents.")
            sections = _sections_of_row(source, row, column, language)
            # Rows with lists of sentences are documents already.
            yield _documents_of_text(sections, paragraphs) if column in TEXT_NAMES else [sections]


_WARNED = set[str]()
"""Folders with a warning, which are read several times."""

_FEWEST_OF_CLASS = 3
"""Files in each folder, on average, from which on the folders may be classes."""


def _warn_of_classes(files: Sequence[DocumentFile], source: str) -> None:
    """Warn once if all files of a folder are texts in several folders, as classes are: ``pos`` and ``neg``."""
    folders = {file.path.parent.name for file in files}
    # Pages of a manual lie in several folders too, but not as plain text.
    are_texts = all(is_text_file(file.name) for file in files)
    is_flat = len({len(file.path.parts) for file in files}) == 1
    if len(folders) < 2 or not (are_texts and is_flat) or len(files) < _FEWEST_OF_CLASS * len(folders):
        return
    if source not in _WARNED:
        _WARNED.add(source)
        logger.warning(
            f"{source}: the names of its folders, such as {sorted(folders)[0]!r}, are not read. If they are the "
            "classes of their texts, write a table with the columns text and label."
        )


def _documents_of_text(sections: Document, paragraphs: Paragraphs) -> list[Document]:
    """Return a text as one document, or each of its paragraphs as a document of one section."""
    if paragraphs == "documents":
        return [[section] for section in sections]
    return [sections]


def document_files(path: Path) -> list[DocumentFile]:
    """Return the document files in a folder, at any depth and sorted by name, or ``path`` itself if it is one."""
    is_file = path.is_file() and is_document_name(path.name)
    if not is_file and not holds_document_files(path):
        return []
    documents = find_documents([path])
    if documents.skips_files:
        logger.info(f"{path}: {documents.summary}")
    for message in documents.unreadable:
        logger.warning(message)
    check_readers(documents.files)
    return documents.files


def _read_sections(file: DocumentFile, language: Language) -> Document:
    """Return the sections of a file, one per heading, or one per paragraph where there are no headings.

    Table rows and code are not sentences and are left out.
    """
    if is_text_file(file.name):
        lines = [line for _, line in read_lines(file.path)]
        _refuse_other_format(lines, file.name)
        paragraphs = _split_text("".join(lines), language)
        if not paragraphs:
            raise DataError(f"{file.name}: the file holds no text.")
        return paragraphs
    blocks = [block for block in read_document_file(file).blocks if block.kind in ("heading", "text")]
    has_headings = any(block.kind == "heading" for block in blocks)
    sections: Document = [[]]
    for block in blocks:
        # Without headings, each paragraph starts a section.
        if block.kind == "heading" or not has_headings:
            sections.append([])
        if block.kind == "text":
            sections[-1] += split_sentences(block.text, language)
    return [section for section in sections if section]


def _refuse_other_format(lines: Sequence[str], name: str) -> None:
    """Raise DataError if the first lines of a text file are those of a table or another format, and no running text."""
    first = [line.rstrip("\r\n") for line in lines[:SNIFFED_LINES]]
    if description := describe_no_document([line for line in first if line.strip()]):
        raise DataError(f"{name}: {description}")


def _split_text(text: str, language: Language) -> Document:
    return [split_sentences(paragraph, language) for paragraph in split_paragraphs(text)]


def _find_column(source: str | Path, row: Row) -> str:
    number, cells = row
    column = next((name for name in ("sections", "sentences", *TEXT_NAMES) if name in cells), None)
    if column is None:
        raise DataError(
            f"{source}, row {number}: a document has sections, sentences or text; received the columns "
            f"{', '.join(cells)}. Rename the one that holds the documents to text."
        )
    return column


def _sections_of_row(source: str | Path, row: Row, column: str, language: Language) -> Document:
    number, cells = row
    value = cells.get(column)
    if column in TEXT_NAMES and isinstance(value, str):
        return _split_text(value, language)
    try:
        if column not in TEXT_NAMES:
            value = list_in(value) or value
    except ListCellError as error:
        raise DataError(f"{source}, row {number}, column {column!r}: {error}. {FIX.capitalize()}.") from error
    sections: Document | None = None
    expected = "a text"
    if column == "sections":
        sections = _filled_lists(value)
        expected = "a list of lists of sentences"
    elif column == "sentences":
        sections = _filled_lists([value])
        expected = "a list of sentences"
    if sections is None:
        raise DataError(
            f"{source}, row {number}, column {column!r}: {expected} is needed, none blank; received "
            f"{str(value)[:80]!r}. Correct the row, or leave it out."
        )
    return sections


def _filled_lists(value: Any) -> Document | None:
    """Return the non-empty lists of sentences in ``value``; ``None`` if it is not a list of lists of texts."""
    lists = _sentence_lists(value)
    if lists is None or not all(text.strip() for sentences in lists for text in sentences):
        return None
    return [sentences for sentences in lists if sentences]


def _sentence_lists(value: Any) -> Document | None:
    """Return lists of texts, given as such or as objects with ``sentences``; ``None`` for anything else."""
    if not isinstance(value, list):
        return None
    lists: list[Any] = [sentences.get("sentences") if isinstance(sentences, dict) else sentences for sentences in value]
    valid = all(isinstance(sentences, list) and all(isinstance(text, str) for text in sentences) for sentences in lists)
    if valid:
        return lists
    return None


def holds_documents(source: str | Path) -> bool:
    """Return whether a file has JSON lines and its first object has ``sections``."""
    if split_suffix(Path(source).name).suffix not in JSON_LINES_ENDINGS:
        return False
    return any("sections" in cells for _, cells in islice(read_rows(source), 1))
