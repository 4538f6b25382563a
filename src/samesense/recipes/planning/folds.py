"""Cross-validation: a model is trained for each fold, and every pair is scored by the one that has not seen it.

    samesense.cross_validate("arguments/", folds=10, loss="mse", model="runs/surrogate", output="runs/folds")

Folds share no sentence, ignoring case and punctuation; ``10-mixed`` deals the pairs at random, as published folds are.
Nothing selects within a fold: the last state is kept. A model is deleted once it has scored its pairs.

Source: Misra, Ecker and Walker 2016, 10 folds; Reimers and Gurevych 2019, also each topic a fold.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from samesense.data import PairData
from samesense.evaluation.argument import ArgumentTask
from samesense.inference.models.load import load
from samesense.inference.models.model import Model
from samesense.locks import only_writer
from samesense.recipes.held_out.cross_validation import (
    SPLIT_SEED,
    FoldScores,
    read_folds,
    score_out_of_fold,
    warn_of_leaks,
)
from samesense.recipes.methods import Method
from samesense.recipes.run.run_folder import (
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
from samesense.training import manifest
from samesense.types import Result


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
    # Raises now if the pairs of a fold could not be trained on.
    for train, _ in task.folds:
        method.check(data.take(train), settings)
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


def _evaluated(
    method: Method, data: PairData, settings: EncoderSettings, output: Path, task: ArgumentTask
) -> list[Result]:
    """Train and score the folds that are not there, and evaluate all together."""
    scored = score_out_of_fold(data, task.folds, output, partial(_train_fold, method, settings), "nothing")
    if scored is None:
        raise KeyboardInterrupt
    model = Model(name=str(output), score=lambda pairs: scored.scores, seed=settings.seed, protocol=scored.protocol)
    results = task.evaluate(model).results
    # Appending would add to the results of an earlier call.
    (output / RESULTS).unlink(missing_ok=True)
    append_results(output / RESULTS, results)
    manifest.write(output, manifest.read(output) | {"status": "finished"})
    return results


def _train_fold(
    method: Method, settings: EncoderSettings, teaching: PairData, held: PairData, folder: Path
) -> FoldScores | None:
    """Train on some pairs, and score others by the last state; ``None`` if interrupted."""
    if not method.run_or_resume(teaching, settings, folder):
        return None
    model = load(folder, precision="float32")
    return FoldScores(shares=[1.0], scores=[model.scores(held.pairs()).tolist()], protocol=model.protocol)


def _check_folder(output: Path, record: dict[str, Any], *, resume: bool, overwrite: bool) -> None:
    if resume:
        manifest.check_same_run(output, record)
    else:
        check_new(output, overwrite=overwrite)
        check_inputs(output, record)
