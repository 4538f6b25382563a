"""Request formats and paths of other servers, so that their clients work here: TEI, Infinity, Cohere and Azure.

Source: the OpenAPI description of Text Embeddings Inference 1.8 (POST /embed, POST /rerank), that of Infinity 0.0.77
(OpenAI's paths without /v1), the Cohere API (POST /v1/embed, POST /v2/embed) and Azure OpenAI (deployments, api-key).
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import partial
from typing import Any, Literal
from uuid import uuid4

import numpy as np
from fastapi import FastAPI, Request, Response
from pydantic import Field, model_validator

from samesense.inference.search.exact import unit_rows
from samesense.inference.serve.errors import invalid
from samesense.inference.serve.http.answers import Answer, finish
from samesense.inference.serve.http.responses import ranked, signed
from samesense.inference.serve.schemas import Documents, Form, Input, RerankRequest, Texts, may_cut, task_of
from samesense.inference.serve.service import EmbeddingService
from samesense.inference.serve.services import Services
from samesense.types import Embeddings

Direction = Literal["left", "right", "Left", "Right"]


class EmbedRequest(Form):
    """POST /embed of Text Embeddings Inference: the answer is the bare list of embeddings of ``inputs``."""

    inputs: Input
    normalize: bool | None = None
    truncate: bool | None = None
    truncation_direction: Direction = "right"
    prompt_name: str | None = None
    dimensions: int | None = Field(default=None, ge=1)


class PlainRerankRequest(Form):
    """POST /rerank: of Infinity with ``documents``, of Text Embeddings Inference with ``texts``."""

    model: str | None = None
    query: str
    documents: Documents | None = None
    texts: Texts | None = None
    top_n: int | None = Field(default=None, ge=1)
    return_documents: bool = False
    return_text: bool = False
    raw_scores: bool = False
    truncate: bool | None = None
    truncation_direction: Direction = "right"

    @model_validator(mode="after")
    def _one_list(self) -> PlainRerankRequest:
        if (self.documents is None) == (self.texts is None):
            raise ValueError("Give either 'documents' or 'texts'")
        return self


class CohereEmbedRequest(Form):
    """POST /v1/embed and /v2/embed of Cohere."""

    model: str | None = None
    texts: Texts
    input_type: str | None = None
    embedding_types: list[Literal["float", "base64"]] | None = None
    output_dimension: int | None = Field(default=None, ge=1)
    truncate: Literal["NONE", "START", "END"] | None = None


def add_dialects(app: FastAPI, services: Services) -> None:
    """Add the routes of other servers to an application."""
    _add_text_embeddings_inference(app, services)
    _add_plain_rerank(app, services)
    _add_cohere(app, services)


def _add_text_embeddings_inference(app: FastAPI, services: Services) -> None:
    @app.post("/", include_in_schema=False)
    @app.post("/embed")
    async def embed(request: Request, form: EmbedRequest) -> Response:
        service = services.embedder(None)
        normalized = _normalization(form, service)
        _check_side(form.truncation_direction)
        task = task_of(form.prompt_name)
        if form.prompt_name is not None and not (task and service.serving.tells_tasks_apart):
            raise invalid(
                "'prompt_name' is known for models alone that tell queries from documents; other texts get the prompt "
                "that the model was saved with. Leave it out.",
                param="prompt_name",
            )

        async def work() -> Answer:
            rows, _ = await service.embed(form.inputs, "inputs", truncate=form.truncate, task=task)
            rows = normalized(service.shortened(rows, form.dimensions))
            return lambda: np.asarray(rows, dtype=np.float32).tolist()

        return await finish(request, work(), services.limits)


def _normalization(form: EmbedRequest, service: EmbeddingService) -> Callable[[Embeddings], Embeddings]:
    """Return the function that gives embeddings the length that a request asks for; RequestError if none can."""
    if form.normalize is False and service.serving.normalize:
        raise invalid(
            "Vectors have length 1 here; `samesense serve --no-normalize` gives them as the model does. Leave "
            "'normalize' out.",
            param="normalize",
        )
    if form.normalize:
        return unit_rows
    return lambda rows: rows


def _check_side(direction: str) -> None:
    """Raise RequestError for truncation at the start of a text."""
    if direction.lower() == "left":
        raise invalid(
            "Texts that are too long are cut at their end; received 'truncation_direction' left. Leave it out.",
            param="truncation_direction",
        )


def _add_plain_rerank(app: FastAPI, services: Services) -> None:
    @app.post("/rerank")
    async def rerank(request: Request, form: PlainRerankRequest) -> Response:
        service = services.reranker(form.model)
        _check_side(form.truncation_direction)
        if form.raw_scores:
            raise invalid(
                "Scores are those that the model gives; received 'raw_scores' true. Leave it out.", param="raw_scores"
            )
        param = "documents" if form.texts is None else "texts"
        documents = form.documents if form.texts is None else form.texts

        async def work() -> Answer:
            scores, tokens = await service.rerank(form.query, documents or [], param, truncate=form.truncate)
            plain = RerankRequest(query=form.query, documents=documents or [], top_n=form.top_n)
            with_documents = form.return_documents if form.texts is None else form.return_text
            answer = partial(ranked, scores, plain, tokens, with_documents=with_documents, noise=service.serving.noise)
            if form.texts is None:
                return lambda: answer() | signed(service, tokens)
            return lambda: [_as_rank(result) for result in answer()["results"]]

        return await finish(request, work(), services.limits)


def _as_rank(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result of /v1/rerank in the form of Text Embeddings Inference."""
    rank = {"index": result["index"], "score": result["relevance_score"]}
    if "document" in result:
        rank["text"] = result["document"]["text"]
    return rank


def _add_cohere(app: FastAPI, services: Services) -> None:
    @app.post("/v1/embed")
    @app.post("/v2/embed")
    async def cohere_embed(request: Request, form: CohereEmbedRequest) -> Response:
        service = services.embedder(form.model)
        truncate = may_cut(form.truncate)
        types = form.embedding_types
        if types is None and request.url.path == "/v2/embed":
            types = ["float"]  # v2 always answers by type, v1 only on request

        async def work() -> Answer:
            rows, tokens = await service.embed(form.texts, "texts", task=task_of(form.input_type), truncate=truncate)
            rows = service.shortened(rows, form.output_dimension)
            return lambda: _cohere_answer(rows, types, form.texts, tokens)

        return await finish(request, work(), services.limits)


def _cohere_answer(rows: Embeddings, types: list[Any] | None, texts: list[str], tokens: int) -> dict[str, Any]:
    writers: dict[str, Callable[[], Any]] = {
        "float": lambda: np.asarray(rows, dtype=np.float32).tolist(),
        "base64": lambda: [base64.b64encode(row.astype("<f4").tobytes()).decode("ascii") for row in rows],
    }
    if types is None:
        kind: str = "embeddings_floats"
        embeddings: Any = writers["float"]()
    else:
        kind = "embeddings_by_type"
        embeddings = {name: writers[name]() for name in types}
    meta = {"api_version": {"version": "1" if types is None else "2"}, "billed_units": {"input_tokens": tokens}}
    return {"id": str(uuid4()), "response_type": kind, "embeddings": embeddings, "texts": texts, "meta": meta}
