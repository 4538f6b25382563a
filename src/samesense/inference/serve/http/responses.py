"""Build the answers of the server from scores, embeddings and hits."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from samesense.inference.collection.collection import SearchHit
from samesense.inference.explain import losses, word_spans
from samesense.inference.search.ties import TIE, in_order, same_as
from samesense.inference.serve.errors import invalid
from samesense.inference.serve.limits import Limits
from samesense.inference.serve.schemas import RerankRequest, SimilarityRequest
from samesense.inference.serve.service import Service
from samesense.types import Embeddings, Pair, Scores


def pairs_of(form: SimilarityRequest, limits: Limits) -> list[Pair]:
    """Return the pairs of a request: its ``pairs``, or all pairs of its ``texts``, row by row."""
    if (form.pairs is None) == (form.texts is None):
        raise invalid("Give either 'pairs', for the similarity of each, or 'texts', for all with each other.")
    if form.pairs is not None:
        if not form.pairs:
            raise invalid("'pairs' must hold a pair; received an empty list.", param="pairs")
        limits.check_count(len(form.pairs), "pairs")
        return form.pairs
    texts = form.texts or []
    limits.check_side(len(texts))
    limits.check_texts(texts, "texts")  # before deduplication, so that an error names the caller's index
    return [(first, second) for first in texts for second in texts]


Meaning = Callable[[Scores], npt.NDArray[Any]]
"""Computes from scores the values shown beside them: calibrated scores, or yes and no."""


def meanings(form: SimilarityRequest, service: Service[Any]) -> dict[str, Meaning]:
    """Return the columns that a request wants beside the scores, by name."""
    by_name: dict[str, Meaning] = {}
    if form.calibrated:
        by_name["calibrated"] = service.calibrated().apply
    if form.yes_no or service.serving.threshold is not None:
        threshold = service.yes_threshold()
        by_name["yes"] = lambda scores: scores >= threshold
    return by_name


def similarities(scores: Scores, meaning: Mapping[str, Meaning], side: int | None) -> dict[str, Any]:
    """Return a list of scores, or with ``side`` a square matrix of that many rows, with the columns of ``meaning``."""
    arrays = {"score" if side is None else "scores": scores}
    for name, compute in meaning.items():
        arrays[name] = compute(scores)
    if side is not None:
        return {"object": "matrix", **{name: values.reshape(side, side).tolist() for name, values in arrays.items()}}
    columns = {name: values.tolist() for name, values in arrays.items()}
    data = [{"index": i, **{name: column[i] for name, column in columns.items()}} for i in range(len(scores))]
    return {"object": "list", "data": data}


def explained(scores: Scores, texts: Pair) -> dict[str, Any]:
    """Return the score of two texts and its loss without each word, from the scores of the :func:`occluded` pairs."""
    sides = (
        [
            {"text": text[start:end], "start": start, "end": end, "loss": loss}
            for (start, end), loss in zip(word_spans(text), text_losses.tolist(), strict=True)
        ]
        for text, text_losses in zip(texts, losses(scores, texts), strict=True)
    )
    return {"object": "explanation", "score": float(scores[0]), **dict(zip(("words1", "words2"), sides, strict=True))}


def ranked(
    scores: Scores, form: RerankRequest, tokens: int, *, with_documents: bool, noise: float = TIE
) -> dict[str, Any]:
    """Return the documents, best first; Cohere's clients read ``id`` and ``meta``.

    Among equal scores the query itself comes first, and the other documents keep their order.
    """
    indices = np.arange(len(scores))
    order = in_order(scores, indices, same_as(form.query, form.documents), noise)[: form.top_n].tolist()
    results: list[dict[str, Any]] = [{"index": i, "relevance_score": float(scores[i])} for i in order]
    if with_documents:
        for result in results:
            result["document"] = {"text": form.documents[result["index"]]}
    meta = {"tokens": {"input_tokens": tokens}}
    return {"object": "list", "id": str(uuid4()), "results": results, "meta": meta}


def embeddings_answer(rows: Embeddings, form: Literal["float", "base64"]) -> dict[str, Any]:
    """Return the answer to POST /v1/embeddings; base64 holds little-endian float32."""
    if form == "base64":
        encoded: list[Any] = [base64.b64encode(row.astype("<f4").tobytes()).decode("ascii") for row in rows]
    else:
        encoded = np.asarray(rows, dtype=np.float32).tolist()
    data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(encoded)]
    return {"object": "list", "data": data}


def hits_of_queries(query_hits: Sequence[Sequence[SearchHit]]) -> list[dict[str, Any]]:
    """Return the hits of each query, as JSON types."""
    return [{"index": index, "hits": [_as_json(hit) for hit in hits]} for index, hits in enumerate(query_hits)]


def _as_json(hit: SearchHit) -> dict[str, Any]:
    return {"id": hit.id, "score": float(hit.score), "text": hit.text, "metadata": dict(hit.metadata)}


def signed(service: Service[Any], tokens: int) -> dict[str, Any]:
    """Return the fields ``model`` and ``usage`` of an answer, as OpenAI has them."""
    return {"model": service.serving.name, "usage": {"prompt_tokens": tokens, "total_tokens": tokens}}
