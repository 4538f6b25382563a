"""Write vectors to files: as a matrix, or as rows of text, vector and kept columns."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from samesense.encoder.vectors.quantize import Quantizer
from samesense.encoder.vectors.stored import BESIDE, METADATA
from samesense.errors import ConfigError
from samesense.files import open_output, replacing
from samesense.inference.lines import json_line
from samesense.urls import delivered, is_url, local

if TYPE_CHECKING:
    import pyarrow as pa

Format = Literal["npy", "parquet", "jsonl"]
FORMATS: dict[str, Format] = {".npy": "npy", ".parquet": "parquet", ".jsonl": "jsonl"}


@dataclass(frozen=True)
class Encoded:
    """Texts with their vectors, quantized ``(texts, ...)``, the quantizer, and the columns kept beside them."""

    texts: Sequence[str]
    rows: npt.NDArray[Any]
    quantizer: Quantizer
    columns: pa.Table | None = None


def format_of(output: str, requested: Format | None) -> Format:
    """Return the format to write: the requested one, or that of the suffix, or JSON lines on standard output."""
    if requested is not None:
        chosen = requested
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
    """Raise ConfigError if a format does not support the kind of vectors or kept columns."""
    if form == "jsonl" and vectors != "float32":
        raise ConfigError(f"JSON lines hold numbers as text; received `vectors` {vectors}. Write Parquet or npy.")
    if form == "npy" and keep:
        raise ConfigError(f"npy is a matrix without columns; received `keep` {keep}. Write Parquet or JSON lines.")


def write_encoded(encoded: Encoded, output: str, form: Format) -> None:
    """Write one row a text, in order: an npy matrix, or kept columns, text and embedding in Parquet or JSON lines.

    A file is written completely or not at all; ``"-"`` is standard output, a URL is uploaded. The quantizer of int8
    vectors is stored in the metadata of Parquet, or in a file beside a matrix.
    """
    if is_url(output):
        # A store takes an object as a whole, so it is made in memory.
        content = io.BytesIO()
        write_rows(encoded, content, form)
        delivered(output, content.getvalue())
    else:
        with open_output(local(output)) as stream:
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
        if encoded.columns is not None:
            records = encoded.columns.to_pylist()
        else:
            records = [{}] * len(encoded.texts)
        for cells, text, row in zip(records, encoded.texts, encoded.rows, strict=True):
            # Nine digits are enough to read every float32 back.
            line = {**cells, "text": text, "embedding": [float(f"{value:.9g}") for value in row]}
            stream.write(json_line(line).encode() + b"\n")
    else:
        _parquet(encoded, stream)


def _parquet(encoded: Encoded, stream: IO[bytes]) -> None:
    # Loaded for Parquet alone.
    import pyarrow as pa
    import pyarrow.parquet as pq

    vectors = pa.FixedSizeListArray.from_arrays(pa.array(encoded.rows.reshape(-1)), encoded.rows.shape[1])
    columns = {}
    if encoded.columns is not None:
        columns = {name: encoded.columns[name] for name in encoded.columns.column_names}
    table = pa.table({**columns, "text": list(encoded.texts), "embedding": vectors})
    if encoded.rows.dtype == np.int8:
        table = table.replace_schema_metadata({METADATA: encoded.quantizer.to_json()})
    pq.write_table(table, stream)
