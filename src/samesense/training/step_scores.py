"""Scores of held-out pairs during training, from which the number of steps is chosen afterwards."""

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
"""File in a run folder with one line per evaluation: its step and the score of every pair."""

LineScores = dict[int, Scores]
"""Scores of the pairs by step ``(pairs,)``."""


class StepScores(TrainerCallback):
    """Records the scores of some pairs at every evaluation, in a file that a resumed run continues.

    Args:
        path: file of the scores.
        score: returns the scores of the pairs by a model, ``(pairs,)``.
        every: steps between two evaluations, in addition to the last step; ``None`` if another component calls
            :meth:`record`.
        resume: keep the scores of an interrupted run.

    Attributes:
        by_step: recorded scores by step.
        total: number of steps of the training.
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
        """Score the pairs, and record and return the scores of this step; raises as ``score`` does."""
        scores = self.score(model)
        self.by_step[self.step] = scores
        rows = ({"step": step, "scores": values.tolist()} for step, values in sorted(self.by_step.items()))
        write_json_lines(self.path, rows)
        return scores

    def on_train_begin(self, args: Any, state: TrainerState, control: Any, model: Any = None, **kwargs: Any) -> None:
        """Repeat an evaluation that was interrupted."""
        self.step = state.global_step
        self.total = state.max_steps
        # the run was stopped between a checkpoint and its evaluation
        if self.step and self.step not in self.by_step:
            self._record_if_due(state, model)

    def on_step_end(self, args: Any, state: TrainerState, control: Any, model: Any = None, **kwargs: Any) -> None:
        """Note the step, and score the pairs if an evaluation is due."""
        self.step = state.global_step
        self._record_if_due(state, model)

    def _record_if_due(self, state: TrainerState, model: Any) -> None:
        if self.every is None or (self.step % self.every and self.step != state.max_steps):
            return
        model.eval()
        try:
            self.record(model)
        except (DataError, ModelError):  # this step cannot be chosen
            self.by_step.pop(self.step, None)
        finally:
            model.train()


class StopAtStep(TrainerCallback):
    """Ends training at a step, with the learning-rate schedule of the full number of steps."""

    def __init__(self, step: int) -> None:
        self.last = step

    def on_step_end(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """End at the step, without a checkpoint: a run resumed from it would take one more step."""
        if state.global_step >= self.last:
            control.should_training_stop = True
            control.should_save = False


def read_step_scores(path: Path) -> LineScores:
    """Return the recorded scores of a run; empty if the file is missing or damaged."""
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return {int(row["step"]): np.asarray(row["scores"], dtype=np.float64) for row in rows}
    except (OSError, ValueError, LookupError, TypeError):
        return {}
