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

from samesense.data.documents import document_files, holds_documents, read_documents, running_documents
from samesense.data.extraction.files import holds_document_files, read_document_file
from samesense.data.held_out import HeldOutSections
from samesense.data.mapped import collect_texts, take_rows
from samesense.data.passages import cut_passages
from samesense.data.rows.columns import (
    NEGATIVE_NAMES,
    SINGLE_NAMES,
    TEXT_PAIRS,
    BadRow,
    Row,
    bad_rows_error,
    character_problem,
    first_of,
    first_pair_of,
    named_column,
    refuse_lists,
    spelled_names,
    text_problem,
    warn_left_out,
)
from samesense.data.rows.sources import (
    Source,
    as_sources,
    in_memory,
    leads_to,
    load_rows,
    missing_file,
    name_of,
    no_rows,
    row_names,
    short_name,
)
from samesense.data.rows.text import is_text_file, read_lines, split_suffix
from samesense.data.rows.text_columns import SNIFFED_ROWS, log_unread, text_column
from samesense.errors import ConfigError, DataError
from samesense.hashes import content_hash
from samesense.places import JOINT
from samesense.results import ShownRows

logger = logging.getLogger(__name__)

ROW_SIZE = 96
"""Length of a passage in words and punctuation marks, used where no model counts its tokens."""


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
            length = len(text) if text.strip() else 0
            if length and low <= length and (high is None or length <= high):
                left_out["fitting"] += 1
                yield text
            else:
                left_out["too short or too long" if length else "empty"] += 1

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
    """Return the texts of :func:`all_texts` without empty ones; DataError if nothing is left."""
    texts = [text for text in all_texts(source, columns) if text.strip()]
    if not texts:
        raise DataError(f"{name_of(source)} holds no text. Give a file with one text a line, or with columns of texts.")
    return texts


def read_text_column(source: Source, columns: str | None = None) -> list[str]:
    """Return the text of every row of a table, in order; logs which column is read if ``columns`` is not given.

    DataError if the source cannot be read, ``columns`` is not given and no column or several hold texts, or a cell
    has no text.
    """
    rows, column = read_text_rows(source, columns)
    return texts_of_rows(rows, column, name_of(source))


def read_text_rows(source: Source, columns: str | None = None) -> tuple[list[Row], str]:
    """Return the rows of a table and the name of its column of texts; see :func:`read_text_column`."""
    name = name_of(source)
    rows = list(source_rows(source))
    if not rows:
        raise no_rows(source)
    column = text_column(rows, columns, name)
    if columns is None:
        if not in_memory(source):
            logger.info(f"{name}: texts of column {column!r}")
        log_unread(rows, [column], name, "To read another: `columns`", metadata=False)
    return rows, column


def source_rows(source: Source) -> Iterator[Row]:
    """Return the rows of a table, or the passages of a folder of documents; see :func:`read_passage_rows`."""
    if not in_memory(source) and holds_document_files(str(source)):
        return iter(read_passage_rows(str(source)))
    return load_rows(source)


def read_passage_rows(source: str) -> list[Row]:
    """Return the passages of a folder of documents as rows: ``text``, ``file``, ``passage``, ``title`` and so on.

    Passages do not overlap, so that no text occurs in two rows, and have about :data:`ROW_SIZE` words, which most
    models read without truncation. A file that cannot be read is left out with a warning; DataError if none can.
    """
    rows: list[Row] = []
    files = document_files(Path(source).expanduser())
    for file in files:
        try:
            document = read_document_file(file)
        except DataError as error:
            logger.warning(f"left out: {error}")
            continue
        # Without overlap, so that no text is in two rows.
        for passage in cut_passages(document, chunk_size=ROW_SIZE, chunk_overlap=0):
            rows.append((len(rows) + 1, {"text": passage.text, "file": file.name, **passage.metadata}))
    if not rows:
        raise DataError(f"{source}: none of {len(files)} documents could be read.")
    logger.info(f"{source}: {len(rows):,} passages of {len(files):,} documents")
    return rows


def texts_of_rows(rows: Sequence[Row], column: str, name: str) -> list[str]:
    """Return the text of each row; DataError, which lists the bad rows, if a row has no usable text."""
    bad = _bad_texts(rows, column)
    if bad:
        raise bad_rows_error(name, bad, len(rows), can_drop=False)
    return [str(cells[column]) for _, cells in rows]


