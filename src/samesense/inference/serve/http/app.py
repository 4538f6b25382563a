"""The routes of the server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.responses import JSONResponse

from samesense.inference.explain import occluded, word_spans
from samesense.inference.serve.http.answers import Answer, finish
from samesense.inference.serve.http.dialects import add_dialects
from samesense.inference.serve.http.exception_handlers import add_exception_handlers
from samesense.inference.serve.http.labels import LabelFile, add_labels, shown_scale
from samesense.inference.serve.http.middleware import RequestMiddleware
from samesense.inference.serve.http.pages import add_page
from samesense.inference.serve.http.responses import (
    embeddings_answer,
    explained,
    hits_of_queries,
    meanings,
    pairs_of,
    ranked,
    signed,
    similarities,
)
from samesense.inference.serve.schemas import (
    EmbeddingsRequest,
    ExplainRequest,
    RerankRequest,
    SearchRequest,
    SimilarityRequest,
    may_cut,
    task_of,
)
from samesense.inference.serve.service import EmbeddingService, Service
from samesense.inference.serve.services import Services


def build_app(
    services: Services, *, keys: Sequence[str] = (), hosts: Sequence[str] = (), labels: LabelFile | None = None
) -> FastAPI:
    """Return the ASGI application that serves models.

    Clients must send one of ``keys`` and name one of ``hosts`` in the Host header; an empty list lets everyone in. With
    ``labels`` the page lets its users label pairs, and the labels are saved there.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await services.start()
        yield
        await services.stop()

    # The middleware removes final slashes, so that there is nothing to redirect.
    app = FastAPI(title="samesense", lifespan=lifespan, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.add_middleware(RequestMiddleware, traffic=services, keys=keys, hosts=hosts)
    add_exception_handlers(app)
    _add_information(app, services, with_labels=labels is not None)
    _add_work(app, services)
    _add_pairs(app, services)
    add_dialects(app, services)
    if labels is not None:
        add_labels(app, labels, services.limits)
    return app


def _add_information(app: FastAPI, services: Services, *, with_labels: bool) -> None:
    add_page(app, "index.html")

    def status_of() -> tuple[str, int]:
        if services.stopping:
            return "stopping", 503
        if not services.alive:
            return "broken", 503
        return "ok", 200

    @app.head("/health", include_in_schema=False)
    @app.get("/health")
    async def health() -> JSONResponse:
        status, code = status_of()
        models = [service.facts() for service in services.all]
        labels = shown_scale() if with_labels else None
        facts = {"status": status, "models": models, "labels": labels}
        return JSONResponse(facts, code)

    # HAProxy's `option httpchk` asks for the options of "/".
    @app.options("/", include_in_schema=False)
    @app.options("/health", include_in_schema=False)
    async def health_status() -> Response:
        _, code = status_of()
        return Response(status_code=code, headers={"Allow": "GET, HEAD, OPTIONS"})

    @app.head("/metrics", include_in_schema=False)
    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(services.metrics.text(), media_type="text/plain; version=0.0.4")

    @app.head("/v1/models", include_in_schema=False)
    @app.get("/openai/v1/models", include_in_schema=False)
    @app.get("/models", include_in_schema=False)
    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": [_model(service) for service in services.all]}

    # Names of models on the hub hold a slash.
    @app.get("/v1/models/{name:path}")
    async def model(name: str) -> dict[str, Any]:
        return _model(services.find(name))


def _add_work(app: FastAPI, services: Services) -> None:
    limits = services.limits

    @app.post("/openai/v1/embeddings", include_in_schema=False)
    @app.post("/embeddings", include_in_schema=False)
    @app.post("/v1/embeddings")
    async def embeddings(request: Request, form: EmbeddingsRequest) -> Response:
        return await _embedded(request, form, services.embedder(form.model))

    @app.post("/openai/deployments/{deployment:path}/embeddings", include_in_schema=False)
    async def deployment_embeddings(request: Request, deployment: str, form: EmbeddingsRequest) -> Response:
        return await _embedded(request, form, services.embedder(deployment))

    async def _embedded(request: Request, form: EmbeddingsRequest, service: EmbeddingService) -> Response:
        truncate = may_cut(form.truncate)
        task = task_of(form.input_type or form.task)

        async def work() -> Answer:
            rows, tokens = await service.embed(form.input, "input", truncate=truncate, task=task)
            rows = service.shortened(rows, form.dimensions)
            return lambda: embeddings_answer(rows, form.encoding_format) | signed(service, tokens)

        return await finish(request, work(), limits)

    @app.post("/v2/rerank")
    @app.post("/v1/rerank")
    async def rerank(request: Request, form: RerankRequest) -> Response:
        service = services.reranker(form.model)
        by_default = request.url.path == "/v1/rerank"
        with_documents = by_default if form.return_documents is None else form.return_documents

        async def work() -> Answer:
            scores, tokens = await service.rerank(form.query, form.documents)
            noise = service.serving.noise
            return lambda: (
                ranked(scores, form, tokens, with_documents=with_documents, noise=noise) | signed(service, tokens)
            )

        return await finish(request, work(), limits)

    @app.post("/search")
    async def search(request: Request, form: SearchRequest) -> Response:
        service = services.embedder(form.model)
        queries = [form.query] if isinstance(form.query, str) else form.query
        limits.check_hits(len(queries), form.top)

        async def work() -> Answer:
            hits, tokens = await service.search(queries, form)
            return lambda: {"object": "list", "data": hits_of_queries(hits)} | signed(service, tokens)

        return await finish(request, work(), limits)


def _add_pairs(app: FastAPI, services: Services) -> None:
    limits = services.limits

    @app.post("/similarity")
    async def similarity(request: Request, form: SimilarityRequest) -> Response:
        service = services.find(form.model)
        pairs = pairs_of(form, limits)
        # Before the model computes, since this fails without a calibration.
        meaning = meanings(form, service)

        async def work() -> Answer:
            scores, tokens = await service.similarities(pairs, "pairs" if form.texts is None else "texts")
            side = None if form.texts is None else len(form.texts)
            return lambda: similarities(scores, meaning, side) | signed(service, tokens)

        return await finish(request, work(), limits)

    @app.post("/explain")
    async def explain(request: Request, form: ExplainRequest) -> Response:
        service = services.find(form.model)
        texts = form.text1, form.text2
        limits.check_texts(list(texts), "text1")
        limits.check_words(sum(len(word_spans(text)) for text in texts))

        async def work() -> Answer:
            # Of a long text this makes thousands of texts, which would block the event loop.
            pairs = await asyncio.to_thread(occluded, texts)
            scores, tokens = await service.similarities(pairs, "text1")
            return lambda: explained(scores, texts) | signed(service, tokens)

        return await finish(request, work(), limits)


def _model(service: Service[Any]) -> dict[str, Any]:
    return {"id": service.serving.name, "object": "model", "created": 0, "owned_by": "samesense"}
