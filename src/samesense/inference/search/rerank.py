"""Retrieve texts with a bi-encoder, then rerank the best with a cross-encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from samesense.choices import check_count
from samesense.encoder.cosine import cosine_score
from samesense.errors import ModelError
from samesense.inference.search.ties import TIE, in_order, same_as
from samesense.types import Encode, Score


@dataclass(frozen=True)
class Ranked:
    """A reranked text.

    Attributes:
        position: index among the given texts, from 0.
        text: the text.
        cosine: cosine by which it was retrieved, in [-1, 1].
        score: score of the cross-encoder, by which it is ranked.
    """

    position: int
    text: str
    cosine: float
    score: float


def rerank(
    query: str,
    texts: Sequence[str],
    bi: Encode,
    cross: Score,
    top_k: int = 10,
    *,
    noise: tuple[float, float] = (TIE, TIE),
    encode_query: Encode | None = None,
) -> list[Ranked]:
    """Return the ``top_k`` texts nearest to ``query`` by cosine, ranked by a cross-encoder.

    The cross-encoder scores only the ``top_k`` pairs, the query first. Among ties the query's own text comes first, and
    others keep their order; ``noise`` is that of both models, see :mod:`samesense.inference.search.ties`.
    ``encode_query`` encodes the query where the model distinguishes queries from documents. ModelError if a model
    returns a wrong number of rows or scores, or one that is not finite.
    """
    check_count("top_k", top_k)
    cosines = cosine_score(bi, encode_query)([(query, text) for text in texts])
    same = same_as(query, texts)
    nearest = in_order(cosines, np.arange(len(texts)), same, noise[0])[:top_k]
    scores = np.asarray(cross([(query, texts[index]) for index in nearest]), dtype=np.float64)
    if scores.shape != nearest.shape or not np.isfinite(scores).all():
        raise ModelError(
            f"The cross-encoder must give one finite score for each of {len(nearest)} pairs; got {scores.tolist()[:5]}."
        )
    order = in_order(scores, nearest, same[nearest], noise[1])
    return [Ranked(int(nearest[i]), texts[nearest[i]], float(cosines[nearest[i]]), float(scores[i])) for i in order]
