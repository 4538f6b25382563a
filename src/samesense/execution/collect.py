"""The results of many tasks, kept as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from typing import Any

from samesense.errors import SamesenseError
from samesense.execution.tasks import Executor, Failed, Work

MOST_FAILED = 10
"""Tasks given up from which on the cause is not in the tasks."""


def collect(executor: Executor, work: Work, tasks: Iterable[int], keep: Callable[[int, Any], None]) -> None:
    """Do each task and hand its result over, in the order of completion.

    Args:
        executor: where they are done.
        work: does a task.
        tasks: numbers.
        keep: takes a task and its result, in this process.

    Raises:
        SamesenseError: if tasks were given up, after the others are done, or after MOST_FAILED of them.
    """
    failed: list[Failed] = []
    with closing(executor.run(work, tasks)) as outcomes:
        for outcome in outcomes:
            if not isinstance(outcome, Failed):
                keep(outcome.task, outcome.result)
                continue
            failed.append(outcome)
            if len(failed) == MOST_FAILED:
                break
    if failed:
        raise SamesenseError(
            f"{len(failed)} shards could not be made, the first after {failed[0].attempts} attempts: shard "
            f"{failed[0].task}, {failed[0].reason}. The others are kept; give the same command again."
        )
