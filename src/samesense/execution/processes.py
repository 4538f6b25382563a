"""Tasks in several processes of one machine, any of which may die."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Generator, Iterable, Iterator
from multiprocessing import connection, get_context, parent_process
from threading import Thread
from typing import Any

from samesense.execution.tasks import Answer, Outcome, Pending, Work, answer

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class Processes:
    """The executor of several workers on one machine.

    Each worker is a fresh process (spawn) with a pipe of its own, so that when it dies it is known which task died
    with it. Another one takes its place. Workers compute on one thread, ignore Ctrl-C, which this process handles, and
    end with this process however it ends.
    """

    def __init__(self, workers: int, retries: int = 2) -> None:
        self._workers, self._retries = workers, retries

    def run(self, work: Work, tasks: Iterable[int]) -> Generator[Outcome, None, None]:
        """Do tasks; see :class:`~samesense.execution.tasks.Executor`."""
        pending = Pending(tasks, self._retries)
        idle: list[_Worker] = []
        busy: dict[Any, _Worker] = {}
        try:
            while True:
                while len(busy) < self._workers and (task := pending.take()) is not None:
                    worker = idle.pop() if idle else _Worker(work)
                    worker.begin(task)
                    busy[worker.pipe] = worker
                if not busy:
                    return
                for pipe in connection.wait(list(busy)):
                    worker = busy.pop(pipe)
                    task, received = worker.finish()
                    if worker.alive:
                        idle.append(worker)
                    outcome = pending.settle(task, received)
                    if outcome is not None:
                        yield outcome
        finally:
            for worker in [*idle, *busy.values()]:
                worker.stop()


class _Worker:
    """A process and the task it is at."""

    def __init__(self, work: Work) -> None:
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, work), daemon=True)
        with _one_thread():
            self._process.start()
        theirs.close()  # so that the pipe ends when the process does
        self._task = -1
        self.alive = True

    def begin(self, task: int) -> None:
        self._task = task
        with contextlib.suppress(OSError):  # it has died; finish() finds out
            self.pipe.send(task)

    def finish(self) -> tuple[int, Answer]:
        """Return the task and its answer, once the pipe can be read."""
        try:
            return self._task, self.pipe.recv()
        except (EOFError, OSError):
            self.stop()
            return self._task, ("failed", f"its process ended, {_how(self._process.exitcode)}")

    def stop(self) -> None:
        self.alive = False
        self.pipe.close()
        self._process.kill()
        self._process.join()


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Have processes that are started meanwhile compute on one thread; libraries read this as they are imported."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        return f"killed by {signal.Signals(-code).name} (SIGKILL is often a lack of memory)"
    return f"with code {code}"


def _serve(pipe: connection.Connection[Any, Any], work: Work) -> None:
    """Do tasks until the pipe ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            pipe.send(answer(work, pipe.recv()))
        except (EOFError, OSError):
            return


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
