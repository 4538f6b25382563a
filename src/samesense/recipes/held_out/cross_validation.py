"""Cross-validation of a training: every pair is scored by a model that was trained without it.

Each fold's model is scored at several shares of the way from the weights of the start to those of the end, and the
other folds choose the share. The model of the run is then trained on all pairs, and goes the share of the way that all
folds together choose. A start with a new head is nothing to go back to: there the shares are those of the steps.

Source: Wortsman et al. (2022), "Robust fine-tuning of zero-shot models" (WiSE-FT), for the weights between.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from samesense.data import PairData
from samesense.data.pairs.folds import fold_numbers
from samesense.errors import ConfigError, DataError
from samesense.evaluation.argument import ArgumentTask, Fold
from samesense.execution.progress import progress_bar
from samesense.files import write_json
from samesense.recipes.held_out.choose_share import (
    ScoredFold,
    choose_scores,
    choose_share,
    share_curve,
)
from samesense.recipes.held_out.scores import HeldOutScores
from samesense.reports.figures.curves import Curve
from samesense.schemas import Record, read_checked
from samesense.types import Floats, Scores

logger = logging.getLogger(__name__)

SPLIT_SEED = 0
"""Seed of the split into folds, independent of the models' seed, so that all have the same folds."""

FOLDS = 5
"""Default number of folds of few pairs."""

FEWER_FOLDS = 3
"""Default number of folds of :data:`FEWER_FOLDS_FROM` pairs or more: three fifths of the steps of five folds."""

FEWER_FOLDS_FROM = 200
"""Pairs of which two thirds teach nearly what four fifths do: one run in five chose otherwise, see the log."""

FOLDS_FOLDER = "folds"
"""Subfolder of the run, with a folder for each fold."""

FOLD_FILE = "scores.json"
"""Scores of the pairs of a fold along the steps, in its folder."""


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """The split of pairs into folds, and its use.

    Attributes:
        name: the option as given, such as ``"5"``, ``"10-mixed"`` or ``"by-topic"``.
        folds: rows to train on and rows held out, of each fold.
        apart: what folds do not share, in words.
        selects: whether the folds choose the share of the training; else the last state counts.
        task: evaluation over the folds, where folds were requested.
        untuned_start_rate: learning rate for a start that was never tuned for sentences; ``None`` for that of the
            settings.
    """

    name: str
    folds: list[Fold]
    apart: str
    selects: bool = True
    task: ArgumentTask | None = None
    untuned_start_rate: float | None = None

    def numbers(self) -> list[int]:
        """Return the number of the fold of each pair ``(pairs,)``."""
        numbers = np.full(sum(len(held) for _, held in self.folds), -1)
        for number, (_, held) in enumerate(self.folds):
            numbers[held] = number
        return [int(number) for number in numbers]

    def description(self) -> str:
        """Return in words how the pairs of a verdict were scored."""
        scored = "out of fold, each scored by a model that was trained without it"
        return f"{scored} ({len(self.folds)} folds, {self.apart})"


def deal_pairs(data: PairData, folds: str, *, selects: bool = True) -> CrossValidation:
    """Split pairs into the requested folds, or for ``"auto"`` into five, and into three of many pairs.

    With ``"auto"`` folds share no sentence; or only no pair, with a warning, where most pairs are connected by shared
    sentences. ConfigError or DataError if the requested folds are impossible.
    """
    if folds != "auto":
        task = read_folds(data, folds)
        warn_of_leaks(task)
        apart = {"apart": "which share no sentence", "mixed": "of random pairs", "by-topic": "each of one topic"}
        return CrossValidation(folds, task.folds, apart[task.mode], selects, task)
    count = FOLDS if len(data) < FEWER_FOLDS_FROM else FEWER_FOLDS
    numbers, kind = fold_numbers(data, count, SPLIT_SEED)
    if kind == "pairs":
        logger.warning(
            f"{data.name}: most pairs are connected by shared sentences, so folds share sentences, though no pair: the "
            "figures are too high. Give `test` FILE with pairs of other sentences"
        )
    rows = np.arange(len(data))
    held = [np.flatnonzero(numbers == number) for number in np.unique(numbers)]
    return CrossValidation(
        str(count),
        [(np.setdiff1d(rows, held_rows), held_rows) for held_rows in held],
        f"which share no {kind.removesuffix('s')}",
    )


def read_folds(data: PairData, folds: str) -> ArgumentTask:
    """Return the folds of an option such as ``"10"``, ``"10-mixed"`` or ``"by-topic"``."""
    if folds == "by-topic":
        return ArgumentTask(data, mode="by-topic", seed=SPLIT_SEED)
    count, dash, mode = folds.partition("-")
    if not (count.isascii() and count.isdecimal()) or (dash and mode != "mixed"):
        raise ConfigError(
            "folds is a number of folds that share no sentence, such as 10, a number of folds of random pairs, such as "
            f"10-mixed, by-topic, none, or auto; received {folds!r}."
        )
    return ArgumentTask(data, folds=int(count), mode="mixed" if dash else "apart", seed=SPLIT_SEED)


def warn_of_leaks(task: ArgumentTask) -> None:
    """Warn if training and held-out pairs share sentences, or if a fold is much larger than others."""
    if task.shared:
        logger.warning(
            f"{task.shared} of {len(task.data)} pairs share a sentence with pairs that their model is trained on, so "
            "the figures are too high. `folds` with a number alone splits pairs so that folds share none"
        )
    sizes = [len(held) for _, held in task.folds]
    if task.mode == "apart" and max(sizes) > 2 * len(task.data) / len(sizes):
        logger.warning(
            f"The largest fold has {max(sizes)} of {len(task.data)} pairs, because these share sentences: "
            "its model is trained on fewer pairs than the others. Fewer folds are more alike"
        )


