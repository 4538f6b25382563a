"""What the readers of benchmarks in their original layouts share: lines, cells, labels and the data made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from samesense.data.benchmarks.sentences import LabelledSentences
from samesense.data.formats.delimited import read_lines
from samesense.data.formats.labels import Scale, to_number
from samesense.data.pairs.data import PairData
from samesense.errors import DataError

Loaded = PairData | LabelledSentences
Load = Callable[[], Loaded]

LabelledPair = tuple[str, str, float | None, str]
"""Two sentences, their label (``None`` where the source gives none), and the part they belong to."""


def pair_data(rows: Sequence[LabelledPair], source: str, scale: Scale, *, dropped: int = 0) -> PairData:
    """Put labelled pairs together; those without a label are left out and counted."""
    scored = [row for row in rows if row[2] is not None]
    if not scored:
        raise DataError(f"{source}: none of {len(rows)} pairs has a label. Check that these are the right files.")
    parts = [row[3] for row in scored]
    return PairData(
        sentences1=[row[0] for row in scored],
        sentences2=[row[1] for row in scored],
        labels=[row[2] or 0.0 for row in scored],
        subsets=parts if any(parts) else None,
        kind="binary" if scale == (0, 1) else "scored",
        scale=scale,
        source=source,
        label_column="score",
        dropped=dropped,
        dropped_unlabelled=len(rows) - len(scored),
    )


def labelled_pair(
    path: Path, row: int, first: str, second: str, label: str, scale: Scale, subset: str = "", gold: Path | None = None
) -> LabelledPair:
    """Return a row with white space tidied, ``None`` for an empty label; DataError if a text or the label is bad.

    ``gold`` is the file of the labels, where they have one of their own.
    """
    texts = spaced(first), spaced(second)
    if not all(texts):
        raise DataError(f"{path}, row {row}: a sentence of the pair is empty. Download the set again.")
    number = to_number(label)
    if label and (number is None or not scale[0] <= number <= scale[1]):
        raise DataError(
            f"{gold or path}, row {row}: a label is a number from {scale[0]:g} to {scale[1]:g}; received "
            f"{label[:40]!r}. Compare the file with its source."
        )
    return *texts, number, subset


def latin1_lines(path: Path) -> list[str]:
    """Return the lines of a Latin-1 file; only a line feed ends a line."""
    try:
        text = path.read_bytes().decode("latin-1")
    except OSError as error:
        raise DataError(f"{path}: this must be a readable file: {error}. Download the set again.") from error
    return text.removesuffix("\n").split("\n") if text else []


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Return the numbered lines of a UTF-8 file."""
    if not path.exists():
        raise DataError(f"{path}: this file belongs to the set and is absent. Download the set again.")
    return read_lines(path, zipped=False)


def cells_of(path: Path, fewest: int, *, header: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Return numbered rows of tab-separated cells, quotes being characters like any other."""
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


def spaced(text: str) -> str:
    """Return the text with runs of white space as one space."""
    return " ".join(text.split())
