"""Read the vector files that ``samesense encode`` writes, as float32, from any stored type."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from samesense.encoder.vectors.quantize import Quantizer
from samesense.errors import DataError
from samesense.parquet.table import ParquetTable
from samesense.types import Embeddings
from samesense.urls import is_file, open_file

if TYPE_CHECKING:
    import pyarrow as pa

METADATA = b"samesense.vectors"
"""Metadata key of a Parquet file for the quantizer of its vectors, if they are not floats."""

BESIDE = ".vectors.json"
"""Suffix of the file with the quantizer beside a matrix."""


def stored_rows(name: str | Path, quantizer: Quantizer | None = None) -> Embeddings:
    """Return the vectors of an ``.npy`` or a ``.parquet`` file, float32 ``(rows, dim)``.

    ``quantizer`` is used for a matrix of bytes, or else the one in the file beside it. DataError if there is neither.
    """
    if str(name).endswith(".parquet"):
        return _of_parquet(name)
    with open_file(name) as stream:
        rows = np.load(stream, allow_pickle=False)
    if rows.dtype != np.int8:
        return np.asarray(rows, dtype=np.float32)
    quantizer_path = f"{name}{BESIDE}"
    if quantizer is None and not is_file(quantizer_path):
        raise DataError(
            f"{name} holds bytes, and there is no {quantizer_path} that says how they are read. Put it there."
        )
    if quantizer is None:
        with open_file(quantizer_path) as stream:
            quantizer = Quantizer.from_json(stream.read(), quantizer_path)
    return quantizer.restore(rows)


def rows_of(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    """Return a column of vectors as it is stored, ``(rows, dim)``."""
    # pyarrow is loaded where vectors are read; importing this module is for their type.
    import pyarrow as pa

    combined = column.combine_chunks()
    if pa.types.is_fixed_size_list(combined.type) and combined.type.list_size:
        rows: npt.NDArray[Any] = combined.flatten().to_numpy().reshape(-1, combined.type.list_size)
        return rows
    return np.array(combined.to_pylist())


def _of_parquet(name: str | Path) -> Embeddings:
    import pyarrow as pa

    table = ParquetTable(name)
    if "embedding" not in table.names:
        raise DataError(f"{name}: the vectors stand in a column 'embedding'; it has {', '.join(table.names)}.")
    rows = rows_of(pa.chunked_array(list(table.column("embedding")), table.type_of("embedding")))
    if METADATA in table.metadata:
        return Quantizer.from_json(table.metadata[METADATA], str(name)).restore(rows)
    return np.asarray(rows, dtype=np.float32)
