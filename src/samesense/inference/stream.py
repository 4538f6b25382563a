"""Read the texts of a source, in order, and encode them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from samesense.data.rows.blocks import LINE_END
from samesense.data.rows.columns import warn_left_out
from samesense.data.rows.sources import leads_to, names_in
from samesense.data.rows.text import SUFFIXES, read_lines, split_suffix, standard_input, without_blank_end
from samesense.data.sentences import read_text_column, read_text_rows, usable_positions
from samesense.encoder.cosine import checked_rows, nonzero_rows
from samesense.encoder.windows import Chunk, describe_windows
from samesense.errors import ConfigError, DataError
from samesense.execution.progress import progress_bar
from samesense.files import replacing
from samesense.inference.search.exact import unit_rows
from samesense.types import Embeddings, TaskName
from samesense.urls import is_file, is_url

if TYPE_CHECKING:
    from samesense.encoder.embedding_cache import Unfinished
    from samesense.inference.models.model import Model

logger = logging.getLogger(__name__)

BLOCK_TEXTS = 16384
"""Number of texts encoded and written at once."""


def read_texts(source: str, columns: str | None = None) -> list[str]:
    """Return the texts of a source in order, none of them empty.

    Args:
        source: text file (plain or compressed), or ``"-"`` for standard input, one text a line; or a table that
            :func:`~samesense.data.load_rows` reads, such as a data set of the hub, ``owner/name:split``.
        columns: name of the column of texts in a table.
    """
    if is_table(source):
        return read_text_column(source, columns)
    refuse_columns(source, columns)
    return [line.rstrip(LINE_END) for line in checked_lines(source)]


class Usable(NamedTuple):
    """The usable texts of a source.

    Attributes:
        texts: the texts.
        indices: index of each text's row, from 0.
        rows: number of rows.
        columns: names of all columns.
    """

    texts: list[str]
    indices: list[int]
    rows: int
    columns: list[str]


def read_usable(source: str, columns: str | None = None, *, drop_bad_rows: bool = False) -> Usable:
    """Return the texts of a source as :func:`read_texts` reads it; ``drop_bad_rows`` leaves out rows without one."""
    if is_table(source):
        rows, column = read_text_rows(source, columns)
        indices = usable_positions(rows, column, source, drop_bad_rows=drop_bad_rows)
        return Usable([str(rows[index][1][column]) for index in indices], indices, len(rows), names_in(rows))
    refuse_columns(source, columns)
    lines = [line.rstrip(LINE_END) for line in checked_lines(source, drop_bad_rows=drop_bad_rows)]
    indices = [index for index, line in enumerate(lines) if line.strip()]
    warn_left_out(_called(source), [index + 1 for index, line in enumerate(lines) if not line.strip()], len(lines))
    return Usable([lines[index] for index in indices], indices, len(lines), ["text"])


def is_table(source: str) -> bool:
    """Return whether a source is a table, not a text file or standard input."""
    has_column = ":" in source and not is_url(source) and not leads_to(source, Path.is_file)
    return source != "-" and (bool(split_suffix(source)[0]) or leads_to(source, Path.is_dir) or has_column)


def refuse_columns(source: str, columns: str | None, keep: str | None = None) -> None:
    """Raise ConfigError if columns are given for a text file, which has none."""
    for name, value in (("columns", columns), ("keep", keep)):
        if value:
            raise ConfigError(f"`{name}` is for tables ({', '.join(SUFFIXES)}); {source} holds one text a line.")


def _called(source: str) -> str:
    return "standard input" if source == "-" else source


def checked_lines(source: str, *, drop_bad_rows: bool | None = None) -> Iterator[str]:
    """Yield the lines of a text file (plain or compressed), or of standard input for ``"-"``, with their line ends.

    Blank lines at the end are left out. DataError for another blank line, unless ``drop_bad_rows``; ``None`` if the
    caller has no such option.
    """
    name = _called(source)
    number = 0
    for number, line in _numbered(source):
        if not drop_bad_rows:
            check_line(line, name, number, can_drop=drop_bad_rows is not None)
        yield line
    if not number:
        raise DataError(f"{name} holds no text; one text a line is needed.")


def check_line(line: str, name: str, number: int, *, can_drop: bool = False) -> None:
    """Raise DataError for a blank line; ``name`` and ``number`` locate it in the message."""
    if not line.strip():
        fix = ", or leave such lines out with `drop_bad_rows`." if can_drop else ", so that rows stay aligned."
        raise DataError(f"Every line must hold a text; {name}, row {number}, is empty. Remove it{fix}")


def _numbered(source: str) -> Iterator[tuple[int, str]]:
    if source == "-":
        return without_blank_end(standard_input())
    exists = is_file(source) if is_url(source) else leads_to(source, Path.is_file)
    if not exists:
        raise DataError(
            f"There is no file {source}. Give a text file with one text a line, a table ({', '.join(SUFFIXES)}), or - "
            "for standard input; from Python, texts are given in a list."
        )
    return without_blank_end(read_lines(source))


def encode_with_bar(
    model: Model, texts: list[str], *, normalize: bool, chunk: Chunk | None = None, task: TaskName | None = None
) -> Embeddings:
    """Return the embeddings of ``texts``, with a progress bar; ModelError if a number is not finite.

    ``chunk`` says how the windows of a text longer than the model reads are combined, which is logged; ``task`` whether
    the texts are queries or documents, if the model distinguishes them.
    """
    if chunk is not None:
        windows = model.windows(texts, task)
        logger.info(describe_windows(windows.figures, len(texts), chunk))
        return windows.join(encode_with_bar(model, windows.texts, normalize=normalize, task=task), chunk)
    with progress_bar("encode", "text", len(texts)) as bar:
        rows = model.encode(texts, normalize=normalize, on_progress=bar.update, task=task)
    checked_rows(rows, texts)
    return rows


def _blocks(texts: int, queries: int | None) -> Iterator[tuple[int, int, TaskName | None]]:
    """Yield start, end and task of blocks of texts; with ``queries``, no block has both queries and documents."""
    sections: list[tuple[int, int, TaskName | None]] = [(0, texts, None)]
    if queries is not None:
        sections = [(0, queries, "query"), (queries, texts, "document")]
    for first, last, task in sections:
        for start in range(first, last, BLOCK_TEXTS):
            yield start, min(last, start + BLOCK_TEXTS), task


def _encode(
    model: Model, texts: list[str], chunk: Chunk | None, task: TaskName | None, on_progress: Callable[[int], None]
) -> Embeddings:
    """Return the embeddings of texts, with ``chunk`` from the windows of long ones."""
    if chunk is None:
        return model.encode(texts, normalize=True, on_progress=on_progress, task=task)
    windows = model.windows(texts, task)
    return windows.join(model.encode(windows.texts, normalize=True, task=task), chunk)


def write_unit_vectors(
    model: Model,
    texts: Sequence[str],
    path: Path,
    unfinished: Unfinished | None = None,
    chunk: Chunk | None = None,
    queries: int | None = None,
) -> int:
    """Write the unit vectors of texts to a file of raw float32, and return their dimensions.

    They are encoded block by block, unless they are in ``unfinished``; for ``chunk`` see :func:`encode_with_bar`. The
    first ``queries`` texts are queries and the others documents; ``None`` if the model does not distinguish them.
    ModelError if a vector is not finite or all zeros.
    """
    dim = 0
    with progress_bar("encode", "text", len(texts)) as bar, replacing(path) as beside, beside.open("wb") as stream:

        def encode(block: list[str], task: TaskName | None = None) -> Embeddings:
            rows = np.asarray(_encode(model, block, chunk, task, bar.update))
            return unit_rows(nonzero_rows(checked_rows(rows, block), block))

        for start, end, task in _blocks(len(texts), queries):
            block = list(texts[start:end])
            run = partial(encode, task=task)
            whole = len(block) == BLOCK_TEXTS
            cached = None if task == "query" else unfinished  # the cache is keyed by text, without the task
            unit = run(block) if cached is None else cached.rows(block, run, keep=whole)
            stream.write(unit.tobytes())
            dim = unit.shape[1]
            bar.update(start + len(block) - bar.n)  # the cached ones
    return dim