def usable_positions(rows: Sequence[Row], column: str, name: str, *, drop_bad_rows: bool) -> list[int]:
    """Return the positions of the rows with a text; without ``drop_bad_rows``, DataError if any row has none."""
    bad = _bad_texts(rows, column)
    if bad and not drop_bad_rows:
        raise bad_rows_error(name, bad, len(rows))
    warn_left_out(name, [bad_row.row for bad_row in bad], len(rows))
    left_out = {bad_row.row for bad_row in bad}
    return [position for position, (number, _) in enumerate(rows) if number not in left_out]


def _bad_texts(rows: Sequence[Row], column: str) -> list[BadRow]:
    return [
        BadRow(number, column, problem, "give the text or delete the row")
        for number, cells in rows
        if (problem := text_problem(cells.get(column)))
    ]


def all_texts(source: Source, columns: str | None = None) -> Iterator[str]:
    """Yield every text of a source in its order, an empty text for an empty line or cell.

    A source is one of

    - a text file with one text a line (``.txt`` or an unknown ending, also compressed);
    - JSON lines or a folder with documents, of which all sentences are read;
    - a table that ``load_rows`` reads, of which all columns with the names of pairs, triples or single sentences are
      read, or else the only column with texts; ``columns`` names other ones, as in ``"question,answer"``;
    - data in memory, such as a list of texts.

    DataError if the source is missing, has no text column, or has a cell that is not a text.
    """
    if in_memory(source):
        return _cells(load_rows(source), name_of(source), columns)
    name = str(source)
    path = Path(source).expanduser()
    # A file without the ending of a table has one text a line.
    if leads_to(path, Path.is_file) and not split_suffix(name)[0]:
        if columns is not None:
            raise ConfigError(f"`columns` is for tables; {name} holds one text a line. Leave it out.")
        return (line.rstrip("\r\n") for _, line in read_lines(path))
    if is_text_file(name):
        raise missing_file(name)
    if leads_to(path, Path.is_file) and holds_documents(path):
        return _sentences(path)
    if holds_document_files(path):
        return (text for document in running_documents(path) for section in document for text in section)
    return _cells(load_rows(source), name, columns)


def _sentences(path: Path) -> Iterator[str]:
    for number, document in enumerate(read_documents(path), 1):
        for section in document:
            yield from (_whole(text, f"{path}, document {number}") for text in section)


def _cells(rows: Iterator[Row], source: str, columns: str | None) -> Iterator[str]:
    layouts: dict[tuple[str, ...], list[str]] = {}  # rows of JSON may have different keys
    first_rows = list(islice(rows, SNIFFED_ROWS))
    for number, cells in chain(first_rows, rows):
        names = row_names(cells)
        if names not in layouts:
            same_layout = [row for row in first_rows if row_names(row[1]) == names]
            location = f"{source}, row {number}" if layouts else source
            layouts[names] = _text_columns(names, columns, location, [] if layouts else same_layout)
            refuse_lists(same_layout, layouts[names], location)
            if columns is None and same_layout:
                log_unread(same_layout, layouts[names], source)
        for column in layouts[names]:
            value = cells.get(column)
            if value is not None and not isinstance(value, str):
                raise DataError(
                    f"{source}, row {number}, column {column!r}: a text is needed, received {type(value).__name__}."
                )
            yield _whole(value or "", f"{source}, row {number}, column {column!r}")


def _whole(text: str, location: str) -> str:
    problem = character_problem(text)
    if problem:
        raise DataError(f"{location}: {problem}. Give it again.")
    return text


def _text_columns(names: Sequence[str], columns: str | None, source: str, rows: Sequence[Row]) -> list[str]:
    """Return the text columns among ``names``, judged by the cells of ``rows`` if no name is a known one."""
    spelled = spelled_names(names)
    if columns is not None:
        return [named_column(names, name.strip(), source) for name in columns.split(",")]
    pair = first_pair_of(TEXT_PAIRS, spelled)
    # All texts of pairs and triples count, not only the first.
    if pair is not None:
        return [spelled[name] for name in (*pair, *NEGATIVE_NAMES) if name in spelled]
    single_column = first_of(SINGLE_NAMES, spelled)
    if single_column is not None:
        return [single_column]
    column = text_column(rows or [(0, dict.fromkeys(names))], None, source)
    logger.info(f"{source}: texts of column {column!r}")
    return [column]
