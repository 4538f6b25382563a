"""Settings of distillation; see :mod:`samesense.recipes.distil.recipe`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from samesense.errors import ConfigError
from samesense.execution.settings import with_defaults
from samesense.recipes.settings import bind, read_settings
from samesense.recipes.unsupervised.settings import RankcseSettings
from samesense.types import PoolingName


@with_defaults(
    learning_rate=3e-4, batch_size=64, epochs=1.0, head="none", rank="listnet", tau3=0.05, contrast=0.0, beta=0.0
)
class DistilSettings(RankcseSettings):
    """Settings of a student and of its training; the defaults are those of ``configs/distil/encoder.toml``."""

    model: str = Field(
        "layers:3", description="the student: layers:N of the first teacher, static[:DIM], or a folder or hub name"
    )
    spacing: Literal["even", "first"] = Field(
        "even",
        description="layers:N keeps the first layer and others at even distances up to the last, or the first ones",
    )
    regress: float = Field(1.0, ge=0, description="weight of the distance from the teachers' vectors; 0 leaves it out")
    eval_steps: int | None = Field(
        None, ge=1, description="steps between evaluations on the dev set [auto: ten a run, at most 1000 apart]"
    )
    pooling: PoolingName | None = Field(None, description="pooling [the model's own; a bare transformer's mean]")
    max_seq_length: int | None = Field(64, ge=2, description="longest input in training, in tokens")
    dropout: float | None = Field(0.0, ge=0, lt=1, description="dropout of the student in training [none: its own]")
    views: Literal["two", "one"] = Field("one", description="two: for InfoNCE and consistency, with dropout")

    @property
    def embedding_models(self) -> tuple[str, ...]:
        """The teachers that a run asks: all."""
        return self.teacher

    def check_terms(self) -> None:
        """Raise ConfigError if the terms of the loss that have a weight cannot be learnt from."""
        if not (self.regress or self.gamma):
            raise ConfigError("A student learns the vectors or the ranking of its teachers. Give regress or gamma.")
        if self.views == "one" and (self.beta or self.contrast):
            raise ConfigError(
                f"contrast {self.contrast:g} and beta {self.beta:g} compare two views of a sentence. Leave them out, "
                "or set views two and a dropout."
            )


def choose_distil(config: str, overrides: Mapping[str, Any]) -> tuple[str, DistilSettings]:
    """Return the settings of a run: the shipped ones for the kind of student, the user's own file, and what was given.

    ``config`` is ``"auto"`` for no file of the user's own; the name returned is for display.
    """
    file_settings: dict[str, Any] = {}
    if config != "auto":
        file_settings = read_settings(config, "distil")
    static = str({**file_settings, **overrides}.get("model", "")).partition(":")[0] == "static"
    kinds = ("encoder", "static") if static else ("encoder",)
    settings = bind(DistilSettings, *(read_settings(kind, "distil") for kind in kinds), file_settings, overrides)
    if not settings.teacher:
        raise ConfigError("A student learns from a teacher, and none was named. Give a teacher.")
    return f"distil of {kinds[-1]}" if config == "auto" else config, settings
