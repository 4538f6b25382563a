"""Vectors read back from the files that ``samesense encode`` writes, as float32, whatever they are stored in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from samesense.encoder.vectors.quantize import Quantizer
from samesense.errors import DataError
from samesense.parquet import ParquetTable
from samesense.types import Embeddings
from samesense.urls import is_file, open_file

if TYPE_CHECKING:
    import pyarrow as pa

METADATA = b"samesense.vectors"
"""Where a Parquet file says how its vectors are stored, if not in floats."""

BESIDE = ".vectors.json"
"""End of the name of the file that says it beside a matrix."""


def stored_rows(name: str | Path, quantizer: Quantizer | None = None) -> Embeddings:
    """Return the vectors of an ``.npy`` or a ``.parquet`` file, float32 ``(rows, dim)``.

    ``quantizer`` says how a matrix of bytes is stored where no file beside it does. DataError if nothing says it.
    """
    if str(name).endswith(".parquet"):
        return _of_parquet(name)
    with open_file(name) as stream:
        rows = np.load(stream, allow_pickle=False)
    if rows.dtype != np.int8:
        return np.asarray(rows, dtype=np.float32)
    beside = f"{name}{BESIDE}"
    if quantizer is None and not is_file(beside):
        raise DataError(f"{name} holds bytes, and there is no {beside} that says how they are read. Put it there.")
    if quantizer is None:
        with open_file(beside) as stream:
            quantizer = Quantizer.from_json(stream.read(), beside)
    return quantizer.restore(rows)


def rows_of(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    """Return a column of vectors as it is stored, ``(rows, dim)``."""
    import pyarrow as pa

    whole = column.combine_chunks()
    width = whole.type.list_size if pa.types.is_fixed_size_list(whole.type) else 0
    return whole.flatten().to_numpy().reshape(-1, width) if width else np.array(whole.to_pylist())


def _of_parquet(name: str | Path) -> Embeddings:
    import pyarrow as pa

    table = ParquetTable(name)
    if "embedding" not in table.names:
        raise DataError(f"{name}: the vectors stand in a column 'embedding'; it has {', '.join(table.names)}.")
    rows = rows_of(pa.chunked_array(list(table.column("embedding")), table.type_of("embedding")))
    if METADATA in table.metadata:
        return Quantizer.from_json(table.metadata[METADATA], str(name)).restore(rows)
    return np.asarray(rows, dtype=np.float32)
