"""The forms of requests and of answers, with those of OpenAI's embeddings interface.

Source: the OpenAI API, POST /v1/embeddings and GET /v1/models; the shape of /rerank is that of Jina and Cohere.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema

from samesense.errors import ConfigError
from samesense.inference.collection.collection import Found
from samesense.inference.serve.exception_handlers import RequestError, invalid
from samesense.inference.serve.limits import Limits
from samesense.inference.serve.service import Service
from samesense.types import Embeddings, Pair, Scores

Ids = tuple[int, ...]
"""Token ids of one text."""


def read_input(value: object) -> list[str] | list[Ids]:
    """Return the ``input`` of a request as a list: of texts, or of token ids of texts."""
    many = [value] if isinstance(value, str) or _is_ids(value) else value
    if isinstance(many, list) and many:
        if all(isinstance(one, str) for one in many):
            return list(many)
        if all(_is_ids(one) for one in many):
            return [tuple(one) for one in many]
    what = "an empty list" if many == [] else f"a {type(value).__name__}"
    if isinstance(value, list) and value:
        what = f"a list of {' and '.join(sorted({type(one).__name__ for one in value}))}"
    raise ValueError(
        f"must be a text, a list of texts, token ids, or a list of those, all of one kind; received {what}"
    )


def _is_ids(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, int) and not isinstance(one, bool) and 0 <= one < 2**31 for one in value)
    )


_INPUT = {
    "anyOf": [
        {"type": "string"},
        {"type": "array", "items": {"type": "string"}},
        {"type": "array", "items": {"type": "integer"}},
        {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
    ]
}
Input = Annotated[list[str] | list[Ids], PlainValidator(read_input), WithJsonSchema(_INPUT)]


class EmbeddingsRequest(BaseModel):
    """POST /v1/embeddings. Fields that are not listed are ignored, as clients send what other servers know."""

    model: str
    input: Input
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(default=None, ge=1)
    user: str | None = None


class _Own(BaseModel):
    model_config = ConfigDict(extra="forbid")

    model: str | None = None


class SimilarityRequest(_Own):
    """POST /similarity: the similarity of each of ``pairs``, or of all ``texts`` with each other.

    Beside it, if asked for, the ``calibrated`` one, and yes or no by the threshold of the calibration.
    """

    pairs: list[tuple[str, str]] | None = None
    texts: list[str] | None = None
    calibrated: bool = False
    yes_no: bool = False


class RerankRequest(_Own):
    """POST /rerank: ``documents`` in the order of how well they fit ``query``."""

    query: str
    documents: list[str]
    top_n: int | None = Field(default=None, ge=1)
    return_documents: bool = False


class SearchRequest(_Own):
    """POST /search: the texts of the collection nearest to ``query``, only those with the metadata ``where``."""

    query: str | list[str]
    top: int = Field(default=10, ge=1)
    where: dict[str, Any] | None = None


def usage(tokens: int) -> dict[str, int]:
    """Return the tokens of a request in OpenAI's shape."""
    return {"prompt_tokens": tokens, "total_tokens": tokens}


def embeddings_answer(rows: Embeddings, form: Literal["float", "base64"], model: str, tokens: int) -> dict[str, Any]:
    """Return the answer to POST /v1/embeddings; base64 holds little-endian float32."""
    if form == "base64":
        shown: list[Any] = [base64.b64encode(row.astype("<f4").tobytes()).decode("ascii") for row in rows]
    else:
        shown = np.asarray(rows, dtype=np.float32).tolist()
    data = [{"object": "embedding", "index": place, "embedding": one} for place, one in enumerate(shown)]
    return {"object": "list", "data": data, "model": model, "usage": usage(tokens)}


def pairs_of(form: SimilarityRequest, limits: Limits) -> list[Pair]:
    """Return the pairs of a request: its own, or all of its texts with each other, row by row."""
    if (form.pairs is None) == (form.texts is None):
        raise invalid("Give either 'pairs', for the similarity of each, or 'texts', for all with each other.")
    if form.pairs is not None:
        if not form.pairs or len(form.pairs) > limits.texts:
            raise invalid(
                f"'pairs' may be 1 to {limits.texts}; received {len(form.pairs)}.",
                param="pairs", status=413 if form.pairs else 400,
            )  # fmt: skip
        return form.pairs
    texts = form.texts or []
    if not texts or len(texts) > limits.matrix:
        raise invalid(
            f"'texts' are compared with each other and may be 1 to {limits.matrix}; received {len(texts)}.",
            param="texts", status=413 if texts else 400,
        )  # fmt: skip
    limits.check_texts(texts, "texts")  # before equal ones are put together, so that their places are the caller's
    return [(one, other) for one in texts for other in texts]


Meaning = Callable[[Scores], npt.NDArray[Any]]
"""From scores to what is shown beside them."""


def meanings(form: SimilarityRequest, service: Service) -> dict[str, Meaning]:
    """Return what a request wants beside scores, by name."""
    found: dict[str, Meaning] = {}
    if form.calibrated:
        found["calibrated"] = service.calibrated().apply
    if form.yes_no:
        calibration = service.calibrated()
        try:
            calibration.threshold()
        except ConfigError as error:
            raise RequestError(404, str(error), code="no_threshold", param="yes_no") from error
        found["yes"] = calibration.says_yes
    return found


def similarities(scores: Scores, meaning: Mapping[str, Meaning], side: int | None) -> dict[str, Any]:
    """Return a list of scores, or a matrix of ``side`` rows, and beside them what they mean."""
    kinds = {"score" if side is None else "scores": scores} | {kind: means(scores) for kind, means in meaning.items()}
    if side is not None:
        return {"object": "matrix", **{kind: values.reshape(side, side).tolist() for kind, values in kinds.items()}}
    columns = {kind: values.tolist() for kind, values in kinds.items()}
    data = [{"index": i, **{kind: column[i] for kind, column in columns.items()}} for i in range(len(scores))]
    return {"object": "list", "data": data}


def ranked(scores: Scores, form: RerankRequest) -> list[dict[str, Any]]:
    """Return the best first; documents that tie stay in the order given."""
    order = sorted(range(len(scores)), key=lambda place: (-scores[place], place))[: form.top_n]
    results: list[dict[str, Any]] = [{"index": i, "relevance_score": float(scores[i])} for i in order]
    if form.return_documents:
        for result in results:
            result["document"] = {"text": form.documents[result["index"]]}
    return results


def as_json(hit: Found) -> dict[str, Any]:
    """Return a text that was found, as plain JSON types."""
    return {"id": hit.id, "score": float(hit.score), "text": hit.text, "metadata": dict(hit.metadata)}


def policy(page: str) -> str:
    """Return a content security policy under which only the page's own script and style run."""

    def own(tag: str) -> str:
        content = page.partition(f"<{tag}")[2].partition(">")[2].partition(f"</{tag.split()[0]}>")[0]
        return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"

    return (
        f"default-src 'none'; script-src {own('script')}; style-src {own('style')}; connect-src 'self'; "
        "img-src data:; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
    )
