"""Vectors in the plane: t-SNE, from a start at their principal components, the same each time."""

from __future__ import annotations

from threading import RLock

import numpy as np
from threadpoolctl import threadpool_limits

from samesense.types import Embeddings, Floats

PERPLEXITY = 30.0
"""About how many neighbours of a text its place depends on; fewer where there are few texts."""

SEED = 0

_SPREAD = 1e-4
"""Standard deviation of the start: so small that no text is far from its neighbours before the first step."""

_ONE_AT_A_TIME = RLock()
"""The number of threads is one of the whole process."""


def project(vectors: Embeddings, start: Floats | None = None) -> Floats:
    """Return a place in the plane for each unit row of ``vectors`` ``(n, 2)``, near for near rows.

    Args:
        vectors: unit rows ``(n, dim)``.
        start: where the rows begin ``(n, 2)``, such as their places by another model, so that the two can be compared;
            by default at their first two principal components.

    Source: van der Maaten and Hinton 2008, "Visualizing Data using t-SNE"; Kobak and Linderman 2021, "Initialization is
        critical for preserving global data structure in both t-SNE and UMAP", for the start.
    """
    # Slow to import, and needed for maps alone.
    from sklearn.manifold import TSNE

    begin = principal_components(vectors) if start is None else start
    spread = float(np.std(begin[:, 0]))
    # Equal vectors have one place.
    if spread == 0:
        return np.zeros((len(vectors), 2))
    perplexity = min(PERPLEXITY, (len(vectors) - 1) / 3)
    model = TSNE(init=(begin / spread * _SPREAD).astype(np.float32), perplexity=perplexity, random_state=SEED)
    # Several threads add up in an order of their own, and the picture would differ each time.
    with _ONE_AT_A_TIME, threadpool_limits(1):
        return np.asarray(model.fit_transform(np.asarray(vectors, dtype=np.float32)), dtype=np.float64)


def principal_components(vectors: Embeddings) -> Floats:
    """Return the first two principal components of rows ``(n, 2)``; the largest value of each is positive."""
    centred = np.asarray(vectors, dtype=np.float64) - np.mean(vectors, axis=0, dtype=np.float64)
    left, lengths, _ = np.linalg.svd(centred, full_matrices=False)
    # A single dimension has one component.
    components = np.zeros((len(centred), 2))
    count = min(2, len(lengths))
    components[:, :count] = left[:, :count] * lengths[:count]
    # The sign of a component is arbitrary, and differs between machines.
    largest = np.abs(components).argmax(axis=0)
    signs = np.sign(components[largest, [0, 1]])
    return components * np.where(signs == 0, 1, signs)
