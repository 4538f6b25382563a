"""Standardization of a start model whose embeddings all lie in a narrow cone, by a linear layer behind it.

In a language model that was never tuned for sentences, any two sentences have a cosine near 1, which slows training
down. The layer is an ordinary ``Dense`` and is trained with the model.
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
"""Mean cosine of random pairs from which on a cone counts as narrow; an untuned BERT of six layers had 0.69."""

MEASURED = 256
"""Number of texts by which the cone is measured."""

FITTED = 2000
"""Number of texts on which the map is fitted."""


def standardize(model: SentenceTransformer, texts: Sequence[str], method: Standardize, *, precision: Precision) -> str:
    """Append the map to ``model`` if it is requested or needed; return in words what was measured and done.

    ``auto`` subtracts the mean if random pairs of ``texts``, the training texts, have a mean cosine of :data:`NARROW`
    or more; it never whitens, which hinders training (``docs/models.md``). ``whiten`` uses a shrunk covariance (Ledoit
    and Wolf 2004). Before either, the sink token of a language model is left out of the mean pooling. With fewer than
    two distinct texts, or embeddings that are all zeros, the model is left as it is.
    """
    distinct = list(dict.fromkeys(texts))
    if method == "none" or len(distinct) < 2:
        return ""
    cone = _cone(encode(model, _spread(distinct, MEASURED), precision=precision))
    finding = f"random pairs of training texts have a mean cosine of {cone:.2f}"
    map_name: Standardize = method
    if method == "auto":
        map_name = "mean" if cone >= NARROW else "none"
    if map_name == "none":
        return f"start as it is: {finding}"
    sinkless = leave_out_sink(model)
    # Encoded again, as the pooling has changed if a sink is left out.
    rows = encode(model, _spread(distinct, FITTED), precision=precision)
    if map_name == "whiten":
        append_whitening(model, Whitening.shrunk(rows))
        done = f"whitened by {len(rows)} training texts"
    else:
        append_whitening(model, Whitening.centred(rows))
        done = f"minus its mean over {len(rows)} training texts"
    if sinkless:
        done += ", without its sink token"
    return f"start {done}: {finding}"


def _spread(texts: Sequence[str], count: int) -> list[str]:
    """Return ``count`` evenly spaced texts, as neighbouring texts may share a topic."""
    return [texts[int(position)] for position in np.linspace(0, len(texts) - 1, min(count, len(texts)))]


def _cone(rows: Embeddings) -> float:
    """Return the mean cosine of pairs of rows; 0 if fewer than two rows are non-zero."""
    nonzero = rows[np.any(rows != 0, axis=1)]
    if len(nonzero) > 1:
        return anisotropy(nonzero)
    return 0.0
