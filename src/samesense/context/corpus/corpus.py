"""Documents as numbered sentences on the disk, and the windows and chunks into which they are cut."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from samesense.context.corpus.build import FORMAT, Document, build_corpus
from samesense.context.corpus.words import Keys
from samesense.errors import ConfigError, DataError
from samesense.files import map_array
from samesense.schemas import Record, read_checked
from samesense.types import Indices


class CorpusRecord(Record):
    """What the manifest of a corpus holds."""

    format: int
    sha256: str
    documents: int
    bytes: int
    sentences: int
    sections: int


class Corpus:
    """Sentences in the order of their documents, read by memory mapping.

    Sentences, documents and chunks are numbered from 0. The window whose centre is sentence *i* is window *i*; at the
    edges of a document there may be none, see :class:`~samesense.context.corpus.corpus.Shape`.

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
        manifest = read_checked(folder / "manifest.json", CorpusRecord)
        if manifest.format != FORMAT:
            raise DataError(f"{folder} is of format {manifest.format}; this reads {FORMAT}. Build it again.")
        self.folder = folder
        self.shape = shape or Shape()
        self.sha256 = manifest.sha256
        self.documents = manifest.documents
        self._text = map_array(folder / "sentences.bin", np.uint8, manifest.bytes)
        self._ends: Indices = map_array(folder / "ends.bin", np.int64, manifest.sentences)
        self._sections: Indices = map_array(folder / "sections.bin", np.int64, manifest.sections)
        self._documents: Indices = map_array(folder / "documents.bin", np.int64, manifest.documents)
        self.text_keys: Keys = map_array(folder / "keys.bin", np.uint64, manifest.sentences)
        self._starts = np.concatenate([np.zeros(1, dtype=np.int64), self._documents[:-1]])
        # Rounded up, as the last chunk of a document may be shorter.
        per_document = -((self._starts - self._documents) // self.shape.chunk)
        self._first_chunks = np.cumsum(per_document) - per_document
        self.chunks = int(per_document.sum())

    @classmethod
    def build(cls, folder: Path, documents: Iterable[Document], shape: Shape | None = None) -> Corpus:
        """Write documents to ``folder`` and open it; see :func:`~samesense.context.corpus.build.build_corpus`."""
        build_corpus(folder, documents)
        return cls(folder, shape)

    def __len__(self) -> int:
        return len(self._ends)

    def __iter__(self) -> Iterator[str]:
        return (self.sentence(i) for i in range(len(self)))

    def sentence(self, i: int) -> str:
        """Return sentence ``i``."""
        self._check(i)
        start = int(self._ends[i - 1]) if i else 0
        try:
            return self._text[start : int(self._ends[i])].tobytes().decode()
        except UnicodeDecodeError as error:
            raise DataError(f"{self.folder} is damaged at sentence {i} ({error}). Build the corpus again.") from error

    def sentences(self, ids: Iterable[int]) -> list[str]:
        """Return the sentences of these numbers, in their order."""
        return [self.sentence(int(i)) for i in ids]

    def sections_of(self, ids: Indices) -> Indices:
        """Return the number of the section of each sentence, counted over the whole corpus."""
        # Ends are exclusive: the sentence at an end belongs to the next section.
        return np.searchsorted(self._sections, ids, side="right")

    def documents_of(self, ids: Indices) -> Indices:
        """Return the number of the document of each sentence."""
        return np.searchsorted(self._documents, ids, side="right")

    def document_bounds(self, ids: Indices) -> tuple[Indices, Indices]:
        """Return, of the document of each sentence, the first sentence and the one after its last."""
        document_ids = self.documents_of(ids)
        return self._starts[document_ids], self._documents[document_ids]

    def window_bounds(self, ids: Indices) -> tuple[Indices, Indices]:
        """Return the first sentence of each window and the one after its last."""
        start, end = self.document_bounds(ids)
        return np.maximum(start, ids - self.shape.left), np.minimum(end, ids + self.shape.right + 1)

    def is_window(self, ids: Indices) -> npt.NDArray[np.bool_]:
        """Return whether each sentence has the neighbours that the centre of a window needs."""
        first, end = self.window_bounds(ids)
        left = ids - first
        right = end - 1 - ids
        # With `least` 0, a document of one sentence would make a window without any context.
        enough: npt.NDArray[np.bool_] = (np.minimum(left, right) >= self.shape.least) & (left + right > 0)
        return enough

    @cached_property
    def windows(self) -> Indices:
        """Numbers of all windows, ascending."""
        ids = np.arange(len(self), dtype=np.int64)
        return ids[self.is_window(ids)]

    def window(self, i: int) -> Window:
        """Return window ``i``; raises as :meth:`windows_at`."""
        return self.windows_at([i])[0]

    def windows_at(self, numbers: Sequence[int] | Indices) -> list[Window]:
        """Return the windows of these numbers, in their order."""
        ids = np.asarray(numbers, dtype=np.int64)
        for i in ids[(ids < 0) | (ids >= len(self))]:
            self._check(int(i))
        for i in ids[~self.is_window(ids)]:
            raise DataError(
                f"A window needs {self.shape.least} sentences on each side, and another sentence at all; sentence {i} "
                f"of {self.folder} is too near an edge of its document. The numbers of windows are corpus.windows."
            )
        bounds = (ids, *self.window_bounds(ids))
        return [
            Window(
                left=tuple(self.sentences(range(first, i))),
                centre=self.sentence(i),
                right=tuple(self.sentences(range(i + 1, end))),
                id=i,
            )
            for i, first, end in zip(*(each.tolist() for each in bounds), strict=True)
        ]

    def chunks_of(self, ids: Indices) -> Indices:
        """Return the number of the chunk of each sentence."""
        document_ids = self.documents_of(ids)
        chunks: Indices = self._first_chunks[document_ids] + (ids - self._starts[document_ids]) // self.shape.chunk
        return chunks

    def chunk_bounds(self, chunks: Indices) -> tuple[Indices, Indices]:
        """Return the first sentence of each chunk and the one after its last."""
        # From the right, which passes over documents without a sentence: they have no chunk.
        document_ids = np.searchsorted(self._first_chunks, chunks, side="right") - 1
        start = self._starts[document_ids] + (chunks - self._first_chunks[document_ids]) * self.shape.chunk
        return start, np.minimum(start + self.shape.chunk, self._documents[document_ids])

    def random_windows(self, seed: int, n: int) -> Indices:
        """Return ``n`` different windows drawn at random; ConfigError if there are fewer."""
        if not 1 <= n <= len(self.windows):
            raise ConfigError(f"{n} windows were asked for, and the corpus has {len(self.windows)}. Ask for 1 to that.")
        return np.random.default_rng(seed).choice(self.windows, size=n, replace=False)

    def without(self, windows: Indices, text_key: int | np.uint64) -> Indices:
        """Return those of some windows in which no sentence, at the centre or a side, has the words of this key."""
        copies = np.flatnonzero(self.text_keys == text_key)
        first, end = self.window_bounds(windows)
        # A window without a copy has as many copies before its start as before its end.
        remaining: Indices = windows[np.searchsorted(copies, first) == np.searchsorted(copies, end)]
        return remaining

    def _check(self, i: int) -> None:
        if not 0 <= i < len(self):
            raise IndexError(f"The sentences are numbered 0 to {len(self) - 1}; there is no sentence {i}.")


def spans(starts: Indices, ends: Indices) -> Indices:
    """Return the numbers from each start up to its end, one span after the other, as one vector."""
    lengths = ends - starts
    before = np.cumsum(lengths) - lengths
    # All spans are slices of one arange, each shifted to its start.
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()), dtype=np.int64)


