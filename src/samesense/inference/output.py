"""Vectors in files: a matrix, or rows of text, vector and what is kept beside them."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from samesense.data.formats.lines import json_line
from samesense.encoder.vectors.quantize import Quantizer
from samesense.encoder.vectors.stored import BESIDE, METADATA
from samesense.errors import ConfigError
from samesense.files import replacing
from samesense.urls import delivered, is_url, local

if TYPE_CHECKING:
    import pyarrow as pa

Format = Literal["npy", "parquet", "jsonl"]
FORMATS: dict[str, Format] = {".npy": "npy", ".parquet": "parquet", ".jsonl": "jsonl"}


@dataclass(frozen=True)
class Encoded:
    """Texts with their vectors, as they are stored ``(texts, ...)``, how that is, and columns kept beside them."""

    texts: Sequence[str]
    rows: npt.NDArray[Any]
    quantizer: Quantizer
    kept: pa.Table | None = None


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


def check_format(form: Format, vectors: str, keep: str | None) -> None:
    """Raise ConfigError if a format cannot hold what is asked for."""
    if form == "jsonl" and vectors != "float32":
        raise ConfigError(f"JSON lines hold numbers as text; received `vectors` {vectors}. Write Parquet or npy.")
    if form == "npy" and keep:
        raise ConfigError(f"npy is a matrix without columns; received `keep` {keep}. Write Parquet or JSON lines.")


def write_encoded(encoded: Encoded, output: str, form: Format) -> None:
    """Write one row a text, in order: npy matrix, or columns in Parquet or JSON lines, among them text and embedding.

    A file is there whole or not at all; ``"-"`` is standard output, and a URL goes to its store. How vectors are
    stored is said in the metadata of Parquet, and in a file beside a matrix, unless in floats.
    """
    if output == "-":
        write_rows(encoded, sys.stdout.buffer, form)
        sys.stdout.buffer.flush()
    elif is_url(output):
        content = io.BytesIO()
        write_rows(encoded, content, form)
        delivered(output, content.getvalue())
    else:
        with replacing(local(output)) as beside, beside.open("wb") as stream:
            write_rows(encoded, stream, form)
    if form == "npy" and output != "-" and encoded.rows.dtype == np.int8:
        _write(output + BESIDE, encoded.quantizer.to_json())


def _write(output: str, content: bytes) -> None:
    if is_url(output):
        delivered(output, content)
    else:
        with replacing(local(output)) as beside:
            beside.write_bytes(content)


def write_rows(encoded: Encoded, stream: IO[bytes], form: Format) -> None:
    """Write one row a text to an open file; see :func:`write_encoded`."""
    if form == "npy":
        np.save(stream, encoded.rows)
    elif form == "jsonl":
        columns = encoded.kept.to_pylist() if encoded.kept is not None else [{}] * len(encoded.texts)
        for cells, text, row in zip(columns, encoded.texts, encoded.rows, strict=True):
            line = {**cells, "text": text, "embedding": [float(f"{value:.9g}") for value in row]}
            stream.write(json_line(line).encode() + b"\n")
    else:
        _parquet(encoded, stream)


def _parquet(encoded: Encoded, stream: IO[bytes]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    vectors = pa.FixedSizeListArray.from_arrays(pa.array(encoded.rows.reshape(-1)), encoded.rows.shape[1])
    columns = {} if encoded.kept is None else {name: encoded.kept[name] for name in encoded.kept.column_names}
    table = pa.table({**columns, "text": list(encoded.texts), "embedding": vectors})
    if encoded.rows.dtype == np.int8:
        table = table.replace_schema_metadata({METADATA: encoded.quantizer.to_json()})
    pq.write_table(table, stream)
