"""Sentences with a class each, such as questions with their intent, and their reader."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from samesense.data.columns.unread_columns import log_unread, warn_of_marked_rows
from samesense.data.conventions.column_names import SENTENCE_LABEL_NAMES, SINGLE_NAMES, find_name, spelled_names
from samesense.data.conventions.named_columns import listed, named_column, split_columns
from samesense.data.conventions.texts import TEXT_FIX, text_problem
from samesense.data.pairs.data import PairData
from samesense.data.rows.bad_rows import BadRow, bad_rows_error
from samesense.data.rows.load import list_rows, names_in
from samesense.data.rows.sources import Source, name_of
from samesense.errors import ConfigError, DataError
from samesense.failures import excerpt
from samesense.results.shown import ShownRows
from samesense.types import Row

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, repr=False)
class LabelledSentences(ShownRows):
    """Sentences of one source with the class of each, in its order."""

    texts: list[str]  # the sentences
    labels: list[str]  # class name of each sentence as in the source, so that it is the same in every split
    dropped: int = 0  # bad rows left out on request
    rows: list[int] | None = field(default=None, compare=False)  # row number of each sentence, if from one source

    def __len__(self) -> int:
        return len(self.labels)

    def __str__(self) -> str:
        head = f"{len(self):,} sentences of {len(set(self.labels)):,} classes"
        return "\n".join([head, self.table(rows=3)])

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return each sentence as a dictionary, with its class."""
        return [{"text": text, "label": label} for text, label in zip(self.texts, self.labels, strict=True)]


def read_sentences(
    source: Source,
    *,
    columns: str | None = None,
    keep_empty: bool = False,
    drop_bad_rows: bool | None = False,
    limit_reported: int = 5,
) -> LabelledSentences:
    """Read labelled sentences from one source; see ``load_rows``.

    The source has a column ``sentence`` (or ``text``, ``sent``, ``question``) and a column ``label`` (or ``labels``,
    ``class``), or the columns in ``columns``, as in ``"body,topic"``. ``keep_empty`` accepts empty sentences, which
    some published sets have; an error shows ``limit_reported`` bad rows. DataError if the source cannot be read, a
    column is missing, a row is bad (unless such rows are dropped), or there are fewer than two classes.
    """
    name = name_of(source)
    rows = list_rows(source)
    text_column, label_column = _find_columns(rows, columns, name)
    if columns is None:
        log_unread(rows, [text_column, label_column], name)
    else:
        warn_of_marked_rows(rows, [text_column, label_column], name)
    problems = []
    for number, cells in rows:
        problems += _find_problems(number, cells, text_column, label_column, keep_empty)
    if problems and not drop_bad_rows:
        raise bad_rows_error(name, problems, len(rows), limit_reported, can_drop=drop_bad_rows is not None)
    bad = {problem.row for problem in problems}
    usable = [row for row in rows if row[0] not in bad]
    texts = [str(cells[text_column]) for _, cells in usable]
    labels = [_class_text(cells[label_column]) for _, cells in usable]
    _warn_of_several(set(labels), label_column, name)
    return replace(labelled_sentences(texts, labels, name, dropped=len(bad)), rows=[number for number, _ in usable])


def labelled_sentences(
    texts: Sequence[str], labels: Sequence[str], source: str, *, dropped: int = 0
) -> LabelledSentences:
    """Return texts and labels as one object; DataError if there are fewer than two classes."""
    classes = sorted(set(labels))
    if len(classes) < 2:
        raise DataError(
            f"{source}: there must be two classes or more; all {len(texts)} sentences are of "
            f"{', '.join(map(repr, classes)) or 'none'}. Check that the label column is the right one."
        )
    return LabelledSentences(texts=list(texts), labels=list(labels), dropped=dropped)


def _find_columns(rows: Sequence[Row], columns: str | None, source: str) -> tuple[str, str]:
    names = names_in(rows)
    if columns is not None:
        requested = split_columns(columns)
        if len(requested) != 2:
            raise ConfigError(f"{source}: `columns` takes the text and the class here, text,class; got {columns!r}.")
        return named_column(names, requested[0], source), named_column(names, requested[1], source)
    spelled = spelled_names(names)
    text = find_name(SINGLE_NAMES, spelled)
    label = find_name(SENTENCE_LABEL_NAMES, spelled)
    if text is None or label is None:
        raise DataError(
            f"{source}: labelled sentences need a text column ({', '.join(SINGLE_NAMES)}) and a label column "
            f"({', '.join(SENTENCE_LABEL_NAMES)}). Its columns: {listed(names)}. Rename them, or add a header line."
        )
    return text, label


def _find_problems(number: int, cells: Mapping[str, object], text: str, label: str, keep_empty: bool) -> list[BadRow]:
    problems = []
    message = text_problem(cells.get(text))
    # Published sets have empty sentences, which count in their figures.
    if message and not (keep_empty and not str(cells.get(text)).strip()):
        problems.append(BadRow(number, text, message, TEXT_FIX))
    if not _class_text(cells.get(label)):
        problems.append(
            BadRow(number, label, f"{excerpt(cells.get(label))} names no class", "give an integer or a class name")
        )
    return problems


_MARKS = (",", ";", "|", "#")
"""Marks between several classes of one text, as tools of annotation write them."""

_WARNED = set[tuple[str, str]]()
"""Sources and columns with a warning, which are read several times."""


def _warn_of_several(classes: set[str], column: str, source: str) -> None:
    """Warn once if names of classes consist of others, as where a text has several."""
    for mark in _MARKS:
        joined = [name for name in classes if mark in name and classes.issuperset(map(str.strip, name.split(mark)))]
        if joined and (source, column) not in _WARNED:
            _WARNED.add((source, column))
            logger.warning(
                f"{source}: column {column!r} seems to hold several classes in a cell, such as {min(joined)!r}, which "
                "is read as a class of its own, different from each of them. If so, write one class a text."
            )


def _class_text(cell: object) -> str:
    """Return the name of a class; empty if the cell has none or hides it (``-`` and ``-1``)."""
    # A number or a truth value of NumPy.
    if hasattr(cell, "item"):
        cell = cell.item()
    # pandas writes whole numbers as decimals if one of the column is missing.
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    if not isinstance(cell, (str, int)):
        return ""
    text = str(cell).strip()
    if text in ("-", "-1"):
        return ""
    return text


Loaded = PairData | LabelledSentences
"""What a split of a benchmark holds."""

Load = Callable[[], Loaded]
"""Reads a split of a benchmark."""
