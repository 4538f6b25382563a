"""Scores of held-out pairs along the steps of a training: what a choice of steps is made by afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from transformers import TrainerCallback, TrainerState

from samesense.errors import DataError, ModelError
from samesense.files import write_json_lines
from samesense.types import Scores

STEP_SCORES = "step-scores.jsonl"
"""File in a run folder: one line an evaluation, with its step and the score of every pair."""

LineScores = dict[int, Scores]
"""Scores of the pairs by step ``(pairs,)``."""


class StepScores(TrainerCallback):
    """Keeps the scores of some pairs at every evaluation, in a file that a resumed run continues.

    Args:
        path: file of the scores.
        score: gives the scores of the pairs by a model ``(pairs,)``.
        every: steps between two evaluations, the last step included; ``None`` where another part of the trainer calls
            :meth:`record`.
        resume: keep what an interrupted run has recorded.

    Attributes:
        by_step: what was recorded, by step.
        total: steps of the training.
    """

    def __init__(
        self, path: Path, score: Callable[[Any], Scores], *, every: int | None = None, resume: bool = False
    ) -> None:
        self.path = path
        self.score = score
        self.every = every
        self.by_step = read_step_scores(path) if resume else {}
        self.step = 0
        self.total = 0

    def record(self, model: Any) -> Scores:
        """Score the pairs and keep the scores of this step; raises as ``score`` does."""
        scores = self.score(model)
        self.by_step[self.step] = scores
        rows = ({"step": step, "scores": values.tolist()} for step, values in sorted(self.by_step.items()))
        write_json_lines(self.path, rows)
        return scores

    def on_train_begin(self, args: Any, state: TrainerState, control: Any, model: Any = None, **kwargs: Any) -> None:
        """Make up for an evaluation that was interrupted."""
        self.step = state.global_step
        self.total = state.max_steps
        if self.step and self.step not in self.by_step:
            self._record_if_due(state, model)

    def on_step_end(self, args: Any, state: TrainerState, control: Any, model: Any = None, **kwargs: Any) -> None:
        """Note the step, and score the pairs if it is time."""
        self.step = state.global_step
        self._record_if_due(state, model)

    def _record_if_due(self, state: TrainerState, model: Any) -> None:
        if self.every is None or (self.step % self.every and self.step != state.max_steps):
            return
        model.eval()
        try:
            self.record(model)
        except (DataError, ModelError):  # scores that are no numbers are never chosen
            self.by_step.pop(self.step, None)
        finally:
            model.train()


class StopAtStep(TrainerCallback):
    """Ends a training at a step, while the learning rate goes on as if it had all of them."""

    def __init__(self, step: int) -> None:
        self.last = step

    def on_step_end(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """End at the step, without a checkpoint: a run that is resumed from it would take one step more."""
        if state.global_step >= self.last:
            control.should_training_stop = True
            control.should_save = False


def read_step_scores(path: Path) -> LineScores:
    """Return what a run has recorded; nothing if there is no such file, or it is damaged."""
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return {int(row["step"]): np.asarray(row["scores"], dtype=np.float64) for row in rows}
    except (OSError, ValueError, LookupError, TypeError):
        return {}
