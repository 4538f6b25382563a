"""How a cell is evaluated: its model on every test set, with the scores of every pair."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from samesense.data import PairData
from samesense.evaluation.binary import BinaryTask
from samesense.evaluation.sts import StsTask
from samesense.files import replacing
from samesense.inference.models.load import load
from samesense.recipes.settings import EncoderSettings
from samesense.recipes.sweep.splits import Splits
from samesense.types import Precision, Result, Scorer, Scores, Task

DEV = "dev"
"""Under this name the scores of the pairs that select are kept, where thresholds are fitted on them."""


def open_trained(name: str, seed: int, folder: Path, precision: Precision) -> Scorer:
    """Open the model that a cell has trained."""
    return load(folder, name=name, precision=precision, seed=seed, cache=True)


def open_start(name: str, settings: EncoderSettings, precision: Precision) -> Scorer:
    """Make the encoder from which a cell with these settings would start."""
    from samesense.recipes.model_adapters import BiEncoder

    return load(BiEncoder().build(settings), name=name, precision=precision, cache=True)


def evaluate(candidate: Scorer, splits: Splits) -> tuple[list[Result], dict[str, Scores]]:
    """Return all figures, and what lies behind them by ``suite:dataset:metric``.

    Labels 0 and 1 are also evaluated as two classes, with thresholds fitted on the pairs that select.
    """
    results: list[Result] = []
    scores: dict[str, Scores] = {}
    for name, test in splits.tests.items():
        for task in _tasks(name, test, splits.dev):
            found = task.evaluate(candidate)
            results += found.results
            scores |= {f"{one.task}:{one.dataset}:{one.metric}": one.values for one in found.evidence}
    if splits.dev is not None and splits.dev.kind == "binary":
        scores[DEV] = candidate.scores(splits.dev.pairs())
    return results, scores


def _tasks(name: str, test: PairData, dev: PairData | None) -> list[Task]:
    tasks: list[Task] = [StsTask(test, dataset=name, intervals=False)]
    if test.kind == "binary":
        tasks.append(BinaryTask(test, dev if dev is not None and dev.kind == "binary" else None, dataset=name))
    return tasks


def write_scores(path: Path, scores: dict[str, Scores]) -> None:
    """Write arrays by name, whole or not at all."""
    with replacing(path) as beside, beside.open("wb") as stream:
        np.savez_compressed(stream, **scores)  # type: ignore[arg-type]
