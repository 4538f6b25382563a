"""From what a user asks for to an executor."""

from __future__ import annotations

from typing import Literal

from samesense.errors import ConfigError
from samesense.execution.on_ray import OnRay
from samesense.execution.processes import Processes
from samesense.execution.tasks import Executor, Serial

RETRIES = 2
"""How often a task is tried again, unless said otherwise."""

ExecutorName = Literal["embedded", "ray"]
"""Processes on this machine, or a Ray cluster."""


def choose_executor(
    name: ExecutorName,
    *,
    workers: int | None = None,
    address: str | None = None,
    default_workers: int = 1,
    retries: int = RETRIES,
    gpus: float = 0,
) -> Executor:
    """Return where tasks are done; ConfigError if a setting is for the other executor, or there is no worker."""
    if name == "ray":
        if workers is not None:
            raise ConfigError(
                f"workers is for the embedded executor; received {workers} with ray, which uses the whole cluster."
            )
        return OnRay(address, retries, gpus)
    if address is not None:
        raise ConfigError(f"address is for the ray executor; received {address!r} with embedded.")
    count = default_workers if workers is None else workers
    if count < 1:
        raise ConfigError(f"workers must be 1 or more; received {count}.")
    return Serial(retries) if count == 1 else Processes(count, retries)
