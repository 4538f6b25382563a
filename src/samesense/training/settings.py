"""Settings of a training run that are independent of its loss."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from samesense.errors import ConfigError
from samesense.execution.ranks import world_size
from samesense.execution.settings import Settings, split_at_commas
from samesense.types import Precision

Scheduler = Literal[
    "linear",
    "constant_with_warmup",
    "cosine",
    "cosine_with_restarts",
    "cosine_with_min_lr",
    "polynomial",
    "inverse_sqrt",
    "warmup_stable_decay",
]
"""Schedules of transformers with a warm-up; their arguments are ``lr_scheduler_kwargs`` of ``trainer``."""


class TrainerSettings(Settings):
    """Settings of all runs with a trainer; the defaults are those of the CoSENT paper (section IV)."""

    learning_rate: float = Field(2e-5, gt=0, description="peak learning rate of AdamW")
    weight_decay: float = Field(0.01, ge=0, description="weight decay, not applied to biases and layer norms")
    warmup_ratio: float = Field(
        0.1, ge=0, lt=1, description="share of the steps in which the learning rate rises to its peak"
    )
    lr_scheduler_type: Scheduler = Field("linear", description="learning rate after the warm-up")
    batch_size: int = Field(16, ge=1, description="examples per process and step")
    epochs: float = Field(4, gt=0, description="passes over the training data")
    max_steps: int | None = Field(None, ge=1, description="stop after this number of steps, overrides epochs")
    mini_batch_num_tokens: int | None = Field(
        None,
        ge=1,
        description="most tokens held at once; larger batches go in parts, same loss and gradient [no bound]",
    )
    max_grad_norm: float = Field(1.0, gt=0, description="gradients are scaled down to this norm")
    eval_steps: int | None = Field(
        None, ge=1, description="steps between evaluations on the dev set [auto: ten a run, at most 1000 apart]"
    )
    early_stopping_patience: int | None = Field(
        None, ge=1, description="stop after this number of evaluations without a better dev score [off]"
    )
    precision: Precision = Field(
        "auto", description="arithmetic; auto measures whether bfloat16 is faster on this machine"
    )
    seed: int = Field(42, ge=0, description="seed of weights, order and dropout")
    report_to: tuple[Literal["tensorboard", "wandb", "trackio", "mlflow"], ...] = Field(
        (), description="where loss and dev score are sent too: tensorboard, wandb, trackio, mlflow"
    )
    trainer: dict[str, Any] = Field(
        {}, description="fields of SentenceTransformerTrainingArguments, as in: gradient_checkpointing=true"
    )

    _split_reports = field_validator("report_to", mode="before")(split_at_commas)

    @field_validator("trainer", mode="before")
    @classmethod
    def _parse_fields(cls, value: Any) -> Any:
        """Parse ``key=value`` words into a dictionary."""
        if not isinstance(value, list | tuple):
            return value
        words = [str(word).partition("=") for word in value]
        wrong = next(("".join(word) for word in words if not word[0] or not word[1]), None)
        if wrong is not None:
            raise ConfigError(f"`trainer` takes fields as key=value; received {wrong!r}.")
        return {key.replace("-", "_"): text for key, _, text in words}

    def steps(self, examples: int) -> int:
        """Return the number of optimiser steps over ``examples`` training examples, of all processes together.

        A single process uses a shorter last batch; several leave out examples that do not fill a batch of each.
        """
        ranks = world_size()
        if ranks == 1:
            steps_per_epoch = -(-examples // self.batch_size)
        else:
            steps_per_epoch = examples // self.batch_size // ranks
        # Rounded up; in thousandths, so that the last bit of a float adds no step.
        return self.max_steps or max(1, -(-int(steps_per_epoch * self.epochs * 1000) // 1000))

    def steps_between_evaluations(self, examples: int) -> int:
        """Return the number of steps between two evaluations on the dev set."""
        return self.eval_steps or max(1, min(1000, self.steps(examples) // 10))

    def for_data(self, train: Any) -> Self:
        """Return the settings with those filled in that depend on the training data; here none."""
        return self


class TrainingSettings(TrainerSettings):
    """Settings for the training of an encoder."""

    lora: int | None = Field(
        None,
        ge=1,
        description="train adapters of this rank instead of the transformer's weights [off]",
    )
    keep_lora: bool = Field(
        False, description="save the adapters by themselves with the name of the start, not merged into its weights"
    )
    freeze_layers: int | None = Field(
        None,
        ge=1,
        description="keep the word embeddings and this number of first layers as they are; their output is computed "
        "once a text [off]",
    )
    matryoshka: tuple[int, ...] = Field(
        (), description="smaller widths at which the first numbers of a vector are trained too, as in: 256,128,64"
    )

    _split_widths = field_validator("matryoshka", mode="before")(split_at_commas)

    @field_validator("matryoshka")
    @classmethod
    def _sort_widths(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if min(value, default=1) < 1:
            raise ConfigError(f"`matryoshka` takes widths from 1 on; received {min(value)}.")
        return tuple(sorted(set(value), reverse=True))

    @model_validator(mode="after")
    def _freeze_once(self) -> Self:
        """Refuse adapters beside frozen layers, as adapters freeze all layers."""
        if self.lora is not None and self.freeze_layers is not None:
            raise ConfigError(
                "`lora` freezes all layers and trains adapters beside them. Leave out `lora` or `freeze_layers`."
            )
        return self


def check_stopping(settings: TrainingSettings, *, has_dev: bool) -> None:
    """Raise ConfigError for early stopping without the dev set whose scores it counts."""
    if settings.early_stopping_patience is not None and not has_dev:
        raise ConfigError(
            "`early_stopping_patience` counts evaluations on a dev set, and there is none. Give `dev`, or leave it out."
        )
