"""What the readers of benchmarks in their original layouts share: lines, cells, labels and the data made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from samesense.data.benchmarks.sentences import LabelledSentences
from samesense.data.formats.labels import Kind
from samesense.data.formats.lines import read_lines
from samesense.data.formats.scale import Scale, to_number
from samesense.data.pairs.data import PairData, fingerprint
from samesense.errors import DataError

Loaded = PairData | LabelledSentences
Load = Callable[[], Loaded]

LabelledPair = tuple[str, str, float | None, str]
"""Two sentences, their label (``None`` where the source gives none), and the part they belong to."""


def pair_data(
    rows: Sequence[LabelledPair], source: str, scale: Scale, *, label_column: str = "score", dropped: int = 0
) -> PairData:
    """Put labelled pairs together; those without a label are left out and counted.

    Args:
        rows: the pairs in order.
        source: the file or folder they come from.
        scale: lowest and highest label.
        label_column: what the labels are called.
        dropped: rows left out before.

    Raises:
        DataError: if no pair has a label.
    """
    scored = [row for row in rows if row[2] is not None]
    if not scored:
        raise DataError(f"{source}: none of {len(rows)} pairs has a label. Check that these are the right files.")
    first, second = [row[0] for row in scored], [row[1] for row in scored]
    labels, parts = [row[2] or 0.0 for row in scored], [row[3] for row in scored]
    subsets = parts if any(parts) else None
    kind: Kind = "binary" if scale == (0, 1) else "scored"
    return PairData(
        sentences1=first,
        sentences2=second,
        labels=labels,
        subsets=subsets,
        kind=kind,
        scale=scale,
        source=source,
        label_column=label_column,
        dropped=dropped,
        dropped_unlabelled=len(rows) - len(scored),
        sha256=fingerprint(first, second, labels, subsets, kind),
    )


def label_number(cell: str, path: Path, row: int, scale: Scale) -> float:
    """Return the label in a cell.

    Raises:
        DataError: if it is no number on the scale.
    """
    number = to_number(cell)
    if number is None or not scale[0] <= number <= scale[1]:
        raise DataError(
            f"{path}, row {row}: a label is a number from {scale[0]:g} to {scale[1]:g}; received {cell[:40]!r}. "
            "Compare the file with its source."
        )
    return number


def latin1_lines(path: Path) -> list[str]:
    """Return the lines of a Latin-1 file; only a line feed ends a line.

    Raises:
        DataError: if the file cannot be read.
    """
    try:
        text = path.read_bytes().decode("latin-1")
    except OSError as error:
        raise DataError(f"{path}: this must be a readable file: {error}. Download the set again.") from error
    return text.removesuffix("\n").split("\n") if text else []


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Return the numbered lines of a UTF-8 file.

    Raises:
        DataError: if the file is absent or not UTF-8.
    """
    if not path.exists():
        raise DataError(f"{path}: this file belongs to the set and is absent. Download the set again.")
    return read_lines(path, zipped=False)


def cells_of(path: Path, fewest: int, *, header: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Return numbered rows of tab-separated cells, quotes being characters like any other.

    Args:
        path: a UTF-8 file.
        fewest: cells that a row must have; more are allowed.
        header: leave the first line out.

    Raises:
        DataError: if the file is absent, or a row has too few cells.
    """
    for number, line in lines_of(path):
        cells = line.rstrip("\r\n").split("\t")
        if header and number == 1:
            continue
        if len(cells) < fewest:
            raise DataError(
                f"{path}, row {number}: there must be {fewest} fields or more between tabs; this row has "
                f"{len(cells)}: {line.strip()[:60]!r}. Download the set again."
            )
        yield number, cells


def both_texts(path: Path, number: int, first: str, second: str) -> tuple[str, str]:
    """Return the two sentences of a row, white space tidied.

    Raises:
        DataError: if one is empty.
    """
    pair = spaced(first), spaced(second)
    if not all(pair):
        raise DataError(f"{path}, row {number}: a sentence of the pair is empty. Download the set again.")
    return pair


def spaced(text: str) -> str:
    """Return the text with runs of white space as one space."""
    return " ".join(text.split())
