"""From scores and hits to what the server answers."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from samesense.inference.collection.collection import Found
from samesense.inference.explain import losses, word_spans
from samesense.inference.search.ties import TIE, in_order, same_as
from samesense.inference.serve.errors import invalid
from samesense.inference.serve.limits import Limits
from samesense.inference.serve.schemas import RerankRequest, SimilarityRequest
from samesense.inference.serve.service import Service
from samesense.types import Embeddings, Pair, Scores


def pairs_of(form: SimilarityRequest, limits: Limits) -> list[Pair]:
    """Return the pairs of a request: its own, or all of its texts with each other, row by row."""
    if (form.pairs is None) == (form.texts is None):
        raise invalid("Give either 'pairs', for the similarity of each, or 'texts', for all with each other.")
    if form.pairs is not None:
        if not form.pairs:
            raise invalid("'pairs' must hold a pair; received an empty list.", param="pairs")
        limits.check_count(len(form.pairs), "pairs")
        return form.pairs
    texts = form.texts or []
    limits.check_side(len(texts), "texts")
    limits.check_texts(texts, "texts")  # before equal ones are put together, so that their places are the caller's
    return [(first, second) for first in texts for second in texts]


Meaning = Callable[[Scores], npt.NDArray[Any]]
"""From scores to what is shown beside them."""


def meanings(form: SimilarityRequest, service: Service[Any]) -> dict[str, Meaning]:
    """Return what a request wants beside scores, by name."""
    by_name: dict[str, Meaning] = {}
    if form.calibrated:
        by_name["calibrated"] = service.calibrated().apply
    if form.yes_no or service.serving.threshold is not None:
        threshold = service.cut()
        by_name["yes"] = lambda scores: scores >= threshold
    return by_name


def similarities(scores: Scores, meaning: Mapping[str, Meaning], side: int | None) -> dict[str, Any]:
    """Return a list of scores, or a matrix of ``side`` rows, and beside them what they mean."""
    kinds = {"score" if side is None else "scores": scores} | {kind: means(scores) for kind, means in meaning.items()}
    if side is not None:
        return {"object": "matrix", **{kind: values.reshape(side, side).tolist() for kind, values in kinds.items()}}
    columns = {kind: values.tolist() for kind, values in kinds.items()}
    data = [{"index": i, **{kind: column[i] for kind, column in columns.items()}} for i in range(len(scores))]
    return {"object": "list", "data": data}


def explained(scores: Scores, texts: Pair) -> dict[str, Any]:
    """Return the score of two texts, and what it loses without each word, of the scores of :func:`occluded` pairs."""
    sides = (
        [
            {"text": text[start:end], "start": start, "end": end, "loss": loss}
            for (start, end), loss in zip(word_spans(text), shares.tolist(), strict=True)
        ]
        for text, shares in zip(texts, losses(scores, texts), strict=True)
    )
    return {"object": "explanation", "score": float(scores[0]), **dict(zip(("words1", "words2"), sides, strict=True))}


def ranked(
    scores: Scores, form: RerankRequest, tokens: int, *, with_documents: bool, noise: float = TIE
) -> dict[str, Any]:
    """Return the documents, best first; Cohere's clients read ``id`` and ``meta``.

    Of equal ones that comes first which is the query itself, and others stay in the order given.
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


def listed(found: Sequence[Sequence[Found]]) -> list[dict[str, Any]]:
    """Return the hits of each query, as plain JSON types."""
    return [{"index": index, "hits": [_as_json(hit) for hit in hits]} for index, hits in enumerate(found)]


def _as_json(hit: Found) -> dict[str, Any]:
    return {"id": hit.id, "score": float(hit.score), "text": hit.text, "metadata": dict(hit.metadata)}


def signed(service: Service[Any], tokens: int) -> dict[str, Any]:
    """Return what ends an answer: which model gave it, and how much it read, in OpenAI's shape."""
    return {"model": service.serving.name, "usage": {"prompt_tokens": tokens, "total_tokens": tokens}}
