"""Of which kind data are: told by the form of a source, its columns, and what stands in its first rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Literal

from samesense.data.benchmarks.sentences import LABEL_NAMES, LabelledSentences
from samesense.data.documents import TEXT_NAMES, text_files
from samesense.data.formats.columns import LABEL_NAMES as PAIR_LABELS
from samesense.data.formats.columns import SINGLE_NAMES, TEXT_PAIRS, first_of, resolve_columns, spelled_names
from samesense.data.formats.files import Row, leads_to, split_suffix
from samesense.data.formats.memory import Source, holds_sentences, in_memory, name_of
from samesense.data.formats.sources import load_rows
from samesense.data.formats.text_columns import SEEN, example, names_in, text_column
from samesense.data.pairs.data import PairData
from samesense.data.sentences import Sentences
from samesense.data.tuples.data import TupleData
from samesense.data.tuples.read import layout_of, texts_in
from samesense.errors import DataError

DataKind = Literal["pairs", "tuples", "classes", "texts", "documents"]
"""Labelled pairs or triplets; anchors with positives and negatives; sentences with a class each; texts; documents."""


def kind_of(source: Source, columns: str | None = None) -> DataKind:
    """Return what stands in a source, by its first rows; DataError if that is not known.

    ``columns`` of one name are of texts, of two of sentences with classes, of three of labelled pairs.
    """
    for known, kind in _READ.items():
        if isinstance(source, known):
            return kind
    if holds_text_files(source):
        return "documents"
    if holds_lines(source):
        return "texts"
    rows = list(islice(load_rows(source), SEEN))
    if not rows:
        raise DataError(f"{name_of(source)}: there are no rows. Check that this is the right file.")
    if columns is not None:
        return ("texts", "classes", "pairs")[min(columns.count(","), 2)]
    return _kind_of_rows(rows, name_of(source))


_READ: dict[type, DataKind] = {
    PairData: "pairs", TupleData: "tuples", LabelledSentences: "classes", Sentences: "texts",
}  # fmt: skip


def holds_lines(source: Source) -> bool:
    """Return whether a source is a list of texts, or a file of one text a line."""
    is_file = not in_memory(source) and leads_to(source, Path.is_file)
    return holds_sentences(source) or (is_file and not split_suffix(str(source))[0])


def holds_text_files(source: Source) -> bool:
    """Return whether a source is a folder of text files."""
    return not in_memory(source) and leads_to(source, Path.is_dir) and bool(text_files(Path(source).expanduser()))


def _kind_of_rows(rows: Sequence[Row], source: str) -> DataKind:
    names = names_in(rows)
    spelled = spelled_names(names)
    if any(isinstance(cells.get(name), list) for name in ("sections", "sentences") for _, cells in rows):
        return "documents"
    if hold_lists(rows, source):
        return "tuples"
    try:
        resolve_columns(names, None, source, example=example(rows))
    except DataError as error:
        if _partners(names, source) and first_of(PAIR_LABELS, spelled) is None:
            return "tuples"
        if any(set(pair) <= spelled.keys() for pair in TEXT_PAIRS):
            raise
        if first_of(SINGLE_NAMES, spelled) and first_of(LABEL_NAMES, spelled):
            return "classes"
        if not first_of(SINGLE_NAMES, spelled) and set(TEXT_NAMES) & spelled.keys():
            return "documents"
        try:
            text_column(rows, None, source)
        except DataError:
            raise error from None
        return "texts"
    return "pairs"


def _partners(names: Sequence[str], source: str) -> list[str]:
    """Return the columns of an anchor's positives and negatives, if there are any."""
    try:
        return [name for name, _ in layout_of(names, source).partners]
    except DataError:
        return []


def hold_lists(rows: Sequence[Row], source: str) -> bool:
    """Return whether rows have anchors with lists of positives or negatives."""
    partners = _partners(names_in(rows), source)
    cells = [cells.get(name) for name in partners for _, cells in rows]
    return any(
        isinstance(cell, list) or (isinstance(cell, str) and cell and texts_in(cell) != [cell]) for cell in cells
    )
