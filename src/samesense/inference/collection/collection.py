"""A collection of texts on disk that is searched by meaning: build, open, add, delete, query.

Example:
    >>> collection = Collection.build("texts", [Entry("A dog runs.", metadata={"topic": "animals"})], model)
    ... # doctest: +SKIP
    >>> collection.query(["An animal moves."], model, top=3)[0][0].text  # doctest: +SKIP
    'A dog runs.'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from samesense.errors import ConfigError, DataError, ModelError
from samesense.inference.collection import writer as changes
from samesense.inference.collection.embedder import Embedder
from samesense.inference.collection.entries import Entry, canonical
from samesense.inference.collection.manifest import Approximate, Manifest, read_manifest
from samesense.inference.collection.segment import Mask
from samesense.inference.collection.state import State, search_words
from samesense.inference.search.exact import Best, Block, nearest, unit_rows


@dataclass(frozen=True)
class Found:
    """One text of an answer.

    Attributes:
        id: its number in the collection.
        score: cosine with the query, in [-1, 1].
        text: the text.
        metadata: what else is known of it.
    """

    id: int
    score: float
    text: str
    metadata: Mapping[str, Any]


class Collection:
    """One state of a collection, as it was when opened; a change by another process shows after :meth:`refresh`.

    Vectors, texts and metadata stay on disk and are mapped into memory. Several processes may read while one writes.
    """

    def __init__(self, folder: Path, state: State, *, with_graph: bool = True) -> None:
        """Use :meth:`open` or :meth:`build`."""
        self.folder = folder
        self._state = state
        self._with_graph = with_graph

    @classmethod
    def build(
        cls,
        folder: str | Path,
        entries: Iterable[Entry],
        model: Embedder,
        *,
        dtype: Literal["float32", "float16"] = "float32",
        approximate: Approximate = "auto",
        overwrite: bool = False,
        on_progress: Callable[[int], None] | None = None,
    ) -> Collection:
        """Make a collection; its texts are read, encoded and written block by block.

        Args:
            folder: where it will be; it may be there if it is empty.
            entries: the texts.
            model: encodes them, and every later query.
            dtype: how vectors are kept; float16 halves the size and rounds each number to three digits.
            approximate: make an approximate index: from ``AUTO_ROWS`` texts on if usearch is installed, always, or
                never. Its recall is measured and kept.
            overwrite: replace a collection that is there, once the new one is complete.
            on_progress: called with the number of texts just written.

        Raises:
            DataError: for an entry that cannot be kept, an id that comes twice, or no entry at all.
            ModelError: if the model gives unusable vectors.
            OutputError: if the folder holds something else, or another process writes to it.
            MissingExtraError: if ``approximate`` is ``"always"`` and usearch is absent.
        """
        place = Path(folder)
        changes.build(place, entries, model, dtype, approximate, overwrite, on_progress)
        return cls.open(place)

    @classmethod
    def open(cls, folder: str | Path, *, with_graph: bool = True) -> Collection:
        """Open the collection in ``folder``.

        Args:
            folder: where it is.
            with_graph: open the approximate index if there is one; without it every search is exact.

        Raises:
            DataError: if there is none, or it is damaged.
            MissingExtraError: if it has an approximate index and usearch is absent.
        """
        return cls(Path(folder), State.open(Path(folder), with_graph=with_graph), with_graph=with_graph)

    @property
    def manifest(self) -> Manifest:
        """What the collection consists of."""
        return self._state.manifest

    def __len__(self) -> int:
        """Return the number of texts."""
        return self.manifest.live

    def refresh(self) -> bool:
        """See what others have changed; return whether anything was."""
        if read_manifest(self.folder) == self.manifest:
            return False
        self._reopen()
        return True

    def _reopen(self) -> None:
        self._state = State.open(self.folder, with_graph=self._with_graph)

    def add(
        self, entries: Iterable[Entry], model: Embedder, *, on_progress: Callable[[int], None] | None = None
    ) -> int:
        """Add texts, all or none; return how many.

        Raises:
            ModelError: if the model is not the one that the collection was built with.
            DataError: for an entry that cannot be kept, or an id that is there.
            OutputError: if another process goes on writing.
        """
        added = changes.add(self.folder, entries, model, on_progress)
        self._reopen()
        return added

    def delete(self, ids: Iterable[int] = (), *, where: Mapping[str, Any] | None = None) -> int:
        """Delete texts by id, or those whose metadata match; return how many.

        Args:
            ids: each must be there.
            where: see :meth:`query`; instead of ids.

        Raises:
            DataError: if an id or a name of metadata is not there; then nothing is deleted.
            ConfigError: for both ids and ``where``, or neither.
            OutputError: if another process goes on writing.
        """
        wanted = list(ids)
        if bool(wanted) == bool(where):
            raise ConfigError("Texts are deleted by ids or by metadata; give one of the two.")
        deleted = changes.delete(self.folder, wanted, _alternatives(where))
        self._reopen()
        return deleted

    def compact(self) -> None:
        """Write all texts into one segment without the deleted ones, and make the approximate index anew."""
        changes.compact(self.folder)
        self._reopen()

    def about(self) -> dict[str, Any]:
        """Return what the collection is, as JSON types: sizes, model, and how it is searched with which recall."""
        state = self.manifest
        graph = state.graph
        return {
            "texts": state.live,
            "deleted": sum(note.deleted for note in state.segments),
            "segments": len(state.segments),
            "model": state.model,
            "precision": state.precision,
            "dim": state.dim,
            "vectors": state.dtype,
            "search": search_words(state),
            **({} if graph is None else {"recall_at_10": graph.recall, "recall_queries": graph.queries}),
            "next_id": state.next_id,
            "generation": state.generation,
        }

    def get(self, number: int) -> Entry:
        """Return the text with an id.

        Raises:
            DataError: if there is none.
        """
        return self._state.entry(number)

    def __iter__(self) -> Iterator[Entry]:
        """Yield every text, in the order they were added."""
        return self._state.entries()

    def query(
        self,
        texts: Sequence[str],
        model: Embedder,
        *,
        top: int = 10,
        where: Mapping[str, Any] | None = None,
        exact: bool = False,
    ) -> list[list[Found]]:
        """Return for each text the ``top`` nearest of the collection, the nearest first, equal ones by id.

        Args:
            texts: what is looked for.
            model: the model of the collection.
            top: texts of an answer; all of them where there are fewer.
            where: values of metadata that a text must have, by name; a list means any of its values. The search is
                then exact among the texts that have them.
            exact: compare with every text even if there is an approximate index.

        Raises:
            ModelError: if the model is not the one that the collection was built with.
            DataError: for an empty query, or a name of metadata that no text has.
            ConfigError: if ``top`` is less than 1.
        """
        changes.check_model(self.manifest, model, self.folder)
        for number, text in enumerate(texts, 1):
            if not text.strip():
                raise DataError(f"A query must hold a text; query {number} is empty.")
        vectors = model.unit(list(texts)) if texts else np.zeros((0, self.manifest.dim), dtype=np.float32)
        return self.search(vectors, top=top, where=where, exact=exact)

    def search(
        self,
        vectors: npt.NDArray[np.floating],
        *,
        top: int = 10,
        where: Mapping[str, Any] | None = None,
        exact: bool = False,
    ) -> list[list[Found]]:
        """Answer queries given as vectors ``(queries, dim)``; see :meth:`query`."""
        if top < 1:
            raise ConfigError(f"At least one text must be asked for; received {top}. Example: 10")
        if vectors.ndim != 2 or vectors.shape[1] != self.manifest.dim:
            raise ModelError(
                f"Queries must be a matrix of {self.manifest.dim} columns, as the collection's vectors; received the "
                f"shape {vectors.shape}."
            )
        queries = unit_rows(vectors)
        chosen = _alternatives(where)
        self._state.check_names(chosen)
        best = [Best(top) for _ in queries]
        masks = self._state.masks(chosen)
        if self._state.graph is not None and not exact and not chosen:
            self._state.offer_approximately(queries, best, top)
            masks = self._state.uncovered(masks)
        nearest(queries, lambda: self._blocks(masks), best, top)
        return [[self._found(int(i), float(s)) for i, s in zip(one.ids, one.scores, strict=True)] for one in best]

    def _blocks(self, masks: list[Mask]) -> Iterator[Block]:
        for segment, mask in zip(self._state.segments, masks, strict=True):
            yield from segment.blocks(mask)

    def _found(self, number: int, score: float) -> Found:
        entry = self._state.entry(number)
        return Found(number, score, entry.text, entry.metadata)


def _alternatives(where: Mapping[str, Any] | None) -> dict[str, list[str]]:
    """Return for each name the values that match, as JSON text."""
    return {
        name: [canonical(one) for one in (value if isinstance(value, (list, tuple)) else [value])]
        for name, value in (where or {}).items()
    }