class FoldScores(Record):
    """Scores of the pairs of a fold along its training, as its file has them.

    Attributes:
        shares: shares of the training at the evaluations, ascending ``(evaluations,)``; 0 is the start.
        scores: ``(evaluations, pairs)``.
        protocol: how they were made, in words.
    """

    shares: list[float]
    scores: list[list[float]]
    protocol: str


TrainFold = Callable[[PairData, PairData, Path], FoldScores | None]
"""Trains on some pairs and scores others along the training, in a folder; ``None`` if that was interrupted."""

WEIGHT_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of the way from the start to the end that are tried; at 0 the start is kept."""

Selects = Literal["nothing", "steps", "weights"]
"""What the folds choose: nothing, the number of steps, or how far the weights go from the start to the end."""


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """Result of a cross-validation.

    Attributes:
        scores: score of every pair, by a model that was trained without it ``(pairs,)``.
        scored: the folds with their scores along the training.
        protocol: how the scores were made, in words.
        selects: what the folds chose.
    """

    scores: Scores
    scored: Sequence[ScoredFold]
    protocol: str
    selects: Selects

    @cached_property
    def weight_share(self) -> float:
        """How far the weights are to go from the start to the end of a training on all pairs."""
        if self.selects != "weights":
            return 1.0
        return choose_share(self.scored, np.array(WEIGHT_SHARES))

    def stop_step(self, steps: int, every: int) -> int:
        """Return the step at which to stop a training of ``steps`` that is evaluated every ``every`` steps."""
        if self.selects != "steps":
            return steps
        # Folds train on fewer pairs in fewer steps, so that only shares can be compared.
        return round(choose_share(self.scored, _evaluated_shares(steps, every)) * steps)

    def curve(self, name: str, steps: int, every: int, start: float | None) -> Curve:
        """Return Spearman out of fold along a training of ``steps`` on all pairs, ``start`` first if there is one.

        A share of the weights stands at as large a share of the steps.
        """
        shares = _evaluated_shares(steps, every)
        if self.selects == "weights":
            shares = np.array(WEIGHT_SHARES[1:])
        figures = share_curve(self.scored, shares)
        first = [] if start is None else [(0.0, start)]
        points = [*first, *zip((steps * shares).tolist(), figures.tolist(), strict=True)]
        return Curve(name, tuple(step for step, _ in points), tuple(figure for _, figure in points))

    def held_out(self, data: PairData, dealt: CrossValidation) -> HeldOutScores:
        """Return the scores to store for the calibration."""
        return HeldOutScores(data, self.scores, dealt.numbers(), self.protocol)


def _evaluated_shares(steps: int, every: int) -> Floats:
    """Return the shares of the steps after which a training is evaluated; the last step always is."""
    evaluated: Floats = np.unique(np.append(np.arange(every, steps + 1, every), steps)) / steps
    return evaluated


def score_out_of_fold(
    data: PairData, folds: Sequence[Fold], output: Path, train: TrainFold, selects: Selects
) -> OutOfFold | None:
    """Train and score the missing folds; ``None`` if that was interrupted.

    Each fold has a folder in ``output``; one that was scored is not trained again.
    """
    with progress_bar("cross-validation", "fold", len(folds)) as bar:
        scored_folds = _scored_folds(data, folds, output, train, bar)
    if scored_folds is None:
        return None
    scored, protocol = scored_folds
    if selects != "nothing":
        scores = choose_scores(scored)
    else:
        scores = np.empty(len(data))
        for fold in scored:
            scores[fold.rows] = fold.scores[-1]
    return OutOfFold(scores, scored, f"{protocol}; each pair scored by a model that was trained without it", selects)


def _scored_folds(
    data: PairData, folds: Sequence[Fold], output: Path, train: TrainFold, bar: Any
) -> tuple[list[ScoredFold], str] | None:
    """Return the folds with their scores, and how these were made; ``None`` if a training was interrupted."""
    scored = []
    protocol = ""
    labels = np.asarray(data.labels, dtype=np.float64)
    for number, (teaching, held) in enumerate(folds, 1):
        folder = output / f"fold-{number:02}"
        path = folder / FOLD_FILE
        if not path.is_file():
            logger.info(f"fold {number} of {len(folds)}: {len(teaching)} pairs train, {len(held)} test")
            fold_scores = train(data.take(teaching), data.take(held), folder)
            if fold_scores is None:
                return None
            write_json(path, fold_scores.model_dump())
        # Only once the scores are written, so that a killed run trains no fold twice.
        for name in ("checkpoints", "model"):
            shutil.rmtree(folder / name, ignore_errors=True)
        content = read_checked(path, FoldScores)
        scores = np.asarray(content.scores, dtype=np.float64)
        if scores.shape != (len(content.shares), len(held)) or not len(scores):
            raise DataError(
                f"{path} must hold scores of {len(held)} pairs along the training; it holds an array of shape "
                f"{scores.shape}. Delete the folder {folder}."
            )
        protocol = content.protocol
        shares = np.asarray(content.shares, dtype=np.float64)
        scored.append(ScoredFold(held, labels[held], shares, scores))
        bar.update()
    return scored, protocol
