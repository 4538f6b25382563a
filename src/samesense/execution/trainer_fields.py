"""Fields of the trainer's arguments that a user sets: parsed by their declared type; those that we set are refused."""

from __future__ import annotations

import dataclasses
import difflib
import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any, get_args, get_type_hints

from pydantic import ConfigDict, PydanticSchemaGenerationError, TypeAdapter, ValidationError
from transformers import TrainingArguments

from samesense.errors import ConfigError

_DEV = "`dev` and `eval_steps` say when the model is evaluated and which state is kept"
_PUSH = "a finished model is published by samesense push"
_RESUME = "`resume` goes on with a run"

OURS = {
    "output_dir": "`output`",
    "num_train_epochs": "`epochs`",
    "per_device_train_batch_size": "`batch_size`",
    "gradient_accumulation_steps": "`batch_size` with `mini_batch_num_tokens`, which gives the loss of the whole batch",
    "auto_find_batch_size": "`batch_size` with `mini_batch_num_tokens`",
    "warmup_steps": "`warmup_ratio`",
    "bf16": "`precision` bfloat16",
    "data_seed": "`seed`",
    "prompts": "`prompt`",
    "batch_sampler": "`batches`, where the method has it",
    "multi_dataset_batch_sampler": "`mixing`, where the method has it",
    "use_cpu": 'CUDA_VISIBLE_DEVICES="" in the environment',
    "disable_tqdm": "progress is shown by samesense",
    **dict.fromkeys(
        ("dataloader_num_workers", "dataloader_persistent_workers", "dataloader_prefetch_factor"),
        "batches are made in the process that trains, which samples again in each epoch and counts what is cut",
    ),
    **{
        name: f"`{name}`"
        for name in (
            "learning_rate",
            "weight_decay",
            "warmup_ratio",
            "lr_scheduler_type",
            "max_steps",
            "max_grad_norm",
            "seed",
            "report_to",
        )
    },
    **dict.fromkeys(
        (
            "eval_strategy",
            "eval_steps",
            "eval_delay",
            "eval_on_start",
            "save_strategy",
            "save_steps",
            "load_best_model_at_end",
            "metric_for_best_model",
            "greater_is_better",
            "do_train",
            "do_eval",
            "do_predict",
        ),
        _DEV,
    ),
    **dict.fromkeys(("resume_from_checkpoint", "save_only_model", "ignore_data_skip"), _RESUME),
    **dict.fromkeys(
        (
            "push_to_hub",
            "hub_token",
            "hub_private_repo",
            "hub_model_id",
            "hub_strategy",
            "hub_always_push",
            "hub_revision",
        ),
        _PUSH,
    ),
}
"""Fields that samesense sets, and what to use instead."""

REPORTERS = {
    "tensorboard": ("tensorboard", "tensorboardX"),
    "wandb": ("wandb",),
    "trackio": ("trackio",),
    "mlflow": ("mlflow",),
}
"""Services to report a run to, each with the packages that provide it; one of them is needed."""


def trainer_fields(kind: type[TrainingArguments], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a user's values for fields of ``kind``; strings are parsed as the declared type of the field.

    ConfigError for an unknown field, one that samesense sets itself, or a value of another type.
    """
    hints = get_type_hints(kind)
    # Fields that the class derives itself cannot be passed to it.
    allowed = [field.name for field in dataclasses.fields(kind) if field.init and field.name not in OURS]
    for name in fields:
        if name in OURS:
            raise ConfigError(f"`trainer` {name} is set by samesense. In its place: {OURS[name]}.")
        if name not in allowed:
            near = difflib.get_close_matches(name, allowed, n=1)
            hint = "They are in the documentation of sentence-transformers."
            if near:
                hint = f"Did you mean {near[0]!r}?"
            raise ConfigError(f"`trainer` takes fields of {kind.__name__}, and {name!r} is none. {hint}")
    return {name: _typed(name, hints[name], value) for name, value in fields.items()}


def _typed(name: str, hint: Any, value: Any) -> Any:
    if isinstance(value, str) and value.lower() in ("none", "null") and type(None) in get_args(hint):
        return None
    try:
        return TypeAdapter(hint, config=ConfigDict(arbitrary_types_allowed=True)).validate_python(value)
    except (ValidationError, PydanticSchemaGenerationError) as error:
        what = getattr(hint, "__name__", str(hint))
        raise ConfigError(f"`trainer` {name} is of type {what}; received {value!r}.") from error


def check_trainer(kind: type[TrainingArguments], settings: Any) -> None:
    """Raise ConfigError if arguments of ``kind`` cannot take the settings."""
    _check_reporters(settings.report_to)
    trainer_fields(kind, settings.trainer)


def _check_reporters(names: Sequence[str]) -> None:
    """Raise ConfigError if the package of a reporter is not installed."""
    for name in names:
        if not any(importlib.util.find_spec(package) for package in REPORTERS[name]):
            raise ConfigError(f"`report_to` {name} needs the package {REPORTERS[name][0]}: pip install {name}")
