"""What the shards of a file were made of, and what they are: their manifest and their history."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from samesense.errors import DataError, OutputError
from samesense.execution.shards import Shards
from samesense.execution.versions import installed_versions
from samesense.files import append_json, content_hash, is_empty, read_json, read_json_lines, text_hash, write_json
from samesense.inference.collection.embedder import Embedder
from samesense.inference.shards.input import Input
from samesense.inference.shards.work import Encoded

MANIFEST = "manifest.json"
HISTORY = "history.jsonl"
METHOD = "encode"
_LIBRARIES = ("samesense", "numpy", "onnxruntime", "tokenizers", "torch", "transformers", "sentence-transformers")
_NAMES = ("name",)
"""What is noted for people, and may be another one."""


class Record:
    """The manifest and history in a folder of shards.

    Args:
        folder: of the shards.

    Raises:
        OutputError: if something else is in it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known = read_json(folder / MANIFEST) if (folder / MANIFEST).exists() else None
        foreign = self._known.get("method") != METHOD if self._known else folder.exists() and not is_empty(folder)
        if foreign:
            raise OutputError(f"{folder} holds something else than the shards of a file. Choose another output folder.")

    def check(self, part: str, content: Mapping[str, Any]) -> None:
        """Raise if one part of the manifest, where there is one, says anything else.

        Raises:
            OutputError: says what differs.
        """
        if self._known is None:
            return
        before = self._known[part]
        keys = sorted(key for key in before.keys() | content.keys() if before.get(key) != content.get(key))
        differing = [f"{key} was {before.get(key)!r} and is {content.get(key)!r}" for key in keys if key not in _NAMES]
        if differing:
            raise OutputError(
                f"{self._folder} holds shards with another {part}: {'; '.join(differing)}. Give the same to go on, or "
                "choose another output folder."
            )

    def begin(self, parts: Mapping[str, Mapping[str, Any]]) -> None:
        """Write the manifest, unless it is there."""
        if self._known is None:
            started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            self._known = {
                "method": METHOD,
                **parts,
                "versions": installed_versions(_LIBRARIES),
                "started": started,
                "status": "running",
            }
            write_json(self._folder / MANIFEST, self._known)

    def note(self, shard: int, encoded: Encoded) -> None:
        """Add a line on a shard that was just written."""
        digest = content_hash([encoded.content])
        line = {"shard": shard, "rows": encoded.rows, "sha256": digest, "seconds": round(encoded.seconds, 3)}
        append_json(self._folder / HISTORY, line)

    def finish(self, shards: Shards, source: Input, form: Literal["npy", "parquet"]) -> int:
        """List all shards in the manifest and return the numbers of a vector.

        Raises:
            DataError: if a shard is damaged.
        """
        noted, entries, dims = self._noted(), [], set()
        for shard, part in enumerate(source.parts):
            path = shards.path(shard)
            rows, dim = shape_of(path, form)
            if rows != part.rows:
                raise DataError(f"{path} must hold {part.rows} vectors and holds {rows}. {_ANEW}")
            dims.add(dim)
            entries.append({"file": path.name, "rows": rows, "sha256": noted.get(shard) or content_hash([path])})
        if len(dims) != 1:
            raise DataError(f"The shards in {self._folder} are of different widths: {sorted(dims)}. Delete the folder.")
        dim = dims.pop()
        write_json(
            self._folder / MANIFEST, {**(self._known or {}), "status": "finished", "dim": dim, "shards": entries}
        )
        return int(dim)

    def _noted(self) -> dict[int, str]:
        """Return the hash of each shard that was noted."""
        return {entry["shard"]: entry["sha256"] for entry in read_json_lines(self._folder / HISTORY)}


_ANEW = "Delete it and give the same command; it will be made anew."


def input_part(source: Input) -> dict[str, Any]:
    """Return an input as the manifest says it."""
    return {"name": Path(source.path).name, "bytes": source.size, "rows": source.rows, "sha256": source.sha256}


def model_part(name: str, embedder: Embedder) -> dict[str, Any]:
    """Return a model as the manifest says it."""
    identity = text_hash(embedder.identity)
    return {"name": name, "identity": identity, "precision": embedder.precision}


def shape_of(path: Path, form: Literal["npy", "parquet"]) -> tuple[int, int]:
    """Return rows and width of a shard, reading its header or footer alone.

    Raises:
        DataError: if it cannot be read.
    """
    try:
        if form == "npy":
            rows, dim = np.load(path, mmap_mode="r", allow_pickle=False).shape
            return int(rows), int(dim)
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as file:
            return file.metadata.num_rows, file.schema_arrow.field("embedding").type.list_size
    except (OSError, ValueError, EOFError, KeyError, AttributeError) as error:
        raise DataError(f"{path} is no whole shard ({error}). {_ANEW}") from error
