"""Find texts with an encoder, then order the best of them with a cross-encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from samesense.encoder.cosine import cosine_score
from samesense.errors import ConfigError, ModelError
from samesense.inference.search.ties import TIE, in_order, same_as
from samesense.types import Encode, Score


@dataclass(frozen=True)
class Ranked:
    """One text of an answer.

    Attributes:
        position: place among the texts given, from 0.
        text: the text.
        cosine: by which it was found, in [-1, 1].
        score: of the cross-encoder, by which it stands where it stands.
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
    """Return the ``top_k`` texts nearest to ``query`` by cosine, in the order in which a cross-encoder puts them.

    The cross-encoder reads the query first and sees ``top_k`` pairs, however many texts there are. Of texts that tie
    the query's own comes first, and others stay in the order given; ``noise`` is that of both models, see
    :mod:`samesense.inference.search.ties`; ``encode_query`` is for a query where it is encoded otherwise than the
    texts. ModelError if a model gives another number of rows or scores than asked for,
    or one that is not finite.
    """
    if top_k < 1:
        raise ConfigError(f"At least one text must be asked for; received {top_k}. Example: 10")
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
