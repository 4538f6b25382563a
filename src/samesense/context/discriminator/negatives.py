"""Sentences that do not belong into a window: half from its document, half from anywhere."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from samesense.context.corpus.corpus import Corpus, Ids
from samesense.errors import DataError

ATTEMPTS = 100
"""How often a sentence is drawn anew that is one of the window's or has the same words as its centre."""


def draw_negatives(corpus: Corpus, windows: Ids, count: int, seed: list[int]) -> tuple[Ids, npt.NDArray[np.bool_]]:
    """Draw replacements of the centres of windows.

    Every second one, over all windows, comes from the document of its window, the others from the whole corpus, all of
    them uniformly. No sentence of the window itself is taken, nor one with the same words as the centre.

    Source: Sun et al. 2022, section 3.2.1. Differs: leaving those sentences out, of which the paper says nothing; the
        one would teach that neighbours resemble too much, the other is no negative. Where a document has no other
        sentence, its replacement comes from anywhere; the second array tells.

    Args:
        corpus: where the windows and the sentences are.
        windows: numbers of windows ``(n,)``.
        count: replacements for each.
        seed: of the draws; they also depend on the order of ``windows``.

    Returns:
        Sentences, and whether each was drawn from the document of its window, both ``(n, count)``.

    Raises:
        DataError: if the corpus has no sentence that can replace a centre.
    """
    generator = np.random.default_rng(seed)
    flat = np.repeat(windows, count)
    first, end = corpus.window_bounds(flat)
    start, stop = corpus.document_bounds(flat)
    near = np.arange(len(flat)) % 2 == 0
    near = generator.permutation(near) & (stop - start > end - first)
    drawn = np.zeros(len(flat), dtype=np.int64)
    missing = np.arange(len(flat))
    for attempt in range(ATTEMPTS):
        near[missing] &= attempt < ATTEMPTS // 2  # a document of nothing but the same sentence
        low, high = np.where(near, start, 0)[missing], np.where(near, stop, len(corpus))[missing]
        inner = (end - first)[missing]
        if np.any(high - low <= inner):
            break
        place = generator.integers(low, high - inner)
        drawn[missing] = place + np.where(place >= first[missing], inner, 0)  # steps over the window
        same = corpus.text_keys[drawn[missing]] == corpus.text_keys[flat[missing]]
        missing = missing[same]
        if len(missing) == 0:
            return drawn.reshape(-1, count), near.reshape(-1, count)
    raise DataError(
        f"A sentence of another window, with other words, must be there to replace that of window {flat[missing][0]}, "
        f"and none was found in {len(corpus)} sentences. Give more documents."
    )
