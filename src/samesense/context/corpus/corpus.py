"""Documents as numbered sentences on the disk, and the windows and chunks into which they are cut."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from samesense.context.corpus.build import FORMAT, build_corpus
from samesense.context.corpus.windows import Shape, Window
from samesense.context.corpus.words import Keys
from samesense.errors import ConfigError, DataError
from samesense.files import map_array, read_json

Ids = npt.NDArray[np.int64]
"""Vector of numbers of sentences, windows, chunks or documents."""


class Corpus:
    """Sentences in the order of their documents, read by memory mapping.

    Sentences, documents and chunks are numbered from 0. The window whose centre is sentence *i* is window *i*; at the
    edges of a document there may be none, see :class:`~samesense.context.corpus.windows.Shape`.

    Args:
        folder: as :meth:`build` writes it.
        shape: sizes of windows and chunks; they cost nothing to change.

    Attributes:
        sha256: fingerprint of the content.
        documents: number of documents.
        chunks: number of chunks.
        text_keys: hash of the words of each sentence ``(sentences,)``.

    Raises:
        DataError: if there is no corpus, or it is damaged.
    """

    def __init__(self, folder: Path, shape: Shape | None = None) -> None:
        if not (folder / "manifest.json").is_file():
            raise DataError(f"{folder} is no corpus: it has no manifest.json. Build one there from documents first.")
        manifest = read_json(folder / "manifest.json")
        if manifest.get("format") != FORMAT:
            raise DataError(f"{folder} is of format {manifest.get('format')}; this reads {FORMAT}. Build it anew.")
        self.folder, self.shape = folder, shape or Shape()
        self.sha256: str = manifest["sha256"]
        self.documents: int = manifest["documents"]
        self._text = map_array(folder / "sentences.bin", np.uint8, manifest["bytes"])
        self._ends: Ids = map_array(folder / "ends.bin", np.int64, manifest["sentences"])
        self._sections: Ids = map_array(folder / "sections.bin", np.int64, manifest["sections"])
        self._documents: Ids = map_array(folder / "documents.bin", np.int64, manifest["documents"])
        self.text_keys: Keys = map_array(folder / "keys.bin", np.uint64, manifest["sentences"])
        self._starts = np.concatenate([np.zeros(1, dtype=np.int64), self._documents[:-1]])
        per_document = -((self._starts - self._documents) // self.shape.chunk)
        self._first_chunks = np.cumsum(per_document) - per_document
        self.chunks = int(per_document.sum())

    @classmethod
    def open(cls, folder: Path, shape: Shape | None = None) -> Corpus:
        """Return the corpus in ``folder``; as the class itself."""
        return cls(folder, shape)

    @classmethod
    def build(
        cls,
        folder: Path,
        documents: Iterable[Sequence[Sequence[str]]],
        shape: Shape | None = None,
        *,
        on_progress: Callable[[int], None] | None = None,
    ) -> Corpus:
        """Write documents to ``folder`` and open it; see :func:`~samesense.context.corpus.build.build_corpus`."""
        build_corpus(folder, documents, on_progress=on_progress)
        return cls(folder, shape)

    def __len__(self) -> int:
        return len(self._ends)

    def __iter__(self) -> Iterator[str]:
        return (self.sentence(i) for i in range(len(self)))

    def sentence(self, i: int) -> str:
        """Return sentence ``i``."""
        self._check(i)
        start = int(self._ends[i - 1]) if i else 0
        return self._text[start : int(self._ends[i])].tobytes().decode()

    def sentences(self, ids: Iterable[int]) -> list[str]:
        """Return the sentences of these numbers, in their order."""
        return [self.sentence(int(i)) for i in ids]

    def document(self, i: int) -> int:
        """Return the number of the document in which sentence ``i`` lies."""
        self._check(i)
        return int(self.documents_of(np.array([i]))[0])

    def section(self, i: int) -> int:
        """Return the number of the section in which sentence ``i`` lies, counted over the whole corpus."""
        self._check(i)
        return int(self.sections_of(np.array([i]))[0])

    def sections_of(self, ids: Ids) -> Ids:
        """Return the number of the section of each sentence, counted over the whole corpus."""
        return np.searchsorted(self._sections, ids, side="right")

    def documents_of(self, ids: Ids) -> Ids:
        """Return the number of the document of each sentence."""
        return np.searchsorted(self._documents, ids, side="right")

    def document_bounds(self, ids: Ids) -> tuple[Ids, Ids]:
        """Return, of the document of each sentence, the first sentence and the one after its last."""
        own = self.documents_of(ids)
        return self._starts[own], self._documents[own]

    def window_bounds(self, ids: Ids) -> tuple[Ids, Ids]:
        """Return the first sentence of each window and the one after its last."""
        start, end = self.document_bounds(ids)
        return np.maximum(start, ids - self.shape.left), np.minimum(end, ids + self.shape.right + 1)

    def is_window(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """Return whether each sentence has the neighbours that the centre of a window needs."""
        first, end = self.window_bounds(ids)
        left, right = ids - first, end - 1 - ids
        enough: npt.NDArray[np.bool_] = (np.minimum(left, right) >= self.shape.least) & (left + right > 0)
        return enough

    @cached_property
    def windows(self) -> Ids:
        """Numbers of all windows, ascending."""
        ids = np.arange(len(self), dtype=np.int64)
        return ids[self.is_window(ids)]

    def window(self, i: int) -> Window:
        """Return window ``i``; raises as :meth:`windows_at`."""
        return self.windows_at([i])[0]

    def windows_at(self, numbers: Sequence[int] | Ids) -> list[Window]:
        """Return the windows of these numbers, in their order.

        Raises:
            DataError: if a sentence is too near an edge of its document.
        """
        ids = np.asarray(numbers, dtype=np.int64)
        for i in ids[(ids < 0) | (ids >= len(self))]:
            self._check(int(i))
        for i in ids[~self.is_window(ids)]:
            raise DataError(
                f"A window needs {self.shape.least} sentences on each side, and another sentence at all; sentence {i} "
                f"of {self.folder} is too near an edge of its document. The numbers of windows are corpus.windows."
            )
        facts = (ids, *self.window_bounds(ids), self.chunks_of(ids), self.documents_of(ids))
        return [
            Window(
                left=tuple(self.sentences(range(first, i))),
                centre=self.sentence(i),
                right=tuple(self.sentences(range(i + 1, end))),
                id=i,
                chunk=chunk,
                document=document,
            )
            for i, first, end, chunk, document in zip(*(fact.tolist() for fact in facts), strict=True)
        ]

    def chunk_of(self, i: int) -> int:
        """Return the number of the chunk in which sentence ``i`` lies."""
        self._check(i)
        return int(self.chunks_of(np.array([i]))[0])

    def chunks_of(self, ids: Ids) -> Ids:
        """Return the number of the chunk of each sentence."""
        own = self.documents_of(ids)
        chunks: Ids = self._first_chunks[own] + (ids - self._starts[own]) // self.shape.chunk
        return chunks

    def chunk_bounds(self, chunks: Ids) -> tuple[Ids, Ids]:
        """Return the first sentence of each chunk and the one after its last."""
        own = np.searchsorted(self._first_chunks, chunks, side="right") - 1
        start = self._starts[own] + (chunks - self._first_chunks[own]) * self.shape.chunk
        return start, np.minimum(start + self.shape.chunk, self._documents[own])

    def random_windows(self, seed: int, n: int) -> Ids:
        """Return ``n`` different windows drawn at random.

        Raises:
            ConfigError: if there are not so many.
        """
        if not 1 <= n <= len(self.windows):
            raise ConfigError(f"{n} windows were asked for, and the corpus has {len(self.windows)}. Ask for 1 to that.")
        return np.random.default_rng(seed).choice(self.windows, size=n, replace=False)

    def _check(self, i: int) -> None:
        if not 0 <= i < len(self):
            raise IndexError(f"The sentences are numbered 0 to {len(self) - 1}; there is no sentence {i}.")


def spans(starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the numbers from each start up to its end, one span after the other, as one vector."""
    lengths = ends - starts
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()), dtype=np.int64)
