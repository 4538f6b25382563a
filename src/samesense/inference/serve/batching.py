"""Dynamic batching: many small requests are computed in few large batches, by one thread.

The event loop does all bookkeeping, without locks; only the computation runs in the thread.
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
"""Called after every batch with its items, its tokens and its seconds."""

SHARE = 4
"""A request that shares a batch fills at most a quarter of it, so that a long request does not delay the others."""

REMEMBERED = 0.2
"""Weight of the newest batch in the moving average of the speed, which Retry-After is estimated from."""


class _Job(Generic[Item]):
    """One request: its distinct items, how many have been put in a batch, and the rows computed so far."""

    def __init__(self, sizes: dict[Item, int], answer: asyncio.Future[list[Rows]]) -> None:
        self.items = list(sizes)
        self.sizes = list(sizes.values())
        self.answer = answer
        self.tokens = sum(self.sizes)
        self.taken = 0
        self.rows: list[Rows] = []

    def add_rows(self, rows: list[Rows]) -> None:
        self.rows += rows
        # The future is done already where the caller has gone.
        if len(self.rows) == len(self.items) and not self.answer.done():
            self.answer.set_result(self.rows)

    def fail(self, error: BaseException) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


_Slice = tuple[_Job[Item], int, int]
"""A job, and the first and the last (exclusive) of its items that are in the batch."""


class Batcher(Generic[Item]):
    """Computes the items of waiting requests in shared batches, each distinct item once a batch.

    ``run`` computes one row an item, in order, in an executor with one thread, so that computations do not compete for
    the processor. An item larger than ``batch_tokens`` is a batch of its own. A request that exceeds ``queue_tokens``
    is refused unless the queue is empty. An idle batcher waits ``wait`` seconds after a first request for more.
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
        self._run = run
        self._executor = executor
        self._meter = meter
        self._batch_tokens = batch_tokens
        self._queue_tokens = queue_tokens
        self._wait = wait
        self._waiting: deque[_Job[Item]] = deque()
        self._arrived = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None
        self._speed = 0.0
        self.queued = 0

    def start(self) -> None:
        """Start the worker task in the running event loop."""
        self._worker = asyncio.get_running_loop().create_task(self._work())

    async def stop(self) -> None:
        """Stop the worker task; requests in the queue are not answered."""
        if self._worker is not None:
            self._worker.cancel()
            # This waits for the end of the cancelled task without raising its CancelledError.
            await asyncio.gather(self._worker, return_exceptions=True)

    @property
    def alive(self) -> bool:
        """Whether the worker task is running."""
        return self._worker is not None and not self._worker.done()

    def retry_after(self) -> int:
        """Return the seconds, 1 to 60, after which the queue will be empty at the recent speed."""
        if not self._speed:
            return 1
        return min(60, max(1, math.ceil(self.queued / self._speed)))

    async def submit(self, items: Sequence[Item], sizes: Sequence[int]) -> Rows:
        """Return one row an item ``(items, ...)``, in order.

        A cancelled caller leaves the queue; a batch that already holds its items is still computed. RequestError 429 if
        the queue is full.
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

    def _take(self) -> list[_Slice[Item]]:
        """Return the next batch: items of the waiting requests in turn, until it is full.

        Where several requests wait, each has one turn with an equal quota, so that small requests are answered soon.
        """
        batch: list[_Slice[Item]] = []
        chosen: set[Item] = set()
        room = self._batch_tokens
        turns = len(self._waiting)
        quota = self._batch_tokens // max(SHARE, turns)
        # A request that is alone takes turn after turn until the batch is full.
        alone = turns == 1
        while self._waiting and room > 0 and (turns > 0 or alone):
            job = self._waiting.popleft()
            turns -= 1
            if job.answer.done():  # cancelled, or failed in an earlier batch
                continue
            first = job.taken
            room = self._take_items(job, chosen, room, quota)
            if job.taken > first:
                batch.append((job, first, job.taken))
            if job.taken < len(job.items):
                # A job that used up its quota goes to the end of the queue; where the batch was full it keeps its turn.
                if room > 0:
                    self._waiting.append(job)
                else:
                    self._waiting.appendleft(job)
        return batch

    def _take_items(self, job: _Job[Item], chosen: set[Item], room: int, quota: int) -> int:
        """Take items of a request until the batch is full or its quota is used up; return the room that is left."""
        spent = 0
        while job.taken < len(job.items) and room > 0:
            item = job.items[job.taken]
            size = 0  # of an item that the batch has already, for another request
            if item not in chosen:
                size = job.sizes[job.taken]
            if chosen and size > room:
                return 0  # the batch is full; an item larger than a batch is taken only into an empty one
            # One item a turn is taken in any case, however large it is.
            if spent and spent + size > quota:
                return room
            room -= size
            spent += size
            chosen.add(item)
            job.taken += 1
        return room

    async def _answer(self, batch: list[_Slice[Item]]) -> None:
        """Compute a batch and hand out its rows; if it fails, compute every request alone, so that only one fails."""
        sizes = {
            item: size
            for job, first, end in batch
            for item, size in zip(job.items[first:end], job.sizes[first:end], strict=True)
        }
        started = time.perf_counter()
        try:
            rows = await asyncio.get_running_loop().run_in_executor(self._executor, self._compute, list(sizes))
        except Exception as error:
            if len(batch) == 1:
                batch[0][0].fail(error)
                return
            for job, first, end in batch:
                if not job.answer.done():
                    await self._answer([(job, first, end)])
            return
        row_of = dict(zip(sizes, rows, strict=True))
        for job, first, end in batch:
            job.add_rows([row_of[item] for item in job.items[first:end]])
        seconds = time.perf_counter() - started
        tokens = sum(sizes.values())
        # The first batch has nothing to be averaged with.
        weight = REMEMBERED if self._speed else 1.0
        self._speed += weight * (tokens / max(seconds, 1e-9) - self._speed)
        self._meter(len(sizes), tokens, seconds)

    def _compute(self, items: list[Item]) -> Rows:
        rows = np.asarray(self._run(items))
        if len(rows) != len(items):
            raise ModelError(f"The model must give one row for each of {len(items)} inputs; it gave {len(rows)}.")
        return rows
