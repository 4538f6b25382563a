"""A start whose texts all lie in a narrow cone is spread by a linear layer behind the model.

A language model that was never tuned for sentences holds any two of them at a cosine near 1, in which training first
has to find its way. The layer is an ordinary ``Dense``, and is trained with the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sentence_transformers import SentenceTransformer

from samesense.encoder.encode import encode
from samesense.encoder.maps.sink import leave_out_sink
from samesense.encoder.maps.whitening import Whitening, append_whitening
from samesense.metrics import anisotropy
from samesense.types import Embeddings, Precision, Standardize

NARROW = 0.5
"""Mean cosine of random pairs from which a cone is narrow; a BERT of six layers that was never tuned had 0.69."""

MEASURED, FITTED = 256, 2000
"""Texts by which a cone is measured, and by which a map is fitted."""


def standardize(model: SentenceTransformer, texts: Sequence[str], how: Standardize, *, precision: Precision) -> str:
    """Append the map to ``model``, where one is asked for or needed; return in words what was found and done.

    ``auto`` subtracts the mean where random pairs of ``texts``, the training texts, have a mean cosine of
    :data:`NARROW` or more; it never whitens, which hinders training (``docs/models.md``). The covariance of ``whiten``
    is shrunk (Ledoit and Wolf 2004). Before either, the sink token of a language model is left out of its mean. Few
    texts, or texts without a direction, leave the model as it is.
    """
    distinct = list(dict.fromkeys(texts))
    if how == "none" or len(distinct) < 2:
        return ""
    cone = _cone(encode(model, _spread(distinct, MEASURED), precision=precision))
    found = f"random pairs of training texts have a mean cosine of {cone:.2f}"
    chosen = how if how != "auto" else "mean" if cone >= NARROW else "none"
    if chosen == "none":
        return f"start as it is: {found}"
    sinkless = leave_out_sink(model)
    rows = encode(model, _spread(distinct, FITTED), precision=precision)
    append_whitening(model, Whitening.shrunk(rows) if chosen == "whiten" else Whitening.centred(rows))
    done = f"{'whitened' if chosen == 'whiten' else 'less its mean'} by {len(rows)} training texts"
    return f"start {done}{', less its sink token' if sinkless else ''}: {found}"


def _spread(texts: Sequence[str], count: int) -> list[str]:
    """Return ``count`` texts, evenly from all, as neighbours may be of one topic."""
    return [texts[int(at)] for at in np.linspace(0, len(texts) - 1, min(count, len(texts)))]


def _cone(rows: Embeddings) -> float:
    """Return the mean cosine of pairs of rows; 0 where fewer than two have a direction."""
    kept = rows[np.any(rows != 0, axis=1)]
    return anisotropy(kept) if len(kept) > 1 else 0.0
