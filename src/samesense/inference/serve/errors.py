"""Errors of requests: an HTTP status, and a body in the format that OpenAI's clients read.

This module does not import fastapi, so that `samesense serve --help` and the limits work without it.
"""

from __future__ import annotations

from typing import Any

MOST = 1000
"""Most characters of a message: a request of megabytes must not be quoted in full."""


class RequestError(Exception):
    """A failed request: its HTTP ``status``, a ``code`` for programs, and the field concerned (``param``).

    ``retry_after`` is the number of seconds after which to try again; ``None`` where trying again makes no sense.
    """

    def __init__(
        self, status: int, message: str, *, code: str, param: str | None = None, retry_after: int | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        self.retry_after = retry_after

    @property
    def headers(self) -> dict[str, str]:
        """HTTP headers of the answer."""
        headers = {}
        if self.retry_after is not None:
            headers["Retry-After"] = str(self.retry_after)
        # HTTP wants this header in every answer of 401.
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        # Source: RFC 9110, 12.5.3: of 415, this header says which encodings are read.
        if self.status == 415:
            headers["Accept-Encoding"] = "identity"
        return headers

    def body(self) -> dict[str, Any]:
        """Return the body of the answer, of JSON types.

        Source: the error object of the OpenAI API (message, type, param, code).
        """
        kind = "invalid_request_error"
        if self.status >= 500:
            kind = "server_error"
        if self.status == 429:
            kind = "rate_limit_error"
        param = None if self.param is None else _excerpt(self.param, 100)
        return {"error": {"message": _excerpt(self.message, MOST), "type": kind, "param": param, "code": self.code}}


def _excerpt(text: str, most: int) -> str:
    """Return the first ``most`` characters of a text, with lone surrogates escaped, which cannot be sent."""
    beginning = text[:most].encode(errors="backslashreplace").decode()
    if len(text) <= most:
        return beginning
    return f"{beginning} ..."


def invalid(message: str, *, param: str | None = None, status: int = 400) -> RequestError:
    """Return the error of an invalid request."""
    return RequestError(status, message, code="invalid_request" if status == 400 else "too_large", param=param)
