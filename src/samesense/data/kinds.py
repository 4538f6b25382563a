"""Detects the kind of data from the form of a source, the columns that are named, or the table itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from samesense.data.benchmarks.published import holds_arguments
from samesense.data.benchmarks.sentences import LabelledSentences
from samesense.data.columns.text_columns import (
    SNIFFED_ROWS,
    find_text_columns,
    has_repeated_values,
    holds_lists,
    is_text_column,
)
from samesense.data.columns.unread_columns import log_unread
from samesense.data.conventions.column_names import NEGATIVE_NAMES, normalize_name
from samesense.data.conventions.named_columns import named_column, requested_columns, split_columns
from samesense.data.detected_kind import DataKind, DetectedKind
from samesense.data.extraction.files import holds_document_files, is_document_name
from samesense.data.pairs.data import PairData
from samesense.data.rows.compression import is_text_file, split_suffix
from samesense.data.rows.load import line_rows, list_rows, names_in
from samesense.data.rows.sources import Source, holds_lines, in_memory, leads_to, name_of
from samesense.data.sentences import Sentences
from samesense.data.table_kinds import detect_table_kind, refuse_lists_of_labels
from samesense.data.tuples.data import TupleData
from samesense.errors import DataError
from samesense.types import Row


def detect_kind(source: Source, columns: str | None = None) -> DetectedKind:
    """Detect the kind of a source from its first rows; DataError if it cannot be determined.

    One name in ``columns`` means texts. Two mean an anchor and a positive, or sentences with classes if the second
    column has few values. Three mean labelled pairs, or an anchor, a positive and a negative if all hold texts.
    """
    for data_type, kind in _READ.items():
        if isinstance(source, data_type):
            triplets = getattr(source, "kind", "") == "triplet"
            return DetectedKind(kind, "what was read", columns=columns, triplets=triplets)
    # The form of the source decides before its columns and cells.
    if holds_documents_of_text(source):
        is_folder = leads_to(str(source), Path.is_dir)
        return DetectedKind("documents", "a folder of documents" if is_folder else "the ending of a document")
    if not in_memory(source) and leads_to(source, Path.is_dir) and holds_arguments(source):
        return DetectedKind("pairs", "the form of a published set")
    if holds_lines(source):
        if not in_memory(source):
            next(line_rows(source), None)  # refuses a file that is missing, or seems to be a table
        return DetectedKind("texts", "one text a line", columns=columns)
    rows = list_rows(source, SNIFFED_ROWS)
    if columns is not None:
        kind = _kind_of_columns(rows, columns, name_of(source))
        last = normalize_name(requested_columns(columns, names_in(rows))[-1])
        triplets = kind == "pairs" and last in NEGATIVE_NAMES
        return DetectedKind(kind, f"the columns {columns}", columns=columns, triplets=triplets)
    detected = detect_table_kind(rows, name_of(source))
    # The reader is given the columns of a guess, and does not say then which others there are. The guess names texts.
    if not detected.sure and detected.columns is not None:
        log_unread(rows, split_columns(detected.columns), name_of(source), besides=find_text_columns(rows))
    return detected


_READ: dict[type, DataKind] = {
    PairData: "pairs",
    TupleData: "tuples",
    LabelledSentences: "classes",
    Sentences: "texts",
}
"""Kinds of data that were read before."""


def holds_documents_of_text(source: Source) -> bool:
    """Return whether a source is a folder of documents, or one document with markup (a text file may hold lines)."""
    if in_memory(source):
        return False
    name = str(source)
    if leads_to(name, Path.is_file):
        is_table = bool(split_suffix(name).suffix)
        return not is_table and is_document_name(name) and not is_text_file(name)
    return holds_document_files(name)


def _kind_of_columns(rows: Sequence[Row], columns: str, source: str) -> DataKind:
    """Return the kind of the columns that the user names."""
    names = requested_columns(columns, names_in(rows))
    if len(names) == 1:
        return "texts"
    if len(names) > 3:
        return "pairs"
    try:
        last = named_column(names_in(rows), names[-1], source)
    except DataError:  # the reader reports the unknown column
        if len(names) == 2:
            return "classes"
        return "pairs"
    lists = [name for name in names[1:] if holds_lists(rows, name)]
    if lists:
        refuse_lists_of_labels(rows, lists, source)
        return "tuples"
    texts = is_text_column(rows, last) and not has_repeated_values(rows, last)
    if len(names) == 2:
        if texts:
            return "tuples"
        return "classes"
    if texts and normalize_name(last) not in NEGATIVE_NAMES:
        return "tuples"
    return "pairs"
