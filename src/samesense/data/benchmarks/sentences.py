"""Labelled single sentences: what a classifier on top of embeddings is trained and tested on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from samesense.data.formats.bad_rows import BadRow, bad_rows_error
from samesense.data.formats.files import Row, split_suffix
from samesense.data.formats.sources import load_rows
from samesense.errors import DataError
from samesense.files import rows_hash

TEXT_NAMES = ("sentence", "text", "sent", "question")
"""Accepted names of the text column, the preferred ones first."""

LABEL_NAMES = ("label", "labels", "class")
"""Accepted names of the label column, the preferred ones first."""


@dataclass(frozen=True, kw_only=True)
class LabelledSentences:
    """Sentences of one source with the class of each, in its order.

    Attributes:
        texts: the sentences.
        labels: the class of each, numbered from 0.
        classes: names of the classes 0, 1, ... as the source writes them.
        source: the file or name as the user gave it.
        name: short name for people.
        dropped: bad rows left out on request.
        sha256: fingerprint of the content in order; equal for equal content in any file format.
    """

    texts: list[str]
    labels: list[int]
    classes: tuple[str, ...]
    source: str
    name: str
    dropped: int
    sha256: str

    def __len__(self) -> int:
        return len(self.labels)

    def named(self) -> list[str]:
        """Return the name of the class of each sentence, which is the same in every split of a set."""
        return [self.classes[label] for label in self.labels]


def read_sentences(
    source: str | Path, *, keep_empty: bool = False, drop_bad_rows: bool = False, limit_reported: int = 5
) -> LabelledSentences:
    """Read labelled sentences from one source.

    Args:
        source: a file, a folder saved by ``datasets``, or a hub name; see ``load_rows``. It has a column
            ``sentence`` (or ``text``, ``sent``, ``question``) and a column ``label`` (or ``labels``, ``class``).
        keep_empty: accept empty sentences, which some published sets hold.
        drop_bad_rows: leave bad rows out and count them, instead of refusing the source.
        limit_reported: how many bad rows the error shows.

    Raises:
        DataError: if the source cannot be read, a column is missing, a row is bad, or there are not two classes.
        MissingExtraError: if ``datasets`` is needed and absent.
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
        raise bad_rows_error(name, problems, len(rows), limit_reported)
    bad = {problem.row for problem in problems}
    kept = [cells for number, cells in rows if number not in bad]
    texts = [str(cells[text_column]) for cells in kept]
    return labelled_sentences(texts, [_class_text(cells[label_column]) for cells in kept], name, dropped=len(bad))


def labelled_sentences(
    texts: Sequence[str], classes: Sequence[str], source: str, *, dropped: int = 0
) -> LabelledSentences:
    """Number the classes by their names in order, integers by size, and put the parts together.

    Args:
        texts: the sentences ``(n,)``.
        classes: the class of each ``(n,)``, by name.
        source: where they come from.
        dropped: rows left out before.

    Raises:
        DataError: if there are fewer than two classes.
    """
    names = sorted(set(classes), key=_class_order)
    if len(names) < 2:
        raise DataError(
            f"{source}: there must be two classes or more; all {len(texts)} sentences are of "
            f"{', '.join(map(repr, names)) or 'none'}. Check that the label column is the right one."
        )
    place = {name: number for number, name in enumerate(names)}
    return LabelledSentences(
        texts=list(texts),
        labels=[place[name] for name in classes],
        classes=tuple(names),
        source=source,
        name=Path(source).name if split_suffix(source)[0] else source,
        dropped=dropped,
        sha256=rows_hash(zip(texts, classes, strict=True)),
    )


def _columns(rows: Sequence[Row], source: str) -> tuple[str, str]:
    names = list(dict.fromkeys(key for _, cells in rows for key in cells))
    spelled = {name.strip().casefold(): name for name in reversed(names)}
    text = next((spelled[name] for name in TEXT_NAMES if name in spelled), None)
    label = next((spelled[name] for name in LABEL_NAMES if name in spelled), None)
    if text is None or label is None:
        raise DataError(
            f"{source}: labelled sentences need a text column ({', '.join(TEXT_NAMES)}) and a label column "
            f"({', '.join(LABEL_NAMES)}); found {', '.join(names)}. Rename the columns, or add a header line."
        )
    return text, label


def _problems(number: int, cells: dict[str, object], text: str, label: str, keep_empty: bool) -> list[BadRow]:
    found = []
    value = cells.get(text)
    if not isinstance(value, str):
        received = "nothing" if value is None else f"{type(value).__name__} {str(value)[:40]!r}"
        found.append(BadRow(number, text, f"a text is needed, received {received}", "give the sentence"))
    elif not keep_empty and not value.strip():
        found.append(BadRow(number, text, "the text is empty", "give the sentence or delete the row"))
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


def _class_order(name: str) -> tuple[bool, int, str]:
    return (False, int(name), "") if name.isascii() and name.isdigit() else (True, 0, name)
