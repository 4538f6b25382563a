"""The four terms of Eq. 3 for many cells at once, each computed once and kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from samesense.context.corpus.corpus import Window
from samesense.context.generator.base import Cells, Generator, Kind, RightGiven, groups_of, kinds_of
from samesense.context.origin.cache import CellCache, Keys, cell_keys, content_keys
from samesense.context.origin.similarity import TERMS, Statistics, Weights
from samesense.context.retrieval.postings import top_k
from samesense.execution.unread import Unread, note
from samesense.types import Embeddings, Floats, Indices

if TYPE_CHECKING:
    from samesense.context.discriminator.encoder import Discriminator

BLOCK_CELLS = 65536
"""Cells computed, and written, at a time: what a killed run may lose."""

BLOCK_WINDOWS = 256
"""Contexts whose statistics are computed, and written, at a time."""


class Terms:
    """Computes terms, asking nothing of a model whose weight is 0; ``computed`` counts the generator's cells.

    Source: Sun et al. 2022 (TACL), Eq. 3.
    Differs: with ``right_given="sentence"`` the last term is log p(R | s) in place of log p(R | L, s). Contexts that
        share L predict much of R from L alone, for any s.
    """

    def __init__(
        self,
        discriminator: Discriminator,
        generator: Generator,
        weights: Weights,
        folder: Path | None = None,
        *,
        right_given: RightGiven = "both",
    ) -> None:
        self.discriminator = discriminator
        self.generator = generator
        self.weights = weights
        self.right_given = right_given
        self._places: dict[Kind, int] = {kind: index for index, kind in enumerate(kinds_of(right_given), 1)}  # in TERMS
        self.kinds = tuple(kind for kind, index in self._places.items() if weights.values()[index] > 0)
        self.computed = 0
        self._cells = {kind: CellCache(folder, json.dumps([generator.identity, kind])) for kind in self.kinds}
        self._usual = {
            kind: CellCache(folder, json.dumps([generator.identity, kind, "usual"]), 2) for kind in self.kinds
        }

    def note_unread(self, sentences: Sequence[str]) -> None:
        """Count sentences that a model reads only in part; see :mod:`samesense.execution.unread`."""
        unread = Unread()
        distinct = list(dict.fromkeys(sentences))
        unread.see(distinct)
        words = self.discriminator.encoder
        readers = [(words.beyond(distinct), words.most_words, "words")]
        if self.kinds:
            readers.append((self.generator.beyond(distinct), self.generator.longest or 0, "tokens"))
        for beyond, longest, unit in readers:
            if beyond:
                unread.longest = longest
                unread.unit = unit
            for text in beyond:
                unread.cut.add(text)
        note(unread, self)

    def values(self, cells: Cells) -> Floats:
        """Return the terms of all cells, ``(4, n)``; 0 for those that do not count."""
        terms = np.zeros((len(TERMS), len(cells)))
        if self.weights.discriminative > 0:
            terms[0] = self._discriminative(cells)
        if self.kinds:
            keys = cell_keys(content_keys(cells.sentences)[cells.rows], window_keys(cells.windows)[cells.columns])
            # By window, so that the cells of a context are computed together.
            order = np.argsort(cells.columns, kind="stable")
            for start in range(0, len(order), BLOCK_CELLS):
                members = order[start : start + BLOCK_CELLS]
                for kind, fits in self._generative(cells.take(members), keys[members]).items():
                    terms[self._places[kind], members] = fits
        return terms

    def statistics(self, windows: Sequence[Window], reference: Sequence[str]) -> Statistics:
        """Return what is usual in each window for the sentences of ``reference``."""
        means = np.zeros((len(TERMS), len(windows)))
        deviations = np.zeros((len(TERMS), len(windows)))
        if self.weights.discriminative > 0 and windows:
            ids = np.array([window.id for window in windows], dtype=np.int64)
            usual = self.discriminator.scores(self.discriminator.encoder.encode(reference), ids)
            means[0] = usual.mean(axis=0)
            deviations[0] = usual.std(axis=0)
        if not self.kinds:
            return Statistics(means, deviations)
        population = content_keys([json.dumps(list(reference))])
        for start in range(0, len(windows), BLOCK_WINDOWS):
            block = windows[start : start + BLOCK_WINDOWS]
            span = slice(start, start + len(block))
            keys = cell_keys(np.repeat(population, len(block), axis=0), window_keys(block))
            for kind, moments in self._usual_of(block, reference, keys).items():
                means[self._places[kind], span], deviations[self._places[kind], span] = moments.T
        return Statistics(means, deviations)

    def ranked(self, sentences: Sequence[str], pools: Sequence[Indices], most: int) -> list[Indices]:
        """Return the best windows of each sentence's pool in the order of the discriminator, equals by number."""
        # Ascending, because ties go to the lower index.
        ascending = [np.sort(pool) for pool in pools]
        fits = self._fits_of(self.discriminator.encoder.encode(sentences), ascending)
        return [pool[top_k(sentence_fits, most)] for pool, sentence_fits in zip(ascending, fits, strict=True)]

    def _fits_of(self, vectors: Embeddings, pools: Sequence[Indices]) -> list[Floats]:
        """Return log p(y = 1) of each sentence in the windows of its pool, ascending.

        Pools that have much in common are scored as one, so that a window is read once for all sentences.
        """
        if not pools:
            return []
        union = np.unique(np.concatenate(pools))
        # Worth it where half of the cells of the union are asked for.
        if len(union) * len(pools) > 2 * sum(len(pool) for pool in pools):
            return [self._fits(vector, pool) for vector, pool in zip(vectors, pools, strict=True)]
        fits = self.discriminator.scores(vectors, union)
        return [sentence_fits[np.searchsorted(union, pool)] for sentence_fits, pool in zip(fits, pools, strict=True)]

    def _fits(self, vector: Embeddings, windows: Indices) -> Floats:
        """Return log p(y = 1) of one sentence, ``(windows,)``."""
        fits: Floats = self.discriminator.scores(vector[None], windows)[0]
        return fits

    def _discriminative(self, cells: Cells) -> Floats:
        ids = np.array([window.id for window in cells.windows], dtype=np.int64)
        vectors = self.discriminator.encoder.encode(cells.sentences)
        logits = np.empty(len(cells))
        for members in groups_of(cells.rows):
            logits[members] = self._fits(vectors[cells.rows[members[0]]], ids[cells.columns[members]])
        return logits

    def _generative(self, cells: Cells, keys: Keys) -> dict[Kind, Floats]:
        """Return the terms of a generator for each kind ``(n,)``."""

        def measured(missing: Indices) -> Floats:
            return self._per_token(cells.take(missing))[..., None]

        return {kind: figures[:, 0] for kind, figures in self._kept(self._cells, keys, measured).items()}

    def _usual_of(self, windows: Sequence[Window], reference: Sequence[str], keys: Keys) -> dict[Kind, Floats]:
        """Return mean and deviation of each kind over the reference, ``(windows, 2)``."""

        def measured(missing: Indices) -> Floats:
            cells = Cells.grid(reference, [windows[int(index)] for index in missing])
            each = self._per_token(cells).reshape(len(self.kinds), len(reference), -1)
            return np.stack([each.mean(axis=1), each.std(axis=1)], axis=2)

        return self._kept(self._usual, keys, measured)

    def _per_token(self, cells: Cells) -> Floats:
        """Return the log probability a token of each kind, ``(kinds, n)``, and count the cells."""
        self.computed += len(cells) * len(self.kinds)
        return self.generator.measure(cells, self.kinds).per_token

    def _kept(
        self, caches: Mapping[Kind, CellCache], keys: Keys, measure: Callable[[Indices], Floats]
    ) -> dict[Kind, Floats]:
        """Return what the caches hold for each kind ``(n, width)``, measuring and keeping what one of them lacks."""
        looked = {kind: cache.find(keys) for kind, cache in caches.items()}
        cached = {kind: values.astype(np.float64) for kind, (values, _) in looked.items()}
        # What one kind lacks is measured for all kinds, as a generator measures them together.
        missing = np.flatnonzero(~np.logical_and.reduce([hits for _, hits in looked.values()]))
        if len(missing):
            # As the cache holds it, so that the first run gives the numbers of later ones.
            fresh = measure(missing).astype(np.float32)
            for (kind, (_, hits)), values in zip(looked.items(), fresh, strict=True):
                new = ~hits[missing]
                caches[kind].write(keys[missing[new]], values[new])
                cached[kind][missing[new]] = values[new]
        return cached


def window_keys(windows: Sequence[Window]) -> Keys:
    """Return a key for the context of each window, ``(windows, 2)``; the centre does not change it."""
    return content_keys([json.dumps([window.left, window.right]) for window in windows])
