"""The approximate index of a collection: when it is made, and what is measured of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from samesense.files import sync_file
from samesense.inference.collection.manifest import GraphNote, Manifest
from samesense.inference.collection.segment import Segment
from samesense.inference.collection.state import State
from samesense.inference.search.exact import Block
from samesense.inference.search.hnsw import Graph, has_usearch, tune

AUTO_ROWS = 200_000
"""Texts from which on an approximate index is made unless forbidden."""

RECALL = 0.95
"""Recall@10 up to which its search is widened."""


def with_graph(folder: Path, manifest: Manifest) -> Manifest:
    """Return the manifest with an approximate index over all its segments, if one is due; it is written here.

    It is due if it is wanted and there is none, or if more rows are outside the one there is than in it.
    """
    if not _due(manifest):
        return manifest
    state = State(folder, manifest, with_graph=False)
    graph = Graph.build(_rows(state.segments), manifest.dim, half=manifest.dtype == "float16")
    recall, queries = tune(
        graph,
        lambda rows: _take(state.segments, rows),
        lambda: _rows(state.segments),
        sum(note.rows for note in manifest.segments),
        RECALL,
    )
    path = folder / f"graph-{manifest.generation:06d}.usearch"
    graph.save(path)
    sync_file(path)
    note = GraphNote(
        file=path.name,
        segments=tuple(one.name for one in manifest.segments),
        expansion=graph.expansion,
        recall=recall,
        queries=queries,
    )
    return manifest.model_copy(update={"graph": note})


def search_words(manifest: Manifest) -> str:
    """Say in words how a collection is searched, and why."""
    if manifest.graph is not None:
        covered = set(manifest.graph.segments)
        outside = sum(note.rows - note.deleted for note in manifest.segments if note.name not in covered)
        tail = f"; {outside} later texts are searched exactly" if outside else ""
        return (
            f"approximate, recall@10 {manifest.graph.recall:.3f} on {manifest.graph.queries} sampled texts "
            f"with expansion {manifest.graph.expansion}{tail}"
        )
    if manifest.approximate == "auto" and manifest.live >= AUTO_ROWS:
        return "exact; so many texts are searched faster with pip install 'samesense[search]' and index compact"
    return "exact"


def _due(manifest: Manifest) -> bool:
    rows = sum(note.rows for note in manifest.segments)
    if manifest.approximate == "never" or rows < 2 or (manifest.approximate == "auto" and rows < AUTO_ROWS):
        return False
    if manifest.approximate == "auto" and not has_usearch():
        return False
    if manifest.graph is None:
        return True
    covered = set(manifest.graph.segments)
    return 2 * sum(note.rows for note in manifest.segments if note.name in covered) < rows


def _rows(segments: list[Segment]) -> Iterator[Block]:
    """Yield all rows, deleted ones too, numbered through."""
    start = 0
    for segment in segments:
        for ids, vectors in segment.blocks(np.ones(segment.note.rows, dtype=np.bool_)):
            yield np.arange(start, start + len(ids), dtype=np.int64), vectors
            start += len(ids)


def _take(segments: list[Segment], rows: npt.NDArray[np.intp]) -> npt.NDArray[np.floating]:
    """Return the vectors of rows by number."""
    starts = np.cumsum([0, *(segment.note.rows for segment in segments)])
    homes = np.searchsorted(starts, rows, side="right") - 1
    out = np.empty((len(rows), segments[0].vectors.shape[1]), dtype=segments[0].vectors.dtype)
    for number, segment in enumerate(segments):
        out[homes == number] = segment.vectors[rows[homes == number] - starts[number]]
    return out
