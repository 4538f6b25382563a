"""What the server answers instead of a result: a status, and an error in the shape that OpenAI's clients read.

Without fastapi, which the help of the command and the limits do not need.
"""

from __future__ import annotations

from typing import Any


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
