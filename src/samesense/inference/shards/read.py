"""Read the vectors of a folder of shards."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from samesense.encoder.vectors.quantize import Quantizer
from samesense.encoder.vectors.stored import stored_rows
from samesense.errors import DataError
from samesense.execution.shards.folders import folder_at
from samesense.execution.shards.job import MANIFEST, SHARDS
from samesense.inference.shards.encode import VECTORS
from samesense.types import Embeddings


def read_shards(location: str | Path) -> Embeddings:
    """Return the vectors of a folder of shards, float32 ``(texts, dim)``, in order; DataError if it is not finished."""
    folder = folder_at(location)
    manifest = folder.json(MANIFEST) if folder.exists(MANIFEST) else {}
    if manifest.get("method") != "encode" or manifest.get("status") != "finished":
        raise DataError(f"{location} holds no finished shards of samesense encode. Give its command again to go on.")
    stored = folder.read(VECTORS)
    quantizer = Quantizer.from_json(stored, str(folder.path(VECTORS))) if stored else None
    # Only the name, as the manifest must not lead out of the folder.
    names = [f"{SHARDS}/{Path(shard['file']).name}" for shard in manifest["shards"]]
    return np.concatenate([stored_rows(folder.path(name), quantizer) for name in names])
