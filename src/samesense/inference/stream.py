"""Encode a file line by line into vectors on disk, in the order of the file."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal

import numpy as np

from samesense.data.formats.blocks import LINE_END
from samesense.data.formats.files import SUFFIXES, leads_to, split_suffix
from samesense.data.formats.lines import numbered_lines, read_lines
from samesense.data.sentences import one_text_a_row
from samesense.encoder.cosine import checked_rows, nonzero_rows
from samesense.errors import ConfigError, DataError
from samesense.execution.progress import progress_bar
from samesense.files import replacing
from samesense.inference.search.exact import unit_rows
from samesense.types import Embeddings
from samesense.urls import is_file, is_url

if TYPE_CHECKING:
    from samesense.inference.models.model import Model

Format = Literal["npy", "parquet", "jsonl"]
FORMATS: dict[str, Format] = {".npy": "npy", ".parquet": "parquet", ".jsonl": "jsonl"}

BLOCK_TEXTS = 16384
"""Texts encoded and written at once."""


def format_of(output: str, wanted: Format | None) -> Format:
    """Return the format to write: the one asked for, else the one of the suffix; JSON lines on standard output."""
    if wanted is not None:
        chosen = wanted
    elif output == "-":
        chosen = "jsonl"
    elif Path(output).suffix in FORMATS:
        chosen = FORMATS[Path(output).suffix]
    else:
        raise ConfigError(f"`output` must end in {', '.join(FORMATS)}, or `format` must say one; received {output!r}.")
    if output == "-" and chosen != "jsonl" and sys.stdout.isatty():
        raise ConfigError(
            f"{chosen} is binary and standard output is a terminal. Give `output` FILE, or `format` jsonl."
        )
    return chosen


def read_texts(source: str, columns: str | None = None) -> list[str]:
    """Return the texts of a source in order, none of them empty.

    Args:
        source: text file (plain or .gz) or ``"-"`` for standard input, one text a line; or a table, one text a row:
            what :func:`~samesense.data.load_rows` reads, of the hub with its split, ``owner/name:split``.
        columns: name of the column of a table.
    """
    if is_table(source):
        return one_text_a_row(source, columns)
    if columns is not None:
        raise ConfigError(f"`columns` is for tables ({', '.join(SUFFIXES)}); {source} holds one text a line.")
    return [line.rstrip(LINE_END) for line in checked_lines(source)]


def is_table(source: str) -> bool:
    """Return whether a source has columns, and is no text file or standard input."""
    named = ":" in source and not is_url(source) and not leads_to(source, Path.is_file)
    return source != "-" and (bool(split_suffix(source)[0]) or leads_to(source, Path.is_dir) or named)


def checked_lines(source: str) -> Iterator[str]:
    """Yield the lines of a text file (plain or .gz), or of standard input for ``"-"``, with their ends."""
    name = "standard input" if source == "-" else source
    number = 0
    for number, line in _numbered(source, name):
        check_line(line, name, number)
        yield line
    if not number:
        raise DataError(f"{name} holds no text; one text a line is needed.")


def check_line(line: str, name: str, number: int) -> None:
    """Raise DataError for a line without a text, of a file or what messages call it."""
    if not line.strip():
        raise DataError(
            f"Every line must hold a text; {name}, row {number}, is empty. Remove it, so that rows stay aligned."
        )


def _numbered(source: str, name: str) -> Iterator[tuple[int, str]]:
    if source == "-":
        return numbered_lines(sys.stdin.buffer, name)
    there = is_file(source) if is_url(source) else leads_to(source, Path.is_file)
    if not there:
        raise DataError(
            f"There is no file {source}. Give a text file with one text a line, a table ({', '.join(SUFFIXES)}), or - "
            "for standard input."
        )
    return read_lines(source, split_suffix(source)[1])


def write_embeddings(embeddings: Embeddings, texts: Iterable[str], output: str, form: Format) -> None:
    """Write one row a text, in order: npy matrix, or ``text`` and ``embedding`` columns in Parquet or JSON lines.

    A file is written beside its place and renamed, so that it is there whole or not at all.
    """
    if output == "-":
        write_rows(embeddings, texts, sys.stdout.buffer, form)
        sys.stdout.buffer.flush()
        return
    with replacing(output) as beside, beside.open("wb") as stream:
        write_rows(embeddings, texts, stream, form)


def write_rows(embeddings: Embeddings, texts: Iterable[str], stream: IO[bytes], form: Format) -> None:
    """Write one row a text to an open file; see :func:`write_embeddings`."""
    if form == "npy":
        np.save(stream, embeddings)
    elif form == "jsonl":
        for text, row in zip(texts, embeddings, strict=True):
            line = json.dumps({"text": text, "embedding": [float(f"{value:.9g}") for value in row]}, ensure_ascii=False)
            stream.write(line.encode() + b"\n")
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        vectors = pa.FixedSizeListArray.from_arrays(pa.array(embeddings.reshape(-1)), embeddings.shape[1])
        pq.write_table(pa.table({"text": list(texts), "embedding": vectors}), stream)


def encode_with_bar(model: Model, texts: list[str], *, normalize: bool) -> Embeddings:
    """Return the embeddings of ``texts`` while a bar shows how far it is; ModelError if a number is not finite."""
    with progress_bar("encode", "text", len(texts)) as bar:
        rows = model.encode(texts, normalize=normalize, on_progress=bar.update)
    checked_rows(rows, texts)
    return rows


def write_unit_vectors(model: Model, texts: Sequence[str], path: Path) -> int:
    """Write the vectors of texts to a file of bare float32, scaled to unit length, and return how long each is.

    They are encoded block by block. ModelError if a vector is not finite or all zeros.
    """
    dim = 0
    with progress_bar("encode", "text", len(texts)) as bar, replacing(path) as beside, beside.open("wb") as stream:
        for start in range(0, len(texts), BLOCK_TEXTS):
            block = list(texts[start : start + BLOCK_TEXTS])
            rows = np.asarray(model.encode(block, normalize=True, on_progress=bar.update))
            unit = unit_rows(nonzero_rows(checked_rows(rows, block), block))
            stream.write(unit.tobytes())
            dim = unit.shape[1]
    return dim
