"""What every training with the trainer of transformers has in common: its arguments, and how it is run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from transformers import PrinterCallback, Trainer, TrainingArguments

Arguments = TypeVar("Arguments", bound=TrainingArguments)


def training_arguments(
    kind: type[Arguments],
    settings: Any,
    checkpoints: Path,
    *,
    eval_steps: int,
    metric: str | None,
    use_cpu: bool,
    greater_is_better: bool = False,
    **more: Any,
) -> Arguments:
    """Return the arguments of a trainer: AdamW, a checkpoint at every evaluation, and the best one loaded at the end.

    ``settings`` has ``learning_rate``, ``warmup_ratio``, ``weight_decay``, ``seed`` and ``precision``, resolved to
    ``"float32"`` or ``"bfloat16"``. The newest two checkpoints are kept. ``metric`` chooses the best one; ``None``
    evaluates nothing and keeps the last state.
    """
    selecting = metric is not None
    return kind(
        output_dir=str(checkpoints),
        learning_rate=settings.learning_rate,
        warmup_steps=settings.warmup_ratio,  # a share of the steps when below 1
        weight_decay=settings.weight_decay,
        optim="adamw_torch_fused",
        bf16=settings.precision == "bfloat16",
        use_cpu=use_cpu,
        seed=settings.seed,
        data_seed=settings.seed,
        eval_strategy="steps" if selecting else "no",
        eval_steps=eval_steps if selecting else None,
        save_strategy="steps",
        save_steps=eval_steps,
        save_total_limit=2,
        load_best_model_at_end=selecting,
        metric_for_best_model=metric,
        greater_is_better=greater_is_better if selecting else None,
        logging_steps=max(1, eval_steps // 5),
        report_to="none",
        disable_tqdm=True,
        **more,
    )


def run_trainer(trainer: Trainer, resume_from: Path | None) -> bool:
    """Train, from a checkpoint where one is given; returns whether it was stopped before its end.

    The trainer's own printing is taken out. A run that early stopping ended counts as stopped too.
    """
    trainer.remove_callback(PrinterCallback)
    trainer.train(resume_from_checkpoint=None if resume_from is None else str(resume_from))
    return bool(trainer.state.global_step < trainer.state.max_steps)
