"""What the server answers instead of a result: a status, and an error in the shape that OpenAI's clients read.

Without fastapi, which the help of the command and the limits do not need.
"""

from __future__ import annotations

from typing import Any

MOST = 1000
"""Characters of a message: requests of megabytes get a short answer."""


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
        param = None if self.param is None else _shown(self.param, 100)
        return {"error": {"message": _shown(self.message, MOST), "type": kind, "param": param, "code": self.code}}


def _shown(text: str, most: int) -> str:
    """Return the beginning of a text, in characters that can be sent: halves of surrogate pairs cannot."""
    whole = text[:most].encode(errors="backslashreplace").decode()
    return whole if len(text) <= most else f"{whole} ..."


def invalid(message: str, *, param: str | None = None, status: int = 400) -> RequestError:
    """Return the error of a request that breaks a rule."""
    return RequestError(status, message, code="invalid_request" if status == 400 else "too_large", param=param)
