"""Windows of a corpus to train on, and windows held out."""

from __future__ import annotations

import numpy as np

from samesense.context.corpus.corpus import Corpus
from samesense.errors import ConfigError
from samesense.types import Indices

HELD_OUT_WINDOWS = 500
"""Windows that are held out to choose the best checkpoint, unless another number is given."""


def hold_out(corpus: Corpus, count: int, seed: int) -> tuple[Indices, Indices]:
    """Return the windows to train on, and those of whole documents drawn at random until ``count`` are held out.

    The windows of one document share sentences, so a document is on one side only; in a corpus of one document, its
    last windows are held out.

    Raises:
        ConfigError: if ``count`` is more than half of the windows.
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
    order = np.random.default_rng(seed).permutation(len(names))
    enough = min(len(names) - 1, 1 + int(np.searchsorted(np.cumsum(sizes[order]), count)))
    out = np.isin(documents, names[order[:enough]])
    return windows[~out], windows[out]