@dataclass(frozen=True)
class Window:
    """A sentence of a corpus between its neighbours: the context (left, right) and what stood in it."""

    left: tuple[str, ...]  # the sentences before, in order
    centre: str  # the sentence itself
    right: tuple[str, ...]  # the sentences after, in order
    id: int  # number of the window, which is that of the centre in the corpus


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How documents are cut into windows and chunks; neither ever reaches over the edge of a document.

    A chunk is a run of consecutive sentences; the chunks of a document follow each other without overlap, and the last
    one may be shorter.

    Source: Sun et al. 2022, sections 3.2.1 and 3.3, which give no number. Two sentences on a side: one is often a
        fragment that says little, and the cost of Eq. 3 grows with every further one. Chunks of five sentences are some
        100 words of English, the passages of Karpukhin et al. 2020, whose pipeline the paper names as its model.

    Attributes:
        left: most sentences before the centre.
        right: most sentences after it.
        least: a sentence with fewer neighbours than this on a side is no centre of a window. With 1, sides at the
            edges of a document may be shorter but never empty, which would leave terms of Eq. 3 undefined.
        chunk: sentences in a chunk.

    Raises:
        ConfigError: if a number is out of range, or there would be no context at all.
    """

    left: int = 2
    right: int = 2
    least: int = 1
    chunk: int = 5

    def __post_init__(self) -> None:
        if min(self.left, self.right, self.least) < 0 or self.left + self.right < 1 or self.chunk < 1:
            raise ConfigError(
                f"A window has 0 or more sentences on a side, one in all at least, and a chunk has 1 or more; received "
                f"{self}."
            )
        if self.least > min(self.left, self.right):
            raise ConfigError(
                f"least asks for {self.least} sentences on each side, and windows have {self.left} and {self.right} at "
                "most. Lower it, or widen the windows."
            )


HELD_OUT_WINDOWS = 500
"""Windows that are held out to choose the best checkpoint, unless another number is given."""


@dataclass(frozen=True, kw_only=True)
class WindowTraining:
    """What the trainings of a discriminator and of a generator share."""

    batch_size: int = 64  # examples in a step
    learning_rate: float = 1e-3  # peak of AdamW
    warmup_ratio: float = 0.05  # share of the steps in which it rises to the peak; it falls linearly after that
    weight_decay: float = 0.01  # not applied to biases and layer norms
    eval_steps: int | None = None  # between evaluations on the held-out windows, and checkpoints; None: ten a run
    held_out_windows: int = HELD_OUT_WINDOWS  # about this number are not trained on and choose the best state
    precision: Literal["float32", "bfloat16"] = "float32"  # arithmetic
    seed: int = 42  # of weights, order, dropout and what is drawn


def hold_out(corpus: Corpus, count: int, seed: int) -> tuple[Indices, Indices]:
    """Return the windows to train on, and those of whole documents drawn at random until ``count`` are held out.

    The windows of one document share sentences, so a document is on one side only, and stays with those to train on
    where it would bring the others above half; in a corpus of one document, its last windows are held out. ConfigError
    if ``count`` is more than half of the windows.
    """
    windows = corpus.windows
    if not 1 <= count <= len(windows) // 2:
        raise ConfigError(
            f"Between 1 and half of the windows are held out; held_out_windows is {count}, and the corpus has "
            f"{len(windows)}."
        )
    documents = corpus.documents_of(windows)
    names, sizes = np.unique(documents, return_counts=True)
    if len(names) == 1:
        return windows[:-count], windows[-count:]
    held = 0
    drawn = []
    for index in np.random.default_rng(seed).permutation(len(names)):
        if held < count and held + sizes[index] <= len(windows) // 2:
            held += sizes[index]
            drawn.append(names[index])
    out = np.isin(documents, drawn)
    return windows[~out], windows[out]


def to_learn_from(corpus: Corpus, held_out: Indices) -> npt.NDArray[np.bool_]:
    """Return which sentences training may see, ``(sentences,)``: those of documents without a window held out.

    In a corpus of one document, those before the first window that is held out.
    """
    documents = corpus.documents_of(np.arange(len(corpus), dtype=np.int64))
    free = ~np.isin(documents, corpus.documents_of(held_out))
    if not free.any():
        free[: int(corpus.window_bounds(held_out)[0].min())] = True
    return free
