"""What a harvest can be told."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from samesense.execution.executors import RETRIES, ExecutorName, choose_executor
from samesense.execution.tasks import Executor

_HOW = ("workers", "executor", "address", "retries")
"""Settings that decide how a harvest is made, not what it is."""


class HarvestSettings(BaseModel):
    """Settings of a harvest; ConfigError if a setting is for another executor."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    pairs: int = Field(10_000, ge=1, description="pairs in all")
    random: float = Field(0.4, ge=0, description="share of any two sentences; shares are weights, 0 for none")
    neighbours: float = Field(0.4, ge=0, description="share of sentences that are near by TF-IDF screening")
    section: float = Field(0.2, ge=0, description="share of two sentences of one section")
    spacings: tuple[int, ...] = Field(
        (4, 16, 64), description="sentences around each leader that are neighbours; each gives as many pairs"
    )
    unit: int = Field(32, ge=2, description="sentences that are all paired with each other, which shares their cost")
    min_words: int = Field(3, ge=1, description="sentences with fewer words take no part")
    max_words: int = Field(64, ge=1, description="sentences with more words take no part")
    shard_size: int = Field(1000, ge=1, description="pairs of a file, and what a kill may cost a worker")
    seed: int = Field(42, ge=0, description="seed of all that is drawn")
    device: str = Field("cpu", description="torch device of the discriminator and the generator")

    workers: int | None = Field(None, ge=1, description="embedded: processes of one thread each [this process alone]")
    executor: ExecutorName = Field("embedded", description="processes on this machine, or a Ray cluster")
    address: str | None = Field(None, description="ray: a running cluster, auto or HOST:PORT [started on this machine]")
    retries: int = Field(RETRIES, ge=0, description="how often a shard whose worker failed or died is tried again")

    @field_validator("spacings", mode="before")
    @classmethod
    def _from_one_word(cls, value: Any) -> Any:
        return value.split(",") if isinstance(value, str) else value  # a flag with a dot gives one word

    @model_validator(mode="after")
    def _belongs(self) -> HarvestSettings:
        self.choose_executor()
        return self

    def choose_executor(self) -> Executor:
        """Return where shards are to be made."""
        return choose_executor(
            self.executor, workers=self.workers, address=self.address, retries=self.retries,
            gpus=0 if self.device == "cpu" else 1,
        )  # fmt: skip

    def identity(self) -> dict[str, Any]:
        """Return the settings that decide the pairs and scores, as JSON types."""
        return self.model_dump(mode="json", exclude=set(_HOW))
