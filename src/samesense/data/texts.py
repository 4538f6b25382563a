"""Texts without labels, from any file: what a map of the embeddings is fitted on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from samesense.data.columns import NEGATIVE_NAMES, TEXT_PAIRS
from samesense.data.files import Row, missing_file, split_suffix
from samesense.data.lines import read_lines
from samesense.data.sources import load_rows
from samesense.errors import DataError

SINGLE_NAMES = ("sentence", "text", "sent", "question")
"""Accepted names of a column that holds the only text of its row, the preferred ones first."""


def unlabelled_texts(source: str | Path) -> list[str]:
    """Return every text of a source in its order, repeated ones as often as they come; empty ones are left out.

    Args:
        source: a text file with one text a line (``.txt`` or any ending that is not known, also ``.gz``); or what
            ``load_rows`` reads, of which all columns named as texts of pairs, triples or single sentences count.

    Raises:
        DataError: if there is no such source, no column of texts, or no text.
    """
    name = str(source)
    if split_suffix(name)[0] or not Path(source).expanduser().is_file():
        if name.removesuffix(".gz").endswith(".txt"):
            raise missing_file(name)
        texts = list(_cells(load_rows(source), name))
    else:
        path = Path(source).expanduser()
        texts = [line.rstrip("\r\n") for _, line in read_lines(path, name.endswith(".gz"))]
    texts = [text for text in texts if text.strip()]
    if not texts:
        raise DataError(f"{name} holds no text. Give a file with one text a line, or with columns of texts.")
    return texts


def _cells(rows: Iterator[Row], source: str) -> Iterator[str]:
    columns: list[str] | None = None
    for number, cells in rows:
        if columns is None:
            columns = _text_columns(list(cells), source)
        for column in columns:
            value = cells.get(column)
            if value is not None and not isinstance(value, str):
                raise DataError(
                    f"{source}, row {number}, column {column!r}: a text is needed, received {type(value).__name__}."
                )
            yield value or ""


def _text_columns(names: list[str], source: str) -> list[str]:
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
