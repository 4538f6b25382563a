"""Tasks on the machines of a Ray cluster, any of which may go away."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from typing import Any

from samesense.errors import ConfigError, MissingExtraError
from samesense.execution.tasks import Answer, Outcome, Pending, Work, answer


class OnRay:
    """The executor of a cluster. Results come back to this process; machines need no common disk for them.

    At most as many tasks are begun as the cluster has processors at that moment, so that machines may join and leave.
    A task whose worker or machine is lost is tried again elsewhere; so is one whose result was lost with it.
    """

    def __init__(self, address: str | None = None, retries: int = 2, gpus: float = 0) -> None:
        self._address, self._retries, self._gpus = address, retries, gpus

    def run(self, work: Work, tasks: Iterable[int]) -> Generator[Outcome, None, None]:
        """Do tasks; see :class:`~samesense.execution.tasks.Executor`. ConfigError if no cluster is at the address."""
        ray = _ray()
        connected = self._connect(ray)
        remote = ray.remote(answer).options(num_cpus=1, num_gpus=self._gpus, max_retries=0)
        shared = ray.put(work)
        pending = Pending(tasks, self._retries)
        running: dict[Any, int] = {}
        try:
            while True:
                slots = max(1, int(ray.cluster_resources().get("CPU", 1)))
                while len(running) < slots and (task := pending.take()) is not None:
                    running[remote.remote(shared, task)] = task
                if not running:
                    return
                for reference in ray.wait(list(running), num_returns=1)[0]:
                    outcome = pending.settle(running.pop(reference), _received(ray, reference))
                    if outcome is not None:
                        yield outcome
        finally:
            for reference in running:
                ray.cancel(reference, force=True)
            if connected:
                ray.shutdown()

    def _connect(self, ray: Any) -> bool:
        """Connect unless this process is connected already; return whether it was done here."""
        if ray.is_initialized():
            return False
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            ray.init(address=self._address or "local", log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, ValueError, OSError) as error:
            raise ConfigError(
                f"address names a running Ray cluster, as in auto or HOST:6379; received {self._address!r}, and it "
                f"cannot be reached ({' '.join(str(error).split())[:200]}). Start one with: ray start --head"
            ) from error
        return True


def _received(ray: Any, reference: Any) -> Answer:
    try:
        received: Answer = ray.get(reference)
    except ray.exceptions.RayError as error:
        return "failed", f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return received


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("ray", "ray") from error
    return ray
