"""What the server answers instead of a result: a status, and an error in the shape that OpenAI's clients read."""

from __future__ import annotations

import json
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from samesense.errors import SamesenseError


class RequestError(Exception):
    """A request that gets no result: the status of HTTP, a ``code`` for programs, and the field concerned (``param``).

    After ``retry_after`` seconds trying again makes sense; ``None`` where it does not.
    """

    def __init__(
        self, status: int, message: str, *, code: str, param: str | None = None, retry_after: int | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.param, self.retry_after = status, message, code, param, retry_after

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the answer."""
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        return headers | ({"WWW-Authenticate": "Bearer"} if self.status == 401 else {})

    def body(self) -> dict[str, Any]:
        """Return the answer as plain JSON types.

        Source: the error object of the OpenAI API (message, type, param, code).
        """
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        if self.status == 429:
            kind = "rate_limit_error"
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}


def invalid(message: str, *, param: str | None = None, status: int = 400) -> RequestError:
    """Return the error of a request that breaks a rule."""
    return RequestError(status, message, code="invalid_request" if status == 400 else "too_large", param=param)


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
