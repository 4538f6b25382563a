"""The routes of the server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from fastapi import FastAPI, Request, Response
from starlette.responses import JSONResponse

from samesense.inference.explain import occluded
from samesense.inference.serve.exception_handlers import RequestError, add_exception_handlers
from samesense.inference.serve.middleware import RequestMiddleware
from samesense.inference.serve.pages import add_page
from samesense.inference.serve.responses import explained, listed, meanings, pairs_of, ranked, similarities
from samesense.inference.serve.schemas import (
    EmbeddingsRequest,
    ExplainRequest,
    RerankRequest,
    SearchRequest,
    SimilarityRequest,
    embeddings_answer,
    usage,
)
from samesense.inference.serve.service import Service

T = TypeVar("T")
Answer = Callable[[], dict[str, Any]]


def build_app(service: Service, *, keys: Sequence[str] = (), hosts: Sequence[str] = ()) -> FastAPI:
    """Return the ASGI application of a service.

    Callers must send any of ``keys``, and name the server by any of ``hosts``; none lets everyone in.
    """

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        await service.stop()

    app = FastAPI(title="samesense", lifespan=life, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.add_middleware(RequestMiddleware, traffic=service, keys=keys, hosts=hosts)
    add_exception_handlers(app)
    _add_information(app, service)
    _add_work(app, service)
    _add_pairs(app, service)
    return app


def _add_information(app: FastAPI, service: Service) -> None:
    name = service.serving.name
    add_page(app, "index.html")

    @app.get("/health")
    async def health() -> JSONResponse:
        status = "stopping" if service.stopping else "ok" if service.alive else "broken"
        facts = {
            "status": status,
            "model": name,
            "dimension": service.dimension,
            "search": service.serving.search is not None,
            "calibration": service.serving.calibration is not None,
            "threshold": _threshold(service),
            "rerank": "cosine" if service.serving.rerank is None else "cross-encoder",
        }
        return JSONResponse(facts, 200 if status == "ok" else 503)

    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": [_model(name)]}

    @app.get("/v1/models/{wanted:path}")
    async def model(wanted: str) -> dict[str, Any]:
        _check_model(service, wanted)
        return _model(name)


def _add_work(app: FastAPI, service: Service) -> None:
    limits, name = service.serving.limits, service.serving.name

    @app.post("/v1/embeddings")
    async def embeddings(request: Request, form: EmbeddingsRequest) -> Response:
        _check_model(service, form.model)

        async def work() -> Answer:
            rows, tokens = await service.embed(form.input, "input")
            rows = service.shortened(rows, form.dimensions)
            return lambda: embeddings_answer(rows, form.encoding_format, name, tokens)

        return await _finish(request, work(), service)

    @app.post("/rerank")
    async def rerank(request: Request, form: RerankRequest) -> Response:
        _check_model(service, form.model)

        async def work() -> Answer:
            scores, tokens = await service.rerank(form.query, form.documents)
            return lambda: {"model": name, "results": ranked(scores, form), "usage": usage(tokens)}

        return await _finish(request, work(), service)

    @app.post("/search")
    async def search(request: Request, form: SearchRequest) -> Response:
        _check_model(service, form.model)
        queries = [form.query] if isinstance(form.query, str) else form.query
        limits.check_hits(len(queries), form.top)

        async def work() -> Answer:
            found, tokens = await service.search(queries, form.top, form.where)
            return lambda: {"object": "list", "data": listed(found), "model": name, "usage": usage(tokens)}

        return await _finish(request, work(), service)


def _add_pairs(app: FastAPI, service: Service) -> None:
    limits, name = service.serving.limits, service.serving.name

    @app.post("/similarity")
    async def similarity(request: Request, form: SimilarityRequest) -> Response:
        _check_model(service, form.model)
        pairs, meaning = pairs_of(form, limits), meanings(form, service)

        async def work() -> Answer:
            scores, tokens = await service.similarities(pairs, "pairs" if form.texts is None else "texts")
            side = None if form.texts is None else len(form.texts)
            return lambda: similarities(scores, meaning, side) | {"model": name, "usage": usage(tokens)}

        return await _finish(request, work(), service)

    @app.post("/explain")
    async def explain(request: Request, form: ExplainRequest) -> Response:
        _check_model(service, form.model)
        texts = form.text1, form.text2
        limits.check_texts(list(texts), "text1")

        async def work() -> Answer:
            scores, tokens = await service.similarities(occluded(texts), "text1")
            return lambda: explained(scores, texts) | {"model": name, "usage": usage(tokens)}

        return await _finish(request, work(), service)


async def _finish(request: Request, work: Coroutine[Any, Any, Answer], service: Service) -> Response:
    """Return the answer of ``work`` written by another thread; give it up when time is over or the caller has gone."""
    limits = service.serving.limits
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(request.receive())
    try:
        done, _ = await asyncio.wait({task, gone}, timeout=limits.max_seconds, return_when=asyncio.FIRST_COMPLETED)
        if task in done:
            body = await asyncio.to_thread(_written, task.result())
            return Response(body, media_type="application/json")
        if done:
            raise RequestError(499, "The caller has gone.", code="client_gone")
        raise limits.late()
    finally:
        for waiting in (task, gone):
            waiting.cancel()


def _written(answer: Answer) -> bytes:
    return json.dumps(answer(), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _threshold(service: Service) -> dict[str, float | None] | None:
    """Return the score from which on a pair is a yes, with its precision on new pairs where that is known."""
    calibration, given = service.serving.calibration, service.serving.threshold
    fitted = None if calibration is None else calibration.thresholds.get(calibration.decide)
    if given is None and fitted is None:
        return None
    known = calibration is not None and given in (None, fitted)
    precision = calibration.errors["precision"] if calibration is not None and known else None
    return {"score": fitted if given is None else given, "precision": precision}


def _check_model(service: Service, wanted: str | None) -> None:
    name = service.serving.name
    if wanted is not None and wanted != name:
        raise RequestError(
            404, f"This server has one model, {name!r}; received {wanted[:100]!r}.",
            code="model_not_found", param="model",
        )  # fmt: skip


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "samesense"}
