"""One state of a collection, opened: its segments, where each id is, and the approximate index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from samesense.encoder.cosine import row_cosines
from samesense.errors import DataError
from samesense.files import sync_file
from samesense.inference.collection.entries import Entry
from samesense.inference.collection.manifest import SEGMENTS, GraphNote, Manifest, read_manifest
from samesense.inference.collection.segment import Mask, Segment
from samesense.inference.search.exact import Best, Block, Ids
from samesense.inference.search.hnsw import Graph, has_usearch, tune
from samesense.types import Embeddings


class State:
    """What a manifest names, opened: its segments in the order in which they were added, and the approximate index."""

    def __init__(self, folder: Path, manifest: Manifest, *, with_graph: bool = True) -> None:
        self.manifest = manifest
        self.segments = [
            Segment(
                folder / SEGMENTS / note.name,
                note,
                manifest.dim,
                manifest.dtype,
                None if note.tombstones is None else folder / note.tombstones,
            )
            for note in manifest.segments
        ]
        self.graph: Graph | None = None
        if with_graph and manifest.graph is not None:
            covered = set(manifest.graph.segments)
            rows = sum(note.rows for note in manifest.segments if note.name in covered)
            self.graph = Graph.open(folder / manifest.graph.file, manifest.graph.expansion, rows)

    @classmethod
    def open(cls, folder: Path, *, with_graph: bool = True) -> State:
        """Open the state of now, again if a writer removes files of the last one meanwhile.

        DataError if there is no collection, or files are missing.
        """
        while True:
            manifest = read_manifest(folder)
            try:
                return cls(folder, manifest, with_graph=with_graph)
            except FileNotFoundError as error:
                if read_manifest(folder).generation == manifest.generation:
                    raise DataError(
                        f"The collection is damaged: {error.filename or error} is missing. Build it anew from its "
                        "texts."
                    ) from error

    def masks(self, where: Mapping[str, Sequence[str]]) -> list[Mask]:
        """Return for each segment which rows are live and match."""
        return [segment.matching(where) for segment in self.segments]

    def uncovered(self, masks: list[Mask]) -> list[Mask]:
        """Return the masks with no row of a segment that the approximate index covers."""
        covered = set() if self.manifest.graph is None else set(self.manifest.graph.segments)
        return [
            np.zeros_like(mask) if segment.note.name in covered else mask
            for segment, mask in zip(self.segments, masks, strict=True)
        ]

    def check_names(self, where: Mapping[str, object]) -> None:
        """Raise DataError, naming those there are, for names of metadata that no text has."""
        known = {name for segment in self.segments for name in segment.fields()} if where else set()
        for name in where:
            if name not in known:
                raise DataError(
                    f"No text has metadata named {name!r}. There are: {', '.join(sorted(known)) or 'none at all'}."
                )

    @cached_property
    def _places(self) -> tuple[Ids, Ids, Ids]:
        """Live ids in order, with the segment and the row of each."""
        rows = [np.flatnonzero(segment.live) for segment in self.segments]
        ids = [segment.ids[row] for segment, row in zip(self.segments, rows, strict=True)]
        homes = [np.full(len(row), number) for number, row in enumerate(rows)]
        flat = [np.concatenate([np.zeros(0, dtype=np.int64), *parts]) for parts in (ids, homes, rows)]
        order = np.argsort(flat[0], kind="stable")
        return flat[0][order], flat[1][order], flat[2][order]

    def find(self, ids: Ids) -> tuple[npt.NDArray[np.bool_], Ids, Ids]:
        """Return which ids are there, and for those that are the segment and the row."""
        known, homes, rows = self._places
        place = np.searchsorted(known, ids)
        there = place < len(known)
        there[there] = known[place[there]] == ids[there]
        return there, homes[place[there]], rows[place[there]]

    def entry(self, number: int) -> Entry:
        """Return the text with an id; DataError if there is none."""
        there, homes, rows = self.find(np.array([number], dtype=np.int64))
        if not there[0]:
            raise DataError(f"The collection holds no text with the id {number}.")
        return self.segments[int(homes[0])].entry(int(rows[0]))

    def entries(self) -> Iterator[Entry]:
        """Yield every live text."""
        for segment in self.segments:
            for row in np.flatnonzero(segment.live):
                yield segment.entry(int(row))

    @cached_property
    def _covered(self) -> tuple[list[Segment], Ids]:
        """The segments in the order of the approximate index, and the number of the first row of each."""
        by_name = {segment.note.name: segment for segment in self.segments}
        names = () if self.manifest.graph is None else self.manifest.graph.segments
        segments = [by_name[name] for name in names]
        starts = np.cumsum([0, *(segment.note.rows for segment in segments)])
        return segments, starts.astype(np.int64)

    def offer_approximately(self, queries: Embeddings, best: list[Best], count: int) -> None:
        """Let the rows that the approximate index finds compete, by their exact scores."""
        if self.graph is None:
            return
        segments, starts = self._covered
        live = sum(int(segment.live.sum()) for segment in segments)
        open_queries = np.arange(len(queries))
        wanted = min(count + 10, int(starts[-1]))
        while len(open_queries):
            short = []
            for query, found in zip(open_queries, self.graph.search(queries[open_queries], wanted), strict=True):
                rows = self._alive(found, segments, starts)
                if sum(map(len, rows)) < min(count, live) and wanted < starts[-1]:
                    short.append(query)
                    continue
                for segment, own in zip(segments, rows, strict=True):
                    best[query].offer(segment.ids[own], row_cosines(queries[query][None], segment.vectors[own]))
            open_queries = np.array(short, dtype=np.intp)
            wanted = min(4 * wanted, int(starts[-1]))

    @staticmethod
    def _alive(found: npt.NDArray[np.intp], segments: list[Segment], starts: Ids) -> list[npt.NDArray[np.intp]]:
        """Return the rows found in each segment that are not deleted."""
        homes = np.searchsorted(starts, found, side="right") - 1
        rows = [found[homes == number] - starts[number] for number in range(len(segments))]
        return [own[segment.live[own]] for segment, own in zip(segments, rows, strict=True)]


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
