"""The protocol of executors: numbered tasks in, outcomes in the order of completion, failures retried."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from samesense.errors import SamesenseError
from samesense.failures import with_class

RETRIES = 2
"""Default number of retries of a task."""

Work = Callable[[int], Any]
"""Does one task. Picklable; the result of a task is the same wherever it runs."""

Status = Literal["done", "failed", "refused"]
Answer = tuple[Status, Any]
"""What a worker sends back: the result, or the reason of its failure."""


@dataclass(frozen=True)
class Done:
    """A finished task."""

    task: int
    result: Any


@dataclass(frozen=True)
class Failed:
    """A task that was given up."""

    task: int
    reason: str
    attempts: int


Outcome = Done | Failed


class Executor(Protocol):
    """Where tasks are done."""

    def run(self, work: Work, tasks: Iterable[int]) -> Generator[Outcome, None, None]:
        """Do each task and yield its outcome, in the order of completion; ``tasks`` are read as workers become free.

        When the iterator is closed, by Ctrl-C too, workers are stopped and unfinished tasks are lost. A SamesenseError
        of the work is raised at once, as a retry would not help.
        """


class Pending:
    """Tasks that wait, including those to be retried."""

    def __init__(self, tasks: Iterable[int], retries: int) -> None:
        self._fresh = iter(tasks)
        self._retries = retries
        self._again: deque[int] = deque()
        self._attempts: dict[int, int] = {}

    def take(self) -> int | None:
        """Return the next task; ``None`` if none waits."""
        # Retries come first, so that a task that fails for good is known early.
        if self._again:
            return self._again.popleft()
        return next(self._fresh, None)

    def settle(self, task: int, answer: Answer) -> Outcome | None:
        """Return the outcome of a task; ``None`` if it is to be tried again."""
        status, content = answer
        if status == "refused":
            raise SamesenseError(content)
        attempts = self._attempts.pop(task, 0) + 1
        if status == "done":
            return Done(task, content)
        if attempts > self._retries:
            return Failed(task, content, attempts)
        self._attempts[task] = attempts
        self._again.append(task)
        return None


class Serial:
    """The executor of one worker: tasks one after the other, in this process."""

    def __init__(self, retries: int = RETRIES) -> None:
        self._retries = retries

    def run(self, work: Work, tasks: Iterable[int]) -> Generator[Outcome, None, None]:
        """Do tasks; see :class:`Executor`."""
        pending = Pending(tasks, self._retries)
        while (task := pending.take()) is not None:
            outcome = pending.settle(task, answer(work, task))
            if outcome is not None:
                yield outcome


def answer(work: Work, task: int) -> Answer:
    """Do a task, and return its result or its exception as an answer."""
    try:
        return "done", work(task)
    except SamesenseError as error:
        return "refused", str(error)
    except Exception as error:
        return failed(error)


def failed(error: Exception) -> Answer:
    """Return the answer of a task that raised an error."""
    return "failed", with_class(error, 300)
