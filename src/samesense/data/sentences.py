"""Reads unlabelled sentences as training data: joins several sources and leaves out repeated sentences."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any

from samesense.data.columns.guesses import text_column
from samesense.data.columns.text_columns import SNIFFED_ROWS, refuse_lists
from samesense.data.columns.unread_columns import log_unread, warn_of_marked_rows
from samesense.data.conventions.column_names import (
    NEGATIVE_NAMES,
    SINGLE_NAMES,
    TEXT_PAIRS,
    find_name,
    find_pair,
    spelled_names,
)
from samesense.data.conventions.named_columns import named_column, requested_columns
from samesense.data.conventions.texts import character_problem, is_blank
from samesense.data.documents import document_sentences, holds_documents, read_documents
from samesense.data.extraction.files import holds_document_files
from samesense.data.held_out import HeldOutSections
from samesense.data.mapped import collect_texts, take_rows
from samesense.data.rows.load import TEXT, line_rows, load_rows, row_names
from samesense.data.rows.sources import (
    Source,
    as_sources,
    holds_lines,
    in_memory,
    leads_to,
    name_of,
    refuse_columns,
    short_name,
)
from samesense.errors import ConfigError, DataError
from samesense.hashes import content_hash
from samesense.places import JOINT
from samesense.results.shown import ShownRows
from samesense.types import Row

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, repr=False)
class Sentences(ShownRows):
    """Sentences of one or several sources, in their order.

    Attributes:
        texts: the sentences; many are memory-mapped from a file, see :func:`~samesense.data.mapped.collect_texts`.
        source: the files, folders or names as the user gave them.
        name: short name for display.
        left_out: how many texts of the sources were left out, by reason.
        held_out: the documents that are held out from training; ``None`` if none were requested.
    """

    texts: Sequence[str]
    source: str
    name: str
    left_out: dict[str, int] = field(default_factory=dict)
    held_out: HeldOutSections | None = None

    def __len__(self) -> int:
        return len(self.texts)

    def __str__(self) -> str:
        return "\n".join([f"{self.name}: {self.summary}", self.table(rows=3)])

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return each sentence as a dictionary."""
        return self._first_dicts(len(self))[0]

    def _first_dicts(self, count: int) -> tuple[list[dict[str, Any]], int]:
        return [{"text": text} for text in self.texts[:count]], len(self)

    def take(self, indices: Iterable[int]) -> Sentences:
        """Return the sentences at these positions, in the order given."""
        (texts,) = take_rows([self.texts], indices)
        return replace(self, texts=texts)

    @cached_property
    def sha256(self) -> str:
        """Fingerprint of the texts in order, including their boundaries; the same for any file format."""
        # Half a surrogate pair cannot be encoded otherwise. The length prefix separates the texts.
        encoded = (text.encode("utf-8", "surrogatepass") for text in self.texts)
        return content_hash(chunk for content in encoded for chunk in (len(content).to_bytes(8, "little"), content))

    @property
    def summary(self) -> str:
        """The number of sentences, and of those left out with the reason, as a line of text."""
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.left_out.items() if count)
        return f"{len(self):,} sentences" + (f"; left out: {reasons}" if reasons else "")


def read_unlabelled(
    sources: Source,
    *,
    columns: str | None = None,
    keep_repeated: bool = False,
    min_chars: int | None = None,
    max_chars: int | None = None,
) -> Sentences:
    """Read sentences from one or several sources.

    Args:
        sources: text files with one sentence a line, tables with a text column or two, documents, folders saved by
            ``datasets``, hub names, or data in memory; see :func:`~samesense.data.sentences.all_texts`.
        columns: columns of tables whose texts are read, as in ``"question,answer"``.
        keep_repeated: keep repeated sentences, instead of their first occurrence only. Two equal sentences in a batch
            would be negatives of each other.
        min_chars: leave out sentences of fewer characters.
        max_chars: leave out sentences of more characters.

    Raises:
        ConfigError: if the two lengths exclude everything.
        DataError: if a source cannot be read, or nothing is left.
        MissingExtraError: if ``datasets`` is needed and absent.
    """
    # A list, because it is gone through three times.
    source_list = as_sources(sources)
    return collect_sentences(
        (text for source in source_list for text in all_texts(source, columns)),
        source=JOINT.join(map(name_of, source_list)),
        name=JOINT.join(map(short_name, source_list)),
        keep_repeated=keep_repeated,
        min_chars=min_chars,
        max_chars=max_chars,
    )


