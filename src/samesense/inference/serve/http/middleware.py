"""Middleware before every route: checks keys, host name and size of a request, and counts it."""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections.abc import Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from samesense.errors import SamesenseError
from samesense.inference.serve.errors import RequestError
from samesense.inference.serve.http.hosts import host_name, is_address
from samesense.inference.serve.traffic import SMALL_BODY, VALUE_BYTES, BodyBytes, Traffic

logger = logging.getLogger(__name__)

OPEN = ("/", "/health")
"""Paths that need no key and no header Host: the page holds no data, and health checks send neither."""

OPEN_METHODS = ("GET", "HEAD", "OPTIONS")
"""Methods of health checks."""

ALWAYS = ("/health", "/metrics")
"""Paths that are answered while the server stops."""


class RequestMiddleware:
    """ASGI middleware: refuses with 401, 408, 413, 415, 421 or 503 before anything is parsed, and counts every request.

    A request must send one of ``keys`` and name one of ``hosts``; an empty list lets everyone in. The check of the Host
    header protects against DNS rebinding: a hostile page that resolves its own name to this machine sends that name.
    """

    def __init__(self, app: ASGIApp, *, traffic: Traffic, keys: Sequence[str] = (), hosts: Sequence[str] = ()) -> None:
        self._app = app
        self._traffic = traffic
        self._hosts = frozenset(hosts)
        self._keys = [key.encode() for key in keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to the application, or answer it with an error."""
        # Events of the lifespan have neither keys nor a body.
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        prefix, path = _split_prefix(scope)
        # Routes are matched by the cleaned path.
        scope["path"] = f"{prefix}{path}"
        started = time.perf_counter()
        status = 500  # unless an answer starts
        waiting = 1  # 0 once the answer is complete

        async def answer(message: Message) -> None:
            nonlocal status, waiting
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                # A browser must not take an answer of JSON for a page.
                headers.setdefault("X-Content-Type-Options", "nosniff")
                if self._traffic.stopping:
                    # A kept connection would only bring requests that are refused.
                    headers["Connection"] = "close"
            elif not message.get("more_body", False):
                # Before the last bytes are sent: a client who has them no longer waits, and may stop the server.
                self._traffic.running -= waiting
                waiting = 0
            await send(message)

        self._traffic.running += 1
        size = BodyBytes(self._traffic)
        try:
            # Keys and host come first: the body of a stranger is not even read.
            self._check(scope)
            await self._start()
            body = await self._read(scope, receive, size)
            check = self._traffic.limits.check_structure
            if len(body) <= SMALL_BODY:
                values = check(body)
            else:  # a large body would block the event loop
                values = await asyncio.to_thread(check, body)
            # Once parsed, values take far more memory than the bytes of the body.
            size.grow(len(body) + VALUE_BYTES * values)
            await self._app(scope, _replay(body, receive), answer)
        except RequestError as error:
            refused = JSONResponse(error.body(), error.status, headers=error.headers)
            await refused(scope, receive, answer)
        finally:
            size.release()
            self._traffic.running -= waiting
            # One label for all paths without a route: callers could make any number of them.
            route = getattr(scope.get("route"), "path", "other")
            self._traffic.metrics.requests.labels(route, str(status)).inc()
            self._traffic.metrics.seconds.labels(route).observe(time.perf_counter() - started)

    async def _start(self) -> None:
        """Start the models unless they are started; RequestError 503 if that fails."""
        try:
            await self._traffic.start()
        except SamesenseError as error:
            logger.error(f"the models cannot be opened: {error}")
            message = "The server cannot open its models; its log says why."
            raise RequestError(503, message, code="not_started", retry_after=60) from error

    def _check(self, scope: Scope) -> None:
        """Raise RequestError for a stopping server (503), an unknown host name (421) or a wrong key (401)."""
        _, path = _split_prefix(scope)
        if self._traffic.stopping and path not in ALWAYS:
            raise _stopping()
        is_open = scope["method"] in OPEN_METHODS and path in OPEN
        names = Headers(scope=scope).getlist("host")
        name = host_name(names)
        # Health checks send no Host, or the address of the machine. Browsers send the name of a page, and only a name
        # can be rebound.
        is_health_check = is_open and (not names or (path == "/health" and is_address(name)))
        if self._hosts and not is_health_check and name not in self._hosts:
            raise RequestError(
                421,
                "The header Host must name this server; `samesense serve --allowed-host NAME` allows more names.",
                code="unknown_host",
            )
        if self._keys and not is_open and not self._has_key(scope):
            raise RequestError(
                401,
                "This server wants a key; send the header 'Authorization: Bearer KEY', or 'api-key: KEY'.",
                code="invalid_api_key",
            )

    def _has_key(self, scope: Scope) -> bool:
        """Return whether a request sends a valid key; every comparison takes constant time."""
        headers = Headers(scope=scope)
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        sent = [bearer.strip()] if scheme.lower() == "bearer" else []
        sent += headers.getlist("api-key")  # as clients of Azure send it
        # A list, since any() over a generator would stop at the match and tell by its time where that is.
        matches = [hmac.compare_digest(candidate.encode(), key) for candidate in sent for key in self._keys]
        return any(matches)

    async def _read(self, scope: Scope, receive: Receive, size: BodyBytes) -> bytes:
        """Return the body of a request; RequestError 413 if it is too large, 415 if compressed, 408 if late."""
        limits = self._traffic.limits
        _check_encoding(scope)
        announced = Headers(scope=scope).get("content-length", "0")
        # isdigit alone is true for signs that int() refuses, such as a superscript two.
        if announced.isascii() and announced.isdigit():
            # Twenty digits exceed any limit, and int() refuses thousands of them.
            limits.check_body(int(announced[:20]))
        body = bytearray()
        incomplete = True
        arriving = self._traffic.arriving
        try:
            async with asyncio.timeout(limits.max_seconds) as deadline:
                arriving.add(deadline)
                while incomplete:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        break
                    body += message.get("body", b"")
                    incomplete = message.get("more_body", False)
                    limits.check_body(len(body))
                    size.grow(len(body))
        except TimeoutError:
            if self._traffic.stopping:
                raise _stopping() from None
            raise RequestError(
                408, f"The request was not complete after {limits.max_seconds:g} s.", code="timeout"
            ) from None
        finally:
            arriving.discard(deadline)
        return bytes(body)


def _plain_path(path: str) -> str:
    """Return a path without empty segments: some clients send doubled or trailing slashes."""
    return "/" + "/".join(segment for segment in path.split("/") if segment)


def _split_prefix(scope: Scope) -> tuple[str, str]:
    """Return the prefix under which another application has mounted this one, or "", and the path after it."""
    prefix = scope.get("root_path", "").rstrip("/")
    path = scope["path"]
    if not f"{path}/".startswith(f"{prefix}/"):
        return "", _plain_path(path)
    return prefix, _plain_path(path.removeprefix(prefix))


def _check_encoding(scope: Scope) -> None:
    """Raise RequestError 415 for a compressed body: a few bytes of one may unpack to gigabytes."""
    encodings = ", ".join(Headers(scope=scope).getlist("content-encoding"))
    if encodings.strip().lower() not in ("", "identity"):
        raise RequestError(
            415,
            f"The body must not be compressed; received the header Content-Encoding: {encodings[:100]}. Send the JSON "
            "as it is, without this header.",
            code="unsupported_encoding",
        )


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` whose first message is the whole body; later messages come from ``receive``."""
    whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        if whole:
            return whole.pop()
        return await receive()

    return replay


def _stopping() -> RequestError:
    return RequestError(
        503, "The server is stopping and takes nothing new. Come again.", code="stopping", retry_after=1
    )
