"""How well sentences fit into contexts of a corpus: Eq. 1 over cached sentence vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from scipy.sparse import csr_array

from samesense.context.corpus.corpus import Corpus, Ids, spans
from samesense.context.discriminator.encoder import Reader, corpus_vectors, load_reader
from samesense.errors import ConfigError
from samesense.types import Embeddings, Floats

BLOCK_ROWS = 16_384
"""Sentences of the corpus multiplied at a time."""


class Discriminator:
    """The trained network over one corpus, whose sentence vectors are made once and kept on the disk.

    The logit of a sentence in a context is its query for the left by the mean of the left vectors, the same for the
    right, and a term of its own; see :class:`~samesense.context.discriminator.lstm.Coherence`. A mean of products is
    the product of the mean, so each neighbouring sentence is multiplied once, whatever the number of windows it is in.

    Args:
        reader: the trained network.
        corpus: the contexts, cut into windows like those on which it was trained.
        folder: holds cached vectors.

    Raises:
        ConfigError: if the corpus is cut into other windows.
        DataError: if cached vectors are damaged.
    """

    def __init__(self, reader: Reader, corpus: Corpus, folder: Path) -> None:
        trained, given = ((shape.left, shape.right) for shape in (reader.shape, corpus.shape))
        if trained != given:
            raise ConfigError(
                f"The discriminator was trained on {trained[0]} sentences before and {trained[1]} after the centre, "
                f"and the corpus is cut into {given[0]} and {given[1]}. Open it with the same shape, or train anew."
            )
        self.reader, self.corpus = reader, corpus
        self._vectors = corpus_vectors(reader, corpus, folder)

    @classmethod
    def open(cls, model: Path, corpus: Corpus, folder: Path, *, device: str = "cpu") -> Discriminator:
        """Return the discriminator of a model folder, over ``corpus``, with its cache in ``folder``."""
        return cls(load_reader(model, device=device), corpus, folder)

    def log_probability(self, sentences: Sequence[str], windows: Sequence[int] | Ids) -> Floats:
        """Return log p(y = 1) of each sentence in the place of the centre of each window ``(sentences, windows)``.

        Args:
            sentences: any texts.
            windows: numbers of windows of the corpus.
        """
        return self.scores(self.reader.encode(sentences), windows)

    def scores(self, vectors: Embeddings, windows: Sequence[int] | Ids) -> Floats:
        """Return log p(y = 1) like :meth:`log_probability`, of sentences whose vectors are known.

        Args:
            vectors: sentence vectors ``(sentences, dim)``.
            windows: numbers of windows of the corpus.
        """
        ids = np.asarray(windows, dtype=np.int64)
        device = self.reader.model.last.weight.device
        with torch.inference_mode():
            parts = self.reader.model.queries(torch.from_numpy(np.asarray(vectors)).to(device))
        left, right, own = (part.detach().cpu().numpy() for part in parts)
        first, end = self.corpus.window_bounds(ids)
        logits = self._products(left, first, ids) + self._products(right, ids + 1, end) + own[:, None]
        scores: Floats = -np.logaddexp(0.0, -logits)
        return scores

    def _products(self, queries: Embeddings, starts: Ids, ends: Ids) -> Floats:
        """Return each query times the mean of the vectors from each start up to its end ``(queries, spans)``.

        An empty span, a side that takes no part, gives 0. In float64, so that what is computed beside a product
        changes nothing that a rounding to 9 decimals would show.
        """
        rows, place = np.unique(spans(starts, ends), return_inverse=True)
        products, wanted = np.empty((len(rows), len(queries))), queries.T.astype(np.float64)
        for at in range(0, len(rows), BLOCK_ROWS):
            products[at : at + BLOCK_ROWS] = self._vectors[rows[at : at + BLOCK_ROWS]].astype(np.float64) @ wanted
        lengths = ends - starts
        shares = np.repeat(1.0 / np.maximum(lengths, 1), lengths)
        limits = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
        means: Floats = csr_array((shares, place, limits), shape=(len(starts), len(rows))) @ products
        return means.T
