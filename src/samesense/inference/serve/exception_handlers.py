"""How every error is told: in the shape that OpenAI's clients read."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from samesense.errors import SamesenseError
from samesense.inference.serve.refusal import Refusal, invalid


def tell_errors(app: FastAPI) -> None:
    """Give every error of an application that shape."""

    def told(refusal: Refusal) -> JSONResponse:
        return JSONResponse(refusal.body(), refusal.status, headers=refusal.headers)

    @app.exception_handler(Refusal)
    async def refused(_: Request, error: Refusal) -> JSONResponse:
        return told(error)

    @app.exception_handler(SamesenseError)
    async def failed(_: Request, error: SamesenseError) -> JSONResponse:
        return told(Refusal(500, str(error), code="model_error"))

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return told(invalid(f"The body must be JSON; at character {first['loc'][-1]}: {first['ctx']['error']}."))
        field = ".".join(str(part) for part in first["loc"][1:]) or "body"
        return told(invalid(f"'{field}': {first['msg'].removeprefix('Value error, ')}.", param=field))

    @app.exception_handler(HTTPException)
    async def plain(request: Request, error: HTTPException) -> JSONResponse:
        where = f"{request.method} {request.url.path[:100]!r}: {error.detail}"
        return told(Refusal(error.status_code, where, code="not_found" if error.status_code == 404 else "bad_request"))

    @app.exception_handler(Exception)
    async def broken(_: Request, error: Exception) -> JSONResponse:
        return told(Refusal(500, f"A defect of the server: {type(error).__name__}. Its log says more.", code="defect"))
