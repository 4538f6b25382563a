"""Documents of running text from files, folders and ``datasets``: sections in order, each a list of sentences."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from samesense.data.extraction.files import (
    DocumentFile,
    check_readers,
    find_documents,
    holds_document_files,
    is_document_name,
    read_document_file,
)
from samesense.data.rows.columns import Row
from samesense.data.rows.list_cells import FIX, ListCellError, list_in
from samesense.data.rows.sources import load_rows, read_rows
from samesense.data.rows.text import is_text_file, read_lines, split_suffix
from samesense.data.rows.text_columns import log_unread
from samesense.errors import ConfigError, DataError
from samesense.failures import imported
from samesense.hashes import rows_hash

logger = logging.getLogger(__name__)

Paragraphs = Literal["sections", "documents"]
"""What a paragraph of a text file is: a section of one document (the file), or a document."""

TEXT_NAMES = ("text", "document", "article", "content")
"""Accepted names of a column that holds a whole document, the preferred ones first."""

LINES = (".jsonl", ".ndjson")
"""Endings of files that can hold documents; each may be followed by ``.gz`` and the like."""

Language = Literal["auto", "en", "zh"]
"""Language whose sentence ends are looked for; ``auto`` decides for each paragraph."""

# A blank line may hold spaces.
_PARAGRAPHS = re.compile(r"\n[^\S\n]*(?:\n\s*)+")
# Kana, Han characters, full-width forms, and the punctuation that stands among them.
_CHINESE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef\u3000-\u303f\u2018-\u201d\u2026"
_WITHOUT_SPACES = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uff66-\uff9d"  # kana and Han characters
_EAST_ASIAN = re.compile(f"[{_WITHOUT_SPACES}]")
_SPACED_WORD = re.compile(rf"[^\W\d_{_WITHOUT_SPACES}]+")
_BREAK = re.compile(rf"(?<=[{_CHINESE}])\s*\n\s*(?=[{_CHINESE}])")
_CHINESE_SENTENCE = re.compile(r"[^。｡！？；…!?]*(?:[。｡！？；…!?]+[\s”’」』）)】》〉]*|$)")
# Arabic, Devanagari, Urdu, Armenian and Ethiopic marks, which the package for English does not know.
_OTHER_END = re.compile(r"""(?:(?<=[؟।॥۔։።])|(?<=[؟।॥۔։።][”’»"')\]]))\s+""")

Document = Sequence[Sequence[str]]
"""Sections in order, each a list of sentences."""

Triplet = tuple[str, str, str]
"""Anchor, positive (from the same section), negative (from another section of the same document)."""


def read_documents(
    source: str | Path, *, language: Language = "auto", paragraphs: Paragraphs = "sections"
) -> Iterator[list[list[str]]]:
    """Read documents one by one, in order.

    A text file (``.txt``, also compressed) is a document whose paragraphs, separated by blank lines, are its sections.
    A Markdown, HTML, PDF or Word file (``.md``, ``.html``, ``.pdf``, ``.docx``) is a document with one section per
    heading. A folder with such files, at any depth, gives one document a file, in order of name; a file that cannot
    be read is left out with a warning. Anything else that ``load_rows`` reads, such as JSON lines, Parquet, or a name
    on the hub, gives one document a row. A row has

    - ``sections``: a list of lists of sentences, or of objects with ``sentences``; or
    - ``sentences``: a list of sentences, which is the only section; or
    - ``text`` (also ``document``, ``article``, ``content``): a text whose paragraphs are its sections.

    Texts are split into sentences, see :func:`~samesense.data.documents.split_sentences`; lists of sentences
    are used as they are. Paragraphs and lists without a sentence give no section.

    Yields:
        Documents; a row without any text is an empty list.

    Raises:
        DataError: if the source cannot be read, has no document, or a row is no document (the message names it).
        ConfigError: if a setting is not known.
        MissingExtraError: if ``nupunkt`` or ``datasets`` is needed and absent.
    """
    if paragraphs not in get_args(Paragraphs):
        raise ConfigError(f"paragraphs must be one of {', '.join(get_args(Paragraphs))}; received {paragraphs!r}.")
    # The documents are generated lazily, so an empty source shows only at the end.
    any_document = False
    for sections, is_text in _iterate_documents(source, language):
        any_document = True
        # Lists of sentences have their documents told apart already.
        if is_text and paragraphs == "documents":
            yield from ([section] for section in sections)
        else:
            yield sections
    if not any_document:
        raise DataError(f"{source} holds no document. Give a text file, a folder of them, or rows with text.")


def without_held_out(documents: Iterable[list[list[str]]], fraction: float) -> Iterator[list[list[str]]]:
    """Yield the documents that :func:`held_out` does not yield."""
    return (document for document in documents if not _is_held_out(document, fraction))


def held_out(documents: Iterable[list[list[str]]], fraction: float) -> Iterator[list[list[str]]]:
    """Yield this share of the documents with two different sentences or more, chosen by a hash of their content."""
    return (document for document in documents if _is_held_out(document, fraction))


def _is_held_out(document: list[list[str]], fraction: float) -> bool:
    # A document of one sentence allows no comparison, so it may be learnt from.
    if len({sentence for section in document for sentence in section}) < 2:
        return False
    # The first 12 hexadecimal digits of the hash, as a uniform number below 16**12.
    return int(rows_hash(document)[:12], 16) < fraction * 16**12


def _iterate_documents(source: str | Path, language: Language) -> Iterator[tuple[list[list[str]], bool]]:
    """Yield documents, each with whether it was a single text (rather than lists of sentences)."""
    path = Path(source).expanduser()
    files = document_files(path)
    for file in files:
        try:
            sections = _read_sections(file, language)
        except DataError as error:
            # An unreadable file is left out of a folder, but not if it was given by name.
            if not path.is_dir():
                raise
            logger.warning(f"left out: {error}")
            continue
        yield sections, True
    if not files:
        column: str | None = None
        for row in load_rows(source):
            # The columns of the first row decide for all rows.
            if column is None:
                column = _find_column(source, row)
                log_unread([row], [column], str(source), f"Only {column!r} is read of documents.")
            yield _sections_of_row(source, row, column, language), column in TEXT_NAMES


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


def _read_sections(file: DocumentFile, language: Language) -> list[list[str]]:
    """Return the sections of a file, one per heading, or one per paragraph where there are no headings.

    Table rows and code are not sentences and are left out.
    """
    if is_text_file(file.name):
        paragraphs = _split_text("".join(line for _, line in read_lines(file.path)), language)
        if not paragraphs:
            raise DataError(f"{file.name}: the file holds no text.")
        return paragraphs
    blocks = [block for block in read_document_file(file).blocks if block.kind in ("heading", "text")]
    has_headings = any(block.kind == "heading" for block in blocks)
    sections: list[list[str]] = [[]]
    for block in blocks:
        # Without headings, each paragraph starts a section.
        if block.kind == "heading" or not has_headings:
            sections.append([])
        if block.kind == "text":
            sections[-1] += split_sentences(block.text, language)
    return [section for section in sections if section]


def _split_text(text: str, language: Language) -> list[list[str]]:
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


def _sections_of_row(source: str | Path, row: Row, column: str, language: Language) -> list[list[str]]:
    number, cells = row
    value = cells.get(column)
    if column in TEXT_NAMES and isinstance(value, str):
        return _split_text(value, language)
    try:
        if column not in TEXT_NAMES:
            value = list_in(value) or value
    except ListCellError as error:
        raise DataError(f"{source}, row {number}, column {column!r}: {error}. {FIX.capitalize()}.") from error
    sections: list[list[str]] | None = None
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


def _filled_lists(value: Any) -> list[list[str]] | None:
    """Return the non-empty lists of sentences in ``value``; ``None`` if it is not a list of lists of texts."""
    lists = _sentence_lists(value)
    if lists is None or not all(text.strip() for sentences in lists for text in sentences):
        return None
    return [sentences for sentences in lists if sentences]


def _sentence_lists(value: Any) -> list[list[str]] | None:
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
    if split_suffix(Path(source).name)[0] not in LINES:
        return False
    return any("sections" in cells for _, cells in islice(read_rows(source), 1))


def split_paragraphs(text: str) -> list[str]:
    """Return the paragraphs of ``text``, which are separated by blank lines, without surrounding whitespace."""
    # Line ends of Windows and of old Macs.
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    return [paragraph.strip() for paragraph in _PARAGRAPHS.split(unified) if paragraph.strip()]


def split_sentences(paragraph: str, language: Language = "auto") -> list[str]:
    """Return the sentences of a paragraph (a text without blank lines) in order, each on one line.

    English is split by ``nupunkt``, a Punkt model that knows abbreviations, and after ؟।॥۔։። before a space.
    Chinese and Japanese are split after 。！？；… (several in a row count as one) and the closing quotes and brackets
    that follow. ``"auto"`` chooses Chinese where there are at least as many Han characters and kana as other words.
    Line breaks within a paragraph become spaces; between Chinese characters they are removed. MissingExtraError if
    ``nupunkt`` is needed and absent.

    Source: Kiss and Strunk 2006, "Unsupervised Multilingual Sentence Boundary Detection" (Punkt).
    """
    if language not in get_args(Language):
        raise ConfigError(f"language must be one of {', '.join(get_args(Language))}; received {language!r}.")
    if language == "zh" or (language == "auto" and _is_chinese(paragraph)):
        line = " ".join(_BREAK.sub("", paragraph).split())
        return [piece.strip() for piece in _CHINESE_SENTENCE.findall(line) if piece.strip()]
    split = imported("nupunkt", "harvest").sentences
    sentences = [" ".join(sentence.split()) for sentence in split(" ".join(paragraph.split()))]
    return [piece for sentence in sentences for piece in _OTHER_END.split(sentence)]


def _is_chinese(text: str) -> bool:
    characters = len(_EAST_ASIAN.findall(text))
    return characters > 0 and characters >= len(_SPACED_WORD.findall(text))


def section_triplets(documents: Sequence[Document], per_document: int, seed: int = 0) -> list[Triplet]:
    """Draw triplets from documents with sections, at most ``per_document`` from each, in the order of the documents.

    In each document, anchors are drawn without replacement from the sentences that allow a triplet; the positive is
    then drawn from the other sentences of the anchor's section, and the negative from all sentences that do not occur
    in that section. A document with too few such anchors gives fewer triplets, or none. The draw depends on ``seed``
    and the position of the document, not on the other documents. DataError if a sentence is blank or not a text, or
    no document allows a triplet.

    Source: Ein Dor et al. (2018), "Learning thematic similarity metric from article sections using triplet networks".
    Differs: sections and sentences are drawn at random, without the paper's filters of short sections and sentences.
    """
    if per_document < 1:
        raise ConfigError(f"per_document must be at least 1, got {per_document}.")
    if seed < 0:
        raise ConfigError(f"seed must be 0 or larger, got {seed}.")
    triplets: list[Triplet] = []
    for number, document in enumerate(documents):
        _check_sentences(document, number)
        triplets += _draw_triplets(document, per_document, np.random.default_rng([seed, number]))
    if not triplets:
        raise DataError(
            f"A triplet needs a document with two sections, one of them with two different sentences; none of "
            f"{len(documents)} documents has that. Give documents with their sections kept apart."
        )
    return triplets


def _check_sentences(document: Document, number: int) -> None:
    for index, section in enumerate(document):
        if isinstance(section, str):
            raise DataError(
                f"A section is a list of sentences, and section {index} of document {number} is one text. "
                "Put it into a list, or split it into sentences."
            )
        for sentence in section:
            if not isinstance(sentence, str) or not sentence.strip():
                raise DataError(
                    f"A sentence is a text that is not blank; section {index} of document {number} holds "
                    f"{sentence!r}. Leave such sentences out."
                )


def _draw_triplets(document: Document, count: int, generator: np.random.Generator) -> list[Triplet]:
    """Return up to ``count`` triplets of one document, with different anchors."""
    # Each sentence once, so that a positive is never its own anchor.
    sections = [list(dict.fromkeys(section)) for section in document]
    # A sentence that occurs in several sections has the order of its last occurrence.
    order = {sentence: index for index, sentence in enumerate(chain.from_iterable(sections))}
    outside = [sorted(order.keys() - set(section), key=order.__getitem__) for section in sections]
    anchors = [
        (index, position)
        for index, section in enumerate(sections)
        if len(section) > 1 and outside[index]
        for position in range(len(section))
    ]
    triplets = []
    for choice in generator.permutation(len(anchors))[:count]:
        index, position = anchors[choice]
        section = sections[index]
        # A step of at least one around the section leads to any other sentence of it.
        positive = section[(position + int(generator.integers(1, len(section)))) % len(section)]
        negative = outside[index][int(generator.integers(len(outside[index])))]
        triplets.append((section[position], positive, negative))
    return triplets
