"""Batches of windows, each with its own centre and replacements of it, decided by the seed alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import Dataset
from transformers import EvalPrediction

from samesense.context.corpus.corpus import Corpus
from samesense.context.discriminator.encoder import SentenceEncoder
from samesense.context.discriminator.lstm import padded
from samesense.errors import DataError
from samesense.types import Indices

RUN_WINDOWS = 8
"""Windows that follow each other and go into a batch together: they share most of their sentences, encoded once."""

Allowed = npt.NDArray[np.bool_]
"""Which sentences of a corpus may replace others."""

ATTEMPTS = 100
"""How often a draw is repeated whose sentence is in the window or has the same words as its centre."""


@dataclass(frozen=True)
class Schedule:
    """What decides the batches of a run: windows in a batch, epochs, replacements of each centre, and the seed."""

    batch_size: int
    epochs: int
    negatives: int
    seed: int


@dataclass(frozen=True)
class Batch:
    """Windows with the sentences put into their centres ``(windows, k)``, and which of these stood there."""

    windows: Indices
    centres: Indices
    labels: npt.NDArray[np.float32]


def _batch(windows: Indices, negatives: Indices) -> Batch:
    centres = np.concatenate([windows[:, None], negatives], axis=1)
    labels = np.zeros(centres.shape, dtype=np.float32)
    labels[:, 0] = 1.0
    return Batch(windows, centres, labels)


class Steps(Dataset[Batch]):
    """Every step of a run, in order, each decided by the seed alone, so that a resumed run sees what is left."""

    def __init__(self, corpus: Corpus, windows: Indices, schedule: Schedule, allowed: Allowed | None = None) -> None:
        self._corpus = corpus
        self._schedule = schedule
        self._allowed = allowed
        self._runs = _runs(corpus, windows)
        self._epoch = -1
        self._windows = windows
        self._negatives = windows
        self._an_epoch = -(-len(windows) // schedule.batch_size)

    def __len__(self) -> int:
        return self._an_epoch * self._schedule.epochs

    def __getitem__(self, step: int) -> Batch:
        epoch, index = divmod(step, self._an_epoch)
        # The trainer asks in order, so the draws of one epoch at a time are enough.
        if epoch != self._epoch:
            self._begin(epoch)
        rows = slice(index * self._schedule.batch_size, (index + 1) * self._schedule.batch_size)
        return _batch(self._windows[rows], self._negatives[rows])

    def _begin(self, epoch: int) -> None:
        seed = [self._schedule.seed, epoch]
        order = np.random.default_rng(seed).permutation(len(self._runs))
        self._windows = np.concatenate([self._runs[run] for run in order])
        # The last number of the seed gives another stream than that of the order.
        self._negatives = draw_negatives(
            self._corpus, self._windows, self._schedule.negatives, [*seed, 1], self._allowed
        )[0]
        self._epoch = epoch


def _runs(corpus: Corpus, windows: Indices) -> list[Indices]:
    """Return windows in runs of some that follow each other in a document; the last run of a document is shorter."""
    documents = corpus.documents_of(windows)
    by_document = np.split(windows, np.flatnonzero(np.diff(documents)) + 1)
    return [
        document_windows[start : start + RUN_WINDOWS]
        for document_windows in by_document
        for start in range(0, len(document_windows), RUN_WINDOWS)
    ]


class HeldOut(Dataset[Batch]):
    """The held-out windows, always with the same replacements."""

    def __init__(self, corpus: Corpus, windows: Indices, schedule: Schedule) -> None:
        negatives, near = draw_negatives(corpus, windows, schedule.negatives, [schedule.seed, 2])
        starts = range(0, len(windows), schedule.batch_size)
        pieces = [slice(start, start + schedule.batch_size) for start in starts]
        self._batches = [_batch(windows[piece], negatives[piece]) for piece in pieces]
        true_centres = np.ones((len(windows), 1), dtype=np.bool_)
        kinds = {
            "all": np.concatenate([true_centres, np.ones_like(near)], axis=1),
            "positive": np.concatenate([true_centres, np.zeros_like(near)], axis=1),
            "same document": np.concatenate([~true_centres, near], axis=1),
            "anywhere": np.concatenate([~true_centres, ~near], axis=1),
        }
        self.kinds = {name: which for name, which in kinds.items() if which.any()}

    def __len__(self) -> int:
        return len(self._batches)

    def __getitem__(self, index: int) -> Batch:
        return self._batches[index]

    def accuracies(self, predicted: EvalPrediction) -> dict[str, float]:
        """Return the share of right answers of each kind of example."""
        # A logit above 0 is a probability above a half.
        right = (np.asarray(predicted.predictions) > 0) == (np.asarray(predicted.label_ids) > 0.5)
        return {name: float(right[which].mean()) for name, which in self.kinds.items()}


class Collate:
    """Makes tensors of the one batch that the trainer draws, each sentence encoded once."""

    def __init__(self, encoder: SentenceEncoder, corpus: Corpus) -> None:
        self._reader = encoder
        self._corpus = corpus

    def __call__(self, batches: Sequence[Batch]) -> dict[str, torch.Tensor]:
        """Return the arguments of :meth:`~samesense.context.discriminator.lstm.Coherence.forward`."""
        (batch,) = batches
        first, end = self._corpus.window_bounds(batch.windows)
        shape = self._corpus.shape
        sides = np.full((len(batch.windows), 2, max(shape.left, shape.right)), -1, dtype=np.int64)
        sides[:, 0, : shape.left] = batch.windows[:, None] + np.arange(-shape.left, 0)
        sides[:, 1, : shape.right] = batch.windows[:, None] + np.arange(1, shape.right + 1)
        sides[(sides < first[:, None, None]) | (sides >= end[:, None, None])] = -1
        # -1 is put in, so that it is always the first of the distinct rows.
        rows, inverse = np.unique(np.concatenate([[-1], sides.ravel(), batch.centres.ravel()]), return_inverse=True)
        inverse = inverse[1:] - 1  # -1 stays -1
        tokens, lengths = padded(self._reader.numbers(self._corpus.sentences(rows[1:])))
        return {
            "tokens": tokens,
            "lengths": lengths,
            "sides": torch.from_numpy(inverse[: sides.size].reshape(sides.shape)),
            "centres": torch.from_numpy(inverse[sides.size :].reshape(batch.centres.shape)),
            "labels": torch.from_numpy(batch.labels),
        }


def draw_negatives(
    corpus: Corpus, windows: Indices, count: int, seed: list[int], allowed: Allowed | None = None
) -> tuple[Indices, npt.NDArray[np.bool_]]:
    """Draw replacements of the centres of windows: sentences, and whether from the window's document, ``(n, count)``.

    Every second one, over all windows, comes from the document of its window, the others from the whole corpus, all of
    them uniformly. No sentence of the window itself is taken, nor one with the same words as the centre, nor one that
    is not ``allowed``, ``(sentences,)``; ``None`` allows all. DataError if the corpus has no sentence that can replace
    a centre.

    Source: Sun et al. 2022, section 3.2.1. Differs: leaving those sentences out, which the paper does not mention; the
        one would teach that neighbours resemble too much, the other is no negative. Where a document has no other
        sentence, its replacement comes from anywhere; the second array tells.
    """
    generator = np.random.default_rng(seed)
    flat = np.repeat(windows, count)
    first, end = corpus.window_bounds(flat)
    start, stop = corpus.document_bounds(flat)
    # Exactly half of them, where independent draws would give about half.
    near = np.arange(len(flat)) % 2 == 0
    near = generator.permutation(near) & (stop - start > end - first)
    drawn = np.zeros(len(flat), dtype=np.int64)
    missing = np.arange(len(flat))
    for attempt in range(ATTEMPTS):
        near[missing] &= attempt < ATTEMPTS // 2  # a document of nothing but the same sentence
        low = np.where(near, start, 0)[missing]
        high = np.where(near, stop, len(corpus))[missing]
        inner = (end - first)[missing]
        # The corpus is no larger than the window, and nothing lies outside.
        if np.any(high - low <= inner):
            break
        candidates = generator.integers(low, high - inner)
        drawn[missing] = candidates + np.where(candidates >= first[missing], inner, 0)  # steps over the window
        same = corpus.text_keys[drawn[missing]] == corpus.text_keys[flat[missing]]
        if allowed is not None:
            same |= ~allowed[drawn[missing]]
        missing = missing[same]
        if len(missing) == 0:
            return drawn.reshape(-1, count), near.reshape(-1, count)
    raise DataError(
        f"A sentence of another window, with other words, must be there to replace that of window {flat[missing][0]}, "
        f"and none was found in {len(corpus)} sentences. Give more documents."
    )