def collect_sentences(
    texts: Iterable[str],
    *,
    source: str,
    name: str,
    keep_repeated: bool = False,
    min_chars: int | None = None,
    max_chars: int | None = None,
) -> Sentences:
    """Return the usable sentences among ``texts``; arguments and errors are those of :func:`read_unlabelled`."""
    low = 1 if min_chars is None else min_chars
    high = max_chars
    if low < 1 or (high is not None and high < low):
        raise ConfigError(
            f"Lengths must be 1 or more and leave a range; received {min_chars} to {max_chars} characters."
        )
    left_out = Counter[str]()

    def fitting() -> Iterator[str]:
        for text in texts:
            if is_blank(text):
                left_out["empty"] += 1
            elif low <= len(text) and (high is None or len(text) <= high):
                left_out["fitting"] += 1
                yield text
            else:
                left_out["too short or too long"] += 1

    sentences = collect_texts(fitting(), once=not keep_repeated)
    if not sentences:
        raise DataError(
            f"{source or 'No source'}: no sentence is left of {left_out.total()}, {left_out['empty']} of them empty. "
            "Give a file with one sentence a line, or with a column of texts."
        )
    return Sentences(
        texts=sentences,
        source=source,
        name=name,
        left_out={
            "empty": left_out["empty"],
            "too short or too long": left_out["too short or too long"],
            "repeated": left_out["fitting"] - len(sentences),
        },
    )


def unlabelled_texts(source: Source, columns: str | None = None) -> list[str]:
    """Return the texts of :func:`all_texts` without empty ones, which are counted; DataError if nothing is left."""
    every = list(all_texts(source, columns))
    texts = [text for text in every if not is_blank(text)]
    if not texts:
        raise DataError(f"{name_of(source)} holds no text. Give a file with one text a line, or with columns of texts.")
    if len(texts) < len(every):
        logger.info(f"{name_of(source)}: left out: {len(every) - len(texts):,} empty of {len(every):,} texts")
    return texts


def all_texts(source: Source, columns: str | None = None) -> Iterator[str]:
    """Yield every text of a source in its order, an empty text for an empty line or cell.

    A source is one of

    - a text file with one text a line (``.txt`` or an unknown ending, also compressed);
    - JSON lines or a folder with documents, of which all sentences are read;
    - a table that ``load_rows`` reads, of which all columns with the names of pairs, triplets or single sentences are
      read, or else the only column with texts; ``columns`` names other ones, as in ``"question,answer"``;
    - data in memory, such as a list of texts.

    DataError if the source is missing, has no text column, or has a cell that is not a text.
    """
    if in_memory(source):
        return _cell_texts(load_rows(source), name_of(source), columns)
    name = str(source)
    path = Path(source).expanduser()
    if holds_lines(source):
        refuse_columns(name, columns=columns)
        # Blank lines are counted as empty, also at the end of the file.
        return (str(cells[TEXT]) for _, cells in line_rows(source, blank_end=True))
    if leads_to(path, Path.is_file) and holds_documents(path):
        return _document_texts(path)
    if holds_document_files(path):
        return document_sentences(read_documents(path))
    return _cell_texts(load_rows(source), name, columns)


def _document_texts(path: Path) -> Iterator[str]:
    for number, document in enumerate(read_documents(path), 1):
        for text in document_sentences([document]):
            _refuse_invalid_characters(text, f"{path}, document {number}")
            yield text


def _cell_texts(rows: Iterator[Row], source: str, columns: str | None) -> Iterator[str]:
    layouts: dict[tuple[str, ...], list[str]] = {}  # rows of JSON may have different keys
    first_rows = list(islice(rows, SNIFFED_ROWS))
    for number, cells in chain(first_rows, rows):
        names = row_names(cells)
        if names not in layouts:
            same_layout = [row for row in first_rows if row_names(row[1]) == names]
            location = f"{source}, row {number}" if layouts else source
            layouts[names] = _text_columns(names, columns, location, [] if layouts else same_layout)
            refuse_lists(same_layout, layouts[names], location)
            # Only of the first rows: a later layout would have each row logged.
            if columns is None and same_layout:
                log_unread(same_layout, layouts[names], source)
            elif same_layout:
                warn_of_marked_rows(same_layout, layouts[names], source)
        for column in layouts[names]:
            value = cells.get(column)
            if value is not None and not isinstance(value, str):
                raise DataError(
                    f"{source}, row {number}, column {column!r}: a text is needed, received {type(value).__name__}."
                )
            text = value or ""
            _refuse_invalid_characters(text, f"{source}, row {number}, column {column!r}")
            yield text


def _refuse_invalid_characters(text: str, location: str) -> None:
    """Raise DataError for a character that would fail in the tokenizer, hours into a run."""
    problem = character_problem(text)
    if problem:
        raise DataError(f"{location}: {problem}. Correct the text.")


def _text_columns(names: Sequence[str], columns: str | None, source: str, rows: Sequence[Row]) -> list[str]:
    """Return the text columns among ``names``, judged by the cells of ``rows`` if no name is a known one."""
    spelled = spelled_names(names)
    if columns is not None:
        return [named_column(names, name, source) for name in requested_columns(columns, names)]
    pair = find_pair(TEXT_PAIRS, spelled)
    # All texts of pairs and triplets count, not only the first.
    if pair is not None:
        return [spelled[name] for name in (*pair, *NEGATIVE_NAMES) if name in spelled]
    single_column = find_name(SINGLE_NAMES, spelled)
    if single_column is not None:
        return [single_column]
    # Without rows of this layout, the names alone decide.
    column = text_column(rows or [(0, dict.fromkeys(names))], None, source)
    logger.info(f"{source}: texts of column {column!r}")
    return [column]
