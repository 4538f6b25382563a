"""Many small requests become few large batches: one thread computes, and every answer finds its way back.

All bookkeeping is done by the event loop, without locks; only the computation runs in the thread.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Executor
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from samesense.errors import ModelError
from samesense.inference.serve.errors import RequestError

Item = TypeVar("Item", bound=Hashable)
Rows = npt.NDArray[Any]
Meter = Callable[[int, int, float], None]
"""Is told of every batch: its items, their tokens, its seconds."""

SHARE = 4
"""Beside others a request fills at most one of so many parts of a batch, so that a long one does not hold them up."""

REMEMBERED = 0.2
"""Weight of the newest batch in the mean speed, by which Retry-After is estimated."""


class _Job(Generic[Item]):
    """One request: its distinct items, how many are in or past a batch, and the rows that have come back."""

    def __init__(self, sizes: dict[Item, int], answer: asyncio.Future[list[Rows]]) -> None:
        self.items, self.sizes, self.answer = list(sizes), list(sizes.values()), answer
        self.tokens, self.taken = sum(self.sizes), 0
        self.rows: list[Rows] = []

    def give(self, rows: list[Rows]) -> None:
        self.rows += rows
        if len(self.rows) == len(self.items) and not self.answer.done():
            self.answer.set_result(self.rows)

    def fail(self, error: BaseException) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


_Part = tuple[_Job[Item], int, int]
"""A job, and the first and the last (exclusive) of its items that are in the batch."""


class Batcher(Generic[Item]):
    """Puts the items of waiting requests together, each distinct one once a batch.

    ``run`` computes one row an item, in order, in an executor with one thread, so that computations do not fight for
    the processor. An item larger than ``batch_tokens`` is a batch of its own; a request beyond ``queue_tokens`` is
    refused, unless nothing else is there. An idle batcher waits ``wait`` seconds for more after a first request.
    """

    def __init__(
        self,
        run: Callable[[Sequence[Item]], Rows],
        executor: Executor,
        *,
        batch_tokens: int,
        queue_tokens: int,
        wait: float = 0.0,
        meter: Meter = lambda items, tokens, seconds: None,
    ) -> None:
        self._run, self._executor, self._meter = run, executor, meter
        self._batch_tokens, self._queue_tokens, self._wait = batch_tokens, queue_tokens, wait
        self._waiting: deque[_Job[Item]] = deque()
        self._arrived = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None
        self._speed = 0.0
        self.queued = 0

    def start(self) -> None:
        """Begin to work, in the running event loop."""
        self._worker = asyncio.get_running_loop().create_task(self._work())

    async def stop(self) -> None:
        """Stop; what still waits is not answered."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)

    @property
    def alive(self) -> bool:
        """Whether it works."""
        return self._worker is not None and not self._worker.done()

    def retry_after(self) -> int:
        """Return the seconds, 1 to 60, in which what waits will be done at the speed of late."""
        return min(60, max(1, math.ceil(self.queued / self._speed))) if self._speed else 1

    async def submit(self, items: Sequence[Item], sizes: Sequence[int]) -> Rows:
        """Return one row an item ``(items, ...)``, in order.

        A caller that is cancelled leaves the queue; the batch that holds its items goes on for the others. RequestError
        429 if the queue is full.
        """
        job = _Job(dict(zip(items, sizes, strict=True)), asyncio.get_running_loop().create_future())
        if self.queued and self.queued + job.tokens > self._queue_tokens:
            raise RequestError(
                429,
                f"The queue holds {self.queued} of {self._queue_tokens} tokens and has no room for {job.tokens} more. "
                "Come again later, or send fewer texts.",
                code="queue_full",
                retry_after=self.retry_after(),
            )
        self.queued += job.tokens
        self._waiting.append(job)
        self._arrived.set()
        try:
            rows = dict(zip(job.items, await job.answer, strict=True))
        finally:
            self.queued -= job.tokens
        return np.stack([rows[item] for item in items])

    async def _work(self) -> None:
        while True:
            if not self._waiting:
                self._arrived.clear()
                await self._arrived.wait()
                if self._wait and self.queued < self._batch_tokens:
                    await asyncio.sleep(self._wait)
            if batch := self._take():
                await self._answer(batch)

    def _take(self) -> list[_Part[Item]]:
        """Return the next batch: the waiting requests in turn, until it is full.

        Each of several has one turn with an equal share, so that a batch is as short as the small ones need.
        """
        batch: list[_Part[Item]] = []
        chosen: set[Item] = set()
        room = self._batch_tokens
        turns = len(self._waiting)
        quota = self._batch_tokens // max(SHARE, turns)
        alone = turns == 1
        while self._waiting and room > 0 and (turns > 0 or alone):
            job = self._waiting.popleft()
            turns -= 1
            if job.answer.done():
                continue
            first, spent = job.taken, 0
            while job.taken < len(job.items) and room > 0:
                item = job.items[job.taken]
                size = 0 if item in chosen else job.sizes[job.taken]
                if chosen and size > room:
                    room = 0
                elif spent and spent + size > quota:
                    break
                else:
                    room, spent = room - size, spent + size
                    chosen.add(item)
                    job.taken += 1
            if job.taken > first:
                batch.append((job, first, job.taken))
            if job.taken < len(job.items):
                (self._waiting.append if room > 0 else self._waiting.appendleft)(job)
        return batch

    async def _answer(self, parts: list[_Part[Item]]) -> None:
        """Compute a batch and hand out its rows; if it fails, every part alone, so that only the guilty one fails."""
        sizes = {item: size for job, a, b in parts for item, size in zip(job.items[a:b], job.sizes[a:b], strict=True)}
        started = time.perf_counter()
        try:
            rows = await asyncio.get_running_loop().run_in_executor(self._executor, self._computed, list(sizes))
        except Exception as error:
            if len(parts) == 1:
                parts[0][0].fail(error)
                return
            for part in parts:
                if not part[0].answer.done():
                    await self._answer([part])
            return
        row_of = dict(zip(sizes, rows, strict=True))
        for job, first, end in parts:
            job.give([row_of[item] for item in job.items[first:end]])
        seconds = time.perf_counter() - started
        tokens = sum(sizes.values())
        self._speed += (REMEMBERED if self._speed else 1.0) * (tokens / max(seconds, 1e-9) - self._speed)
        self._meter(len(sizes), tokens, seconds)

    def _computed(self, items: list[Item]) -> Rows:
        rows = np.asarray(self._run(items))
        if len(rows) != len(items):
            raise ModelError(f"The model must give one row for each of {len(items)} inputs; it gave {len(rows)}.")
        return rows
