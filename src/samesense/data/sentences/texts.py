"""Texts without labels, from any file: one a line, a column or two of a table, or the sentences of documents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from samesense.data.documents.sectioned import holds_documents, read_documents
from samesense.data.formats.columns import NEGATIVE_NAMES, TEXT_PAIRS
from samesense.data.formats.files import Row, missing_file, split_suffix
from samesense.data.formats.lines import read_lines
from samesense.data.formats.memory import Source, in_memory, name_of
from samesense.data.formats.sources import load_rows
from samesense.errors import DataError

SINGLE_NAMES = ("sentence", "text", "sent", "question")
"""Accepted names of a column that holds the only text of its row, the preferred ones first."""

_HALF = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair, which JSON can name and no tokenizer takes."""


def unlabelled_texts(source: Source) -> list[str]:
    """Return every text of a source in its order, repeated ones as often as they come; empty ones are left out.

    Args:
        source: see :func:`all_texts`.

    Raises:
        DataError: see :func:`all_texts`; or if there is no text.
    """
    texts = [text for text in all_texts(source) if text.strip()]
    if not texts:
        raise DataError(f"{name_of(source)} holds no text. Give a file with one text a line, or with columns of texts.")
    return texts


def all_texts(source: Source) -> Iterator[str]:
    """Yield every text of a source in its order, an empty text where a line or a cell holds none.

    Args:
        source: a text file with one text a line (``.txt`` or any ending that is not known, also ``.gz``); JSON lines of
            documents, of which all sentences count; or what ``load_rows`` reads, of which all columns named as texts
            of pairs, triples or single sentences count; or data in memory, a list of texts among it.

    Raises:
        DataError: if there is no such source, no column of texts, or something else than a text where one belongs.
    """
    if in_memory(source):
        return _cells(load_rows(source), name_of(source))
    name = str(source)
    path = Path(source).expanduser()
    if path.is_file() and not split_suffix(name)[0]:
        return (line.rstrip("\r\n") for _, line in read_lines(path, split_suffix(name)[1]))
    if name.removesuffix(".gz").endswith(".txt"):
        raise missing_file(name)
    if path.is_file() and holds_documents(path):
        return _sentences(path)
    return _cells(load_rows(source), name)


def _sentences(path: Path) -> Iterator[str]:
    for number, document in enumerate(read_documents(path), 1):
        for section in document:
            yield from (_whole(text, f"{path}, document {number}") for text in section)


def _cells(rows: Iterator[Row], source: str) -> Iterator[str]:
    layouts: dict[tuple[str, ...], list[str]] = {}  # rows of JSON need not all have the same
    for number, cells in rows:
        names = tuple(cells)
        if names not in layouts:
            layouts[names] = _text_columns(names, f"{source}, row {number}" if layouts else source)
        for column in layouts[names]:
            value = cells.get(column)
            if value is not None and not isinstance(value, str):
                raise DataError(
                    f"{source}, row {number}, column {column!r}: a text is needed, received {type(value).__name__}."
                )
            yield _whole(value or "", f"{source}, row {number}, column {column!r}")


def _whole(text: str, place: str) -> str:
    if not text.isascii() and _HALF.search(text):
        raise DataError(f"{place}: the text holds half of a surrogate pair, which is no character. Give it again.")
    return text


def _text_columns(names: Sequence[str], source: str) -> list[str]:
    spelled = {name.strip().casefold(): name for name in reversed(names)}
    pair = next((pair for pair in TEXT_PAIRS if pair[0] in spelled and pair[1] in spelled), None)
    if pair is not None:
        return [spelled[name] for name in (*pair, *NEGATIVE_NAMES) if name in spelled]
    single = next((spelled[name] for name in SINGLE_NAMES if name in spelled), None)
    if single is None:
        raise DataError(
            f"{source}: no column of texts could be found. Columns found: {', '.join(names)}. Accepted: "
            f"{', '.join(SINGLE_NAMES)}, or the text columns of pairs."
        )
    return [single]
