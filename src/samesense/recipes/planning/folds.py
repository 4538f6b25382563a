"""Cross-validation: a model is trained for each fold, and every pair is scored by the one that has not seen it.

    samesense.cross_validate("arguments/", folds=10, loss="mse", model="runs/surrogate", output="runs/folds")

Folds share no sentence, ignoring case and punctuation; ``10-mixed`` deals the pairs at random, as published folds are.
Nothing selects within a fold: the last state is kept. A model is deleted once it has scored its pairs.

Source: Misra, Ecker and Walker 2016, 10 folds; Reimers and Gurevych 2019, also each topic a fold.
"""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from samesense.data import PairData
from samesense.errors import DataError
from samesense.evaluation.argument import ArgumentTask, Fold
from samesense.execution.progress import progress_bar
from samesense.files import only_writer, write_json
from samesense.inference.models.load import load
from samesense.inference.models.model import Model
from samesense.recipes.held_out.cross_validation import SPLIT_SEED, read_folds, warn_of_leaks
from samesense.recipes.methods import Method
from samesense.recipes.run.run_folder import (
    FOLD_SCORES,
    FOLDS,
    RESULTS,
    check_inputs,
    check_new,
    clear,
    cleared_if_refused,
    data_identity,
)
from samesense.recipes.settings import EncoderSettings
from samesense.reports import append_results
from samesense.schemas import Record, read_object
from samesense.training import manifest
from samesense.types import Result

logger = logging.getLogger(__name__)


def cross_validate(
    method: Method,
    data: PairData,
    settings: EncoderSettings,
    output: Path,
    folds: str,
    *,
    resume: bool = False,
    overwrite: bool = False,
) -> list[Result]:
    """Train and evaluate fold by fold.

    ``folds`` is a number of folds that share no sentence, such a number with ``-mixed`` for folds of random pairs, or
    ``"by-topic"``, the subsets of the pairs being topics.

    ``output`` holds ``fold-01`` and so on, ``manifest.json`` and ``results.jsonl``. Returned is what
    :class:`~samesense.evaluation.argument.ArgumentTask` says of the scores that were given without having seen the
    pair. Where a run could not end well, it raises before the first step; after Ctrl-C, the same call with ``resume``
    goes on.
    """
    task = read_folds(data, folds)
    _check_folds(method, data, settings, task.folds)
    warn_of_leaks(task)
    arguments = {"folds": folds, "split_seed": SPLIT_SEED, "method": method.name, **settings.model_dump()}
    record = manifest.describe(FOLDS, arguments, data_identity({"train": data}))
    _check_folder(output, record, resume=resume, overwrite=overwrite)
    with only_writer(output), cleared_if_refused(output, resume=resume):
        _check_folder(output, record, resume=resume, overwrite=overwrite)  # another run may have ended since
        if not resume:
            clear(output)
            manifest.write(output, record)
        return _evaluated(method, data, settings, output, task)


class FoldScores(Record):
    """What is kept of a fold: the scores of its pairs."""

    scores: list[float]
    protocol: str


def _evaluated(
    method: Method, data: PairData, settings: EncoderSettings, output: Path, task: ArgumentTask
) -> list[Result]:
    """Train and score the folds that are not there, and evaluate all together."""
    scores = np.full(len(data), np.nan)
    protocol = ""
    with progress_bar("cross-validation", "fold", len(task.folds)) as bar:
        for number, (train, test) in enumerate(task.folds, 1):
            folder = output / f"fold-{number:02}"
            logger.info(f"fold {number} of {len(task.folds)}: {len(train)} pairs train, {len(test)} test")
            if not (folder / FOLD_SCORES).is_file():
                if not method.run_or_resume(data.take(train), settings, folder):
                    raise KeyboardInterrupt
                _write_scores(folder, data.take(test))
            # Also where an earlier call was killed after it had written the scores.
            shutil.rmtree(folder / "model", ignore_errors=True)
            content = read_object(folder / FOLD_SCORES, FoldScores)
            if len(content["scores"]) != len(test):
                raise DataError(
                    f"{folder / FOLD_SCORES} must hold the scores of {len(test)} pairs; it holds "
                    f"{len(content['scores'])}. Delete the folder {folder}."
                )
            scores[test] = content["scores"]
            protocol = content["protocol"]
            bar.update()
    model = Model(
        name=str(output),
        score=lambda pairs: scores,
        seed=settings.seed,
        protocol=f"{protocol}; each pair scored by a model that was trained without it",
    )
    results = task.evaluate(model).results
    # Appending would add to the results of an earlier call.
    (output / RESULTS).unlink(missing_ok=True)
    append_results(output / RESULTS, results)
    manifest.write(output, manifest.read(output) | {"status": "finished"})
    return results


def _check_folds(method: Method, data: PairData, settings: EncoderSettings, folds: list[Fold]) -> None:
    """Raise now if the pairs of a fold could not be trained on."""
    for train, _ in folds:
        method.check(data.take(train), settings)


def _check_folder(output: Path, record: dict[str, Any], *, resume: bool, overwrite: bool) -> None:
    if resume:
        manifest.check_same_run(output, record)
    else:
        check_new(output, overwrite=overwrite)
        check_inputs(output, record)


def _write_scores(folder: Path, test: PairData) -> None:
    model = load(folder, precision="float32")
    write_json(folder / FOLD_SCORES, {"scores": model.scores(test.pairs()).tolist(), "protocol": model.protocol})
