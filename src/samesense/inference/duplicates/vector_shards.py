"""The unit vectors of a work folder, encoded by many workers in shards that can be resumed.

    sharded/texts.jsonl   the texts, which workers read
    sharded/vectors/      a folder of shards, see :mod:`samesense.inference.shards.encode`

Models that tell queries from documents have two of each, such as ``texts-query.jsonl``. All are removed once the
vectors are in one file.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from samesense.choices import Chunk
from samesense.data.rows.table_options import table_options
from samesense.encoder.cosine import nonzero_rows
from samesense.execution.shards.job import MANIFEST
from samesense.execution.shards.tasks import Executor
from samesense.files import read_json, replacing, write_lines
from samesense.inference.encode import BLOCK_TEXTS
from samesense.inference.search.exact import unit_rows
from samesense.inference.shards.encode import ShardSettings, encode_shards
from samesense.types import Embeddings, Precision, TaskName

SHARDED = "sharded"
"""Subfolder of a work folder with the unfinished stages of many workers."""

VECTOR_SHARDS = "vectors"
LIST_SHARDS = "lists"
LINK_SHARDS = "links"
TEXTS = "texts"


@dataclass(frozen=True)
class Sharing:
    """How the work is shared.

    Attributes:
        executor: does the tasks.
        model: name by which every worker opens the model.
        precision: arithmetic of the model.
    """

    executor: Executor
    model: str
    precision: Precision = "auto"


def write_vectors_by_shards(
    sharing: Sharing, texts: Sequence[str], path: Path, chunk: Chunk | None, queries: int | None = None
) -> int:
    """Write the unit vectors of texts to a file of raw float32 in a work folder, and return their dimensions.

    Finished shards are kept in :data:`SHARDED` of the folder, so that the same call resumes. The first ``queries``
    texts are queries and the others documents; ``None`` if the model does not distinguish them. OutputError if the
    shards are of other texts, another model or other settings; ModelError if a vector is not finite or all zeros.
    """
    sections: list[tuple[Sequence[str], TaskName | None]] = [(texts, None)]
    if queries is not None:
        sections = [(texts[:queries], "query"), (texts[queries:], "document")]
    dim = 0
    with replacing(path) as beside, beside.open("wb") as stream:
        for section, task in sections:
            for start, rows in _encoded(sharing, section, path.parent / SHARDED, chunk, task):
                dim = rows.shape[1]
                stream.write(unit_rows(nonzero_rows(rows, section[start : start + len(rows)])).tobytes())
    return dim


def _encoded(
    sharing: Sharing, texts: Sequence[str], folder: Path, chunk: Chunk | None, task: TaskName | None
) -> Iterator[tuple[int, Embeddings]]:
    """Encode texts by many workers, and yield their vectors shard by shard, each with the number of its first text."""
    ending = f"-{task}" if task else ""
    texts_path = folder / f"{TEXTS}{ending}.jsonl"
    shards = folder / f"{VECTOR_SHARDS}{ending}"
    write_lines(texts_path, (f"{json.dumps({'text': text})}\n" for text in texts))
    settings = ShardSettings(
        shard_size=BLOCK_TEXTS, normalize=True, chunk=chunk, precision=sharing.precision, task=task
    )
    # The options of the user's file do not hold for this one.
    with table_options():
        summary = encode_shards(sharing.model, [str(texts_path.resolve())], shards, settings, sharing.executor)
    for shard in range(summary.shards):
        yield shard * BLOCK_TEXTS, np.load(shards / "shards" / f"{shard:05d}.npy")


def remove_vector_shards(folder: Path) -> None:
    """Remove the shards of vectors from a work folder, whose vectors are in one file by now."""
    for path in (folder / SHARDED).glob(f"{TEXTS}*.jsonl"):
        path.unlink(missing_ok=True)
    for path in (folder / SHARDED).glob(f"{VECTOR_SHARDS}*"):
        shutil.rmtree(path, ignore_errors=True)


def remove_shards(folder: Path) -> None:
    """Remove all shards from a work folder, which is finished by now."""
    shutil.rmtree(folder / SHARDED, ignore_errors=True)


def remove_shards_of(folder: Path, floor: float) -> None:
    """Remove the shards of finished links with this floor, which a process left that was killed before it did."""
    manifest = folder / SHARDED / LINK_SHARDS / MANIFEST
    if manifest.exists() and read_json(manifest).get("settings", {}).get("floor") == floor:
        remove_shards(folder)
