"""Labelled single sentences: what a classifier on top of embeddings is trained and tested on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from samesense.data.formats.columns import SINGLE_NAMES, first_of, spelled_names
from samesense.data.formats.files import BadRow, Row, bad_rows_error, text_problem
from samesense.data.formats.sources import load_rows
from samesense.errors import DataError

LABEL_NAMES = ("label", "labels", "class")
"""Accepted names of the label column, the preferred ones first."""


@dataclass(frozen=True, kw_only=True)
class LabelledSentences:
    """Sentences of one source with the class of each, in its order."""

    texts: list[str]  # the sentences
    labels: list[str]  # name of the class of each, as the source writes it, which is the same in every split of a set
    dropped: int = 0  # bad rows left out on request

    def __len__(self) -> int:
        return len(self.labels)


def read_sentences(source: str | Path, *, keep_empty: bool = False, drop_bad_rows: bool = False) -> LabelledSentences:
    """Read labelled sentences from one source; see ``load_rows``.

    It has a column ``sentence`` (or ``text``, ``sent``, ``question``) and a column ``label`` (or ``labels``,
    ``class``). ``keep_empty`` accepts empty sentences, which some published sets hold. DataError if the source cannot
    be read, a column is missing, a row is bad (unless such rows are dropped), or there are not two classes.
    """
    name = str(source)
    rows = list(load_rows(source))
    if not rows:
        raise DataError(f"{name}: there are no rows. Check that this is the right file.")
    text_column, label_column = _columns(rows, name)
    problems = []
    for number, cells in rows:
        problems += _problems(number, cells, text_column, label_column, keep_empty)
    if problems and not drop_bad_rows:
        raise bad_rows_error(name, problems, len(rows))
    bad = {problem.row for problem in problems}
    kept = [cells for number, cells in rows if number not in bad]
    texts = [str(cells[text_column]) for cells in kept]
    return labelled_sentences(texts, [_class_text(cells[label_column]) for cells in kept], name, dropped=len(bad))


def labelled_sentences(
    texts: Sequence[str], labels: Sequence[str], source: str, *, dropped: int = 0
) -> LabelledSentences:
    """Put the parts together; raises DataError if there are fewer than two classes."""
    classes = sorted(set(labels))
    if len(classes) < 2:
        raise DataError(
            f"{source}: there must be two classes or more; all {len(texts)} sentences are of "
            f"{', '.join(map(repr, classes)) or 'none'}. Check that the label column is the right one."
        )
    return LabelledSentences(texts=list(texts), labels=list(labels), dropped=dropped)


def _columns(rows: Sequence[Row], source: str) -> tuple[str, str]:
    names = list(dict.fromkeys(key for _, cells in rows for key in cells))
    spelled = spelled_names(names)
    text = first_of(SINGLE_NAMES, spelled)
    label = first_of(LABEL_NAMES, spelled)
    if text is None or label is None:
        raise DataError(
            f"{source}: labelled sentences need a text column ({', '.join(SINGLE_NAMES)}) and a label column "
            f"({', '.join(LABEL_NAMES)}); found {', '.join(names)}. Rename the columns, or add a header line."
        )
    return text, label


def _problems(number: int, cells: dict[str, object], text: str, label: str, keep_empty: bool) -> list[BadRow]:
    found = []
    wrong = text_problem(cells.get(text))
    if wrong and not (keep_empty and not str(cells.get(text)).strip()):
        found.append(BadRow(number, text, wrong, "give the sentence or delete the row"))
    if not _class_text(cells.get(label)):
        found.append(BadRow(number, label, f"{cells.get(label)!r} names no class", "give an integer or a class name"))
    return found


def _class_text(cell: object) -> str:
    """Return the name of a class; empty if the cell names none or hides it (``-`` and ``-1``)."""
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    if not isinstance(cell, (str, int)):
        return ""
    text = str(cell).strip()
    return "" if text in ("-", "-1") else text
