"""Run the work of a request and send its answer; cancel it on timeout or when the client disconnects."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response

from samesense.inference.serve.errors import RequestError
from samesense.inference.serve.limits import Limits

Answer = Callable[[], Any]
"""Builds the answer, of JSON types; called in a worker thread."""


async def finish(request: Request, work: Coroutine[Any, Any, Answer], limits: Limits) -> Response:
    """Return the answer of ``work``, serialized in another thread.

    RequestError 504 after ``max_seconds``, 499 when the client disconnects; ``work`` is cancelled then.
    """
    task = asyncio.ensure_future(work)
    # The body was read before, so the next message can only be that the client has disconnected.
    disconnected = asyncio.ensure_future(request.receive())
    waiting = {task, disconnected}
    try:
        # Unlike wait_for, this cancels nothing, and tells the three cases apart.
        done, _ = await asyncio.wait(waiting, timeout=limits.max_seconds, return_when=asyncio.FIRST_COMPLETED)
        if task in done:
            body = await asyncio.to_thread(_serialize, task.result())
            return Response(body, media_type="application/json")
        if done:
            # 499 is the status that nginx logs for a client who has gone.
            raise RequestError(499, "The caller has gone.", code="client_gone")
        raise limits.late()
    finally:
        # For a future that is done this does nothing.
        for future in waiting:
            future.cancel()


def _serialize(answer: Answer) -> bytes:
    return json.dumps(answer(), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
