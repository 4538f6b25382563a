"""Settings of a harvest, and what its folder holds beside what :mod:`samesense.execution.shards.job` writes there."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from samesense.choices import ExecutorName
from samesense.context.harvest.plan import Mixture
from samesense.execution.shards.executors import choose_executor
from samesense.execution.shards.tasks import RETRIES, Executor

VECTORS = "vectors"
"""Folder of the vectors of the sentences that take part, in a harvest by next words: shards of its own."""

COLUMNS = ("sentence1", "sentence2", "score", "kind")
"""Columns of a shard that say what a pair is; further ones say where its sentences stand."""

_HOW = ("workers", "executor", "address", "retries")
"""Settings that decide how a harvest is made, not what it is."""


class HarvestSettings(Mixture):
    """Settings of a harvest; ConfigError if a setting is for another executor."""

    device: str = Field("cpu", description="torch device of the discriminator and the generator")

    workers: int | None = Field(
        None, ge=1, description="embedded: processes of one thread each [words: one a processor, 4 at most; else one]"
    )
    executor: ExecutorName = Field("embedded", description="processes on this machine, or a Ray cluster")
    address: str | None = Field(None, description="ray: a running cluster, auto or HOST:PORT [started on this machine]")
    retries: int = Field(RETRIES, ge=0, description="how often a shard whose worker failed or died is tried again")

    @model_validator(mode="after")
    def _belongs(self) -> HarvestSettings:
        # Called only to raise for a setting of another executor.
        self.choose_executor()
        return self

    def choose_executor(self, default_workers: int = 1) -> Executor:
        """Return where shards are to be made."""
        return choose_executor(
            self.executor,
            workers=self.workers,
            address=self.address,
            retries=self.retries,
            default_workers=default_workers,
            gpus=0 if self.device == "cpu" else 1,
        )

    def check_contexts(self, contexts: str) -> None:
        """Raise ConfigError for a setting without effect on the harvest of an Origin with these contexts."""
        self.refuse(("unit", "spacings") if contexts == "words" else ("sentences",), f"contexts is {contexts}")

    def identity(self) -> dict[str, Any]:
        """Return the settings that decide the pairs and scores, as JSON types."""
        return self.model_dump(mode="json", exclude=set(_HOW))
