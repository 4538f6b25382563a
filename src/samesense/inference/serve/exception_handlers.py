"""Every error of an application as an answer of the server; see :mod:`samesense.inference.serve.errors`."""

from __future__ import annotations

import json

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from samesense.errors import SamesenseError
from samesense.inference.serve.errors import RequestError, invalid


def add_exception_handlers(app: FastAPI) -> None:
    """Give every error of an application the shape that OpenAI's clients read."""

    def told(error: RequestError) -> JSONResponse:
        return JSONResponse(error.body(), error.status, headers=error.headers)

    @app.exception_handler(RequestError)
    async def refused(_: Request, error: RequestError) -> JSONResponse:
        return told(error)

    @app.exception_handler(SamesenseError)
    async def failed(_: Request, error: SamesenseError) -> JSONResponse:
        return told(RequestError(500, str(error), code="model_error"))

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return told(invalid(f"The body must be JSON; at character {first['loc'][-1]}: {first['ctx']['error']}."))
        field = ".".join(str(part) for part in first["loc"][1:]) or "body"
        if field == "body" and first["type"] != "value_error":
            return told(invalid("The body must be a JSON object, with the header Content-Type: application/json."))
        said = first["msg"].removeprefix("Value error, ")
        if first["type"] not in ("missing", "value_error"):  # of these there is nothing to show, or it is in the words
            said += f"; received {json.dumps(first['input'], default=str)[:60]}"
        return told(invalid(f"'{field}': {said}.", param=field))

    @app.exception_handler(HTTPException)
    async def plain(request: Request, error: HTTPException) -> JSONResponse:
        where = f"{request.method} {request.url.path[:100]!r}: {error.detail}"
        return told(
            RequestError(error.status_code, where, code="not_found" if error.status_code == 404 else "bad_request")
        )

    @app.exception_handler(Exception)
    async def broken(_: Request, error: Exception) -> JSONResponse:
        return told(
            RequestError(500, f"A defect of the server: {type(error).__name__}. Its log says more.", code="defect")
        )
