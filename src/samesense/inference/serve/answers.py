"""From the work for a request to its answer, unless time is over or the caller has gone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response

from samesense.inference.serve.errors import RequestError
from samesense.inference.serve.limits import Limits

Answer = Callable[[], Any]
"""Makes the answer of JSON types."""


async def finish(request: Request, work: Coroutine[Any, Any, Answer], limits: Limits) -> Response:
    """Return the answer of ``work`` written by another thread; give it up when time is over or the caller has gone."""
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
