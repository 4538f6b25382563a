"""Exception handlers that turn every error into an answer; see :mod:`samesense.inference.serve.errors`."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from samesense.errors import SamesenseError
from samesense.inference.serve.errors import RequestError, invalid
from samesense.inference.serve.schemas import json_excerpt


def add_exception_handlers(app: FastAPI) -> None:
    """Have an application answer every error in the format that OpenAI's clients read."""

    def response(error: RequestError) -> JSONResponse:
        return JSONResponse(error.body(), error.status, headers=error.headers)

    @app.exception_handler(RequestError)
    async def refused(_: Request, error: RequestError) -> JSONResponse:
        return response(error)

    @app.exception_handler(SamesenseError)
    async def failed(_: Request, error: SamesenseError) -> JSONResponse:
        return response(RequestError(500, str(error), code="model_error"))

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> JSONResponse:
        answer = response(_malformed(error.errors()[0]))
        traceback.clear_frames(error.__traceback__)  # breaks a reference cycle that would keep the request in memory
        return answer

    @app.exception_handler(HTTPException)
    async def plain(request: Request, error: HTTPException) -> JSONResponse:
        message = f"{request.method} {request.url.path[:100]!r}: {error.detail}"
        code = "not_found" if error.status_code == 404 else "bad_request"
        answer = response(RequestError(error.status_code, message, code=code))
        # Of 405, Allow: the methods that the path has.
        answer.headers.update(error.headers or {})
        return answer

    @app.exception_handler(Exception)
    async def broken(_: Request, error: Exception) -> JSONResponse:
        message = f"A defect of the server: {type(error).__name__}. Its log says more."
        return response(RequestError(500, message, code="defect"))


def _malformed(error: Mapping[str, Any]) -> RequestError:
    """Return the error of a request from the first error that pydantic reports."""
    if error["type"] == "json_invalid":
        return invalid(f"The body must be JSON; at character {error['loc'][-1]}: {error['ctx']['error']}.")
    # The place of an error begins with "body".
    field = ".".join(str(key)[:60] for key in error["loc"][1:5]) or "body"
    if field == "body" and error["type"] != "value_error":
        return invalid("The body must be a JSON object, with the header Content-Type: application/json.")
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] not in ("missing", "value_error"):  # there is no value, or the message shows it already
        message += f"; received {json_excerpt(error['input'])}"
    if field == "body":
        return invalid(f"{message}.", param=getattr(error["ctx"]["error"], "param", None))
    return invalid(f"'{field}': {message}.", param=field)
