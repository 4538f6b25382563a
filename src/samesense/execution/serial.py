"""Tasks one after the other, in this process."""

from __future__ import annotations

from collections.abc import Generator, Iterable

from samesense.execution.tasks import Pending, TrainOutput, Work, answer


class Serial:
    """The executor of one worker.

    Args:
        retries: how often a failed task is tried again.
    """

    def __init__(self, retries: int = 2) -> None:
        self._retries = retries

    def run(self, work: Work, tasks: Iterable[int]) -> Generator[TrainOutput, None, None]:
        """Do tasks; see :class:`~samesense.execution.tasks.Executor`."""
        pending = Pending(tasks, self._retries)
        while (task := pending.take()) is not None:
            outcome = pending.settle(task, answer(work, task))
            if outcome is not None:
                yield outcome
