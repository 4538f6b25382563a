"""Learning curve: models trained on parts of the data, and a power law through their scores, to predict more labels.

Parts are trained with the settings of the run: an eighth four times, a quarter twice, a half once, each on other rows.
This takes one and a half times as long as the run itself; small parts vary most, and cost least. Every model is
selected on the same dev pairs and evaluated on the set of the verdict.

Source: see :func:`samesense.metrics.power_law.fit_learning_curve`.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from samesense.data.examples import Examples
from samesense.execution.progress import progress_bar
from samesense.files import write_json
from samesense.inference.models.load import load
from samesense.metrics.power_law import fit_learning_curve
from samesense.recipes.held_out.sets import ComparedSet
from samesense.recipes.run.earlier_run import CURVE
from samesense.recipes.run.outcome.requirements import PARTS
from samesense.recipes.run.run_folder import run_or_resume
from samesense.recipes.run.training_run import TrainingRun
from samesense.recipes.settings import EncoderSettings
from samesense.reports.run_verdict import Curve
from samesense.schemas import Record, read_checked
from samesense.types import Floats, Scores

logger = logging.getLogger(__name__)

AHEAD = 4
"""How far the curve is drawn beyond the data, as a factor; predictions in words stop at twice the data."""

Train = Callable[..., TrainingRun]
"""Trains on a part of the data into a folder: ``train(part, folder, resume=..., overwrite=...)``."""


def settings_of_part(settings: EncoderSettings, fraction: float) -> EncoderSettings:
    """Return the settings for a part of the data; numbers of steps are scaled, so that the epochs stay the same."""
    if settings.max_steps is None:
        return settings
    steps = max(1, round(settings.max_steps * fraction))
    every = None
    if settings.eval_steps is not None:
        # With more steps between evaluations than there are, nothing would be selected.
        every = min(settings.eval_steps, steps)
    return settings.model_copy(update={"max_steps": steps, "eval_steps": every})


def measure_curve(data: Examples, output: Path, on: ComparedSet, whole: Scores, train: Train) -> Curve | None:
    """Train on the missing parts, and fit the curve; ``None`` if that was interrupted.

    ``whole`` are the scores of the run's own model on the set. A model is deleted once it has scored the pairs.
    """
    folder = output / CURVE
    rows = [len(data)]
    scores = [whole]
    subsets = [(denominator, index) for denominator, times in PARTS for index in range(times)]
    order = np.random.default_rng(0).permutation(len(data))
    with progress_bar("learning curve", "part", len(subsets)) as bar:
        for denominator, index in subsets:
            size = len(data) // denominator
            # Slices of one order: parts of the same size have no row in common.
            subset = data.take(sorted(order[index * size : (index + 1) * size].tolist()))
            subset_scores = _scores_of(subset, folder / f"{size}-{index + 1}", on, train)
            if subset_scores is None:
                return None
            rows.append(size)
            scores.append(subset_scores)
            bar.update()
    return fitted(np.array(rows), np.stack(scores), np.asarray(on.data.labels), on.name)


class CurveScores(Record):
    """Scores of a model that was trained on a part, as they are stored."""

    scores: list[float]


def _scores_of(subset: Examples, folder: Path, on: ComparedSet, train: Train) -> Scores | None:
    """Return the scores of a model trained on a part, stored or new; ``None`` if it was interrupted."""
    path = folder / "scores.json"
    if not path.is_file():
        logger.info(f"learning curve: {len(subset):,} rows, {folder.name}")
        if not run_or_resume(folder, partial(train, subset, folder)):
            return None
        # In float32, as the run's own model is scored.
        write_json(path, {"scores": load(folder, precision="float32").scores(on.data.pairs()).tolist()})
    # Also where an earlier call was killed after it had written the scores.
    shutil.rmtree(folder / "model", ignore_errors=True)
    return np.asarray(read_checked(path, CurveScores).scores, dtype=np.float64)


def fitted(rows: Any, scores: Floats, labels: Floats, dataset: str) -> Curve:
    """Return the curve through the scores of all models."""
    law = fit_learning_curve(rows, scores, labels)
    most = int(max(rows))
    twice = law.predict(2 * most, less=most)
    grid = np.geomspace(min(rows), AHEAD * most, 40)
    estimates = [(float(size), law.predict(size)) for size in grid]
    band = [(size, estimate.value, estimate.low, estimate.high) for size, estimate in estimates if estimate]
    points = [(int(size), float(figure)) for size, figure in zip(rows, law.figures, strict=True)]
    return Curve(rows=most, points=points, gain=twice.value, low=twice.low, high=twice.high, band=band, dataset=dataset)
