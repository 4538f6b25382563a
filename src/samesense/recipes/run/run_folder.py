"""The folder of a training run: who may write to it, what it holds while the run goes on, and what it says at the end.

model/  manifest.json  history.jsonl  results.jsonl  report.html  dev.tsv (pairs held out of the training data, if they
were)  held-out-scores.json (for the calibration)  step-scores.jsonl (of dev)  folds/ (of a cross-validation)
learning-curve/ (if asked for)  checkpoints/ (while training)  .lock (held while writing)

A run is trained once its manifest has an outcome and its model is there, and finished once the manifest says so: what
is left after a stop between the two is to evaluate it.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from samesense.data import PairData
from samesense.data.examples import Examples
from samesense.encoder.assembly.students import is_made_from_teacher
from samesense.encoder.saving.card import RIGHTS, Card, CardData, write_card
from samesense.encoder.saving.storage import check_free
from samesense.errors import AnotherRunError, ConfigError, DataError, MissingExtraError, ModelError, OutputError
from samesense.execution.ranks import is_main
from samesense.execution.trainer import TENSORBOARD
from samesense.failures import shortened
from samesense.inference.names import place_of
from samesense.locks import LOCK, only_writer
from samesense.places import check_folder, name_without_folder
from samesense.recipes.held_out.cross_validation import FOLD_FILE, FOLDS_FOLDER
from samesense.recipes.held_out.pairs import DEV, HELD_OUT_TUPLES, MODEL, TEST
from samesense.recipes.held_out.scores import HELD_OUT_SCORES
from samesense.recipes.run.earlier_run import CHECKPOINTS, CURVE, REFIT, came_to_nothing, check_folder_of_run
from samesense.recipes.run.training_run import TrainingRun
from samesense.reports import read_results
from samesense.results.results import Results
from samesense.training import manifest
from samesense.training.fit import TrainOutput
from samesense.training.step_scores import STEP_SCORES

logger = logging.getLogger(__name__)

HISTORY = "history.jsonl"
RESULTS = "results.jsonl"
REPORT = "report.html"
STANDARDIZED = "(standardized)"
"""End of the name under which a start that is kept is evaluated with its map."""
STANDARDIZED_START = "standardized_start"
"""Key in the manifest for what was done to a start that is kept, in words."""

FOLDERS = (MODEL, CHECKPOINTS, TENSORBOARD, CURVE, FOLDS_FOLDER, REFIT)


def data_identity(datasets: Mapping[str, Examples | None]) -> dict[str, Any]:
    """Return what tells the data of one run from those of another: source, fingerprint, rows and scale of each part.

    The scale of labels decides targets, and may be the user's word.
    """
    return {
        name: {"source": data.source, "sha256": data.sha256, "rows": len(data)}
        | ({"scale": data.scale} if isinstance(data, PairData) else {})
        for name, data in datasets.items()
        if data is not None
    }


def check(output: Path, record: dict[str, Any], *, resume: bool, overwrite: bool) -> dict[str, Any]:
    """Raise where this run may not write to ``output``; returns the manifest of the run that is resumed, or nothing."""
    if not resume:
        if is_main():
            # In one process: the others may find what the first has written by then.
            check_new(output, overwrite=overwrite)
            check_inputs(output, record)
        return {}
    if (output / MODEL).exists() and manifest.read(output).get("status") == "finished":
        raise OutputError(f"The run in {output} is finished: its model is there. Overwrite it to train again.")
    return manifest.check_same_run(output, record)


def check_new(output: Path, *, overwrite: bool) -> None:
    """Raise OutputError where a new run may not be written to ``output``."""
    if not overwrite:
        check_folder_of_run(output)
    check_free(output, overwrite=overwrite or came_to_nothing(output))


def check_inputs(output: Path, record: dict[str, Any]) -> None:
    """Raise OutputError if what a new run removes in a folder is read by it."""
    if not output.is_dir():
        return
    settings = record["settings"]
    inputs = [dataset["source"] for dataset in record["data"].values()]
    inputs += map(str, (settings.get("model", ""), *settings.get("teacher", ())))
    if settings.get("guide"):
        inputs.append(settings["guide"])
    for path in _earlier(output):
        check_folder(path, map(place_of, inputs))


def _earlier(output: Path) -> list[Path]:
    """Return what an earlier run may have left: of one model, or of folds."""
    files = (manifest.FILE, HISTORY, RESULTS, REPORT, STEP_SCORES, HELD_OUT_SCORES, *DEV, *TEST, HELD_OUT_TUPLES)
    marks = (manifest.FILE, FOLD_FILE)
    # A folder of the user's may have such a name too.
    folds = [folder for folder in output.glob("fold-[0-9][0-9]") if any((folder / mark).is_file() for mark in marks)]
    return [*folds, *(output / name for name in (*FOLDERS, *files))]


def clear(output: Path) -> None:
    """Remove what an earlier run left, and nothing else."""
    for path in _earlier(output):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def finished_training(output: Path, before: Mapping[str, Any]) -> TrainOutput | None:
    """Return how the training of a resumed run ended, where only the evaluation is left; ``before`` is its manifest."""
    if "outcome" not in before or not (output / MODEL).is_dir():
        return None
    try:
        return TypeAdapter(TrainOutput).validate_python(before["outcome"])
    except ValidationError as error:
        raise DataError(
            f"{output / manifest.FILE} is damaged: its `outcome` is none of a run ({shortened(error)}). Train again."
        ) from error


def save_model(output: Path, record: dict[str, Any], trained: TrainOutput, write: Callable[[Path], object]) -> None:
    """Put the trained model into the folder; ``write`` puts it there whole or not at all."""
    # Outcome, then model, then no checkpoints: a run killed between them can still be resumed.
    manifest.write(output, record | {"outcome": asdict(trained)})
    write(output / MODEL)
    shutil.rmtree(output / CHECKPOINTS, ignore_errors=True)


def locked(output: Path) -> AbstractContextManager[None]:
    """Lock the folder against another run; of several processes of one run, the one that writes does."""
    if is_main():
        return only_writer(output)
    return nullcontext()


def begin(output: Path, record: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """Take the folder: remove what an earlier run left, and nothing else, and write the manifest.

    ``before`` is the manifest of the run that it resumes, or empty; the one that holds from now on is returned, which
    says where the data are now.
    """
    if before:
        resumption = {"status": "running", "resumed": [*before.get("resumed", []), record["started"]]}
        record = before | {"data": record["data"]} | resumption
    if not is_main():
        return record
    if before:
        # Results are appended, and the resumed run evaluates its start again.
        (output / RESULTS).unlink(missing_ok=True)
        _restore_evaluated(output)
    else:
        clear(output)
    output.mkdir(parents=True, exist_ok=True)
    manifest.write(output, record)
    return record


@contextmanager
def cleared_if_refused(output: Path, *, resume: bool) -> Iterator[None]:
    """Remove what a new run has put into its folder if it is refused before its training, which left nothing to keep.

    The corrected run may then begin in the same folder, and finds neither a run to resume nor one to overwrite. A run
    that is resumed keeps its manifest.
    """
    try:
        yield
    # OutputError is about what another run has put there.
    except (ConfigError, DataError, ModelError, MissingExtraError):
        if is_main() and not resume and not _has_results(output):
            clear(output)
        raise


def _has_results(output: Path) -> bool:
    """Return whether a run left anything but its manifest, such as a history, checkpoints or scores of folds."""
    files: list[Path] = []
    for path in _earlier(output):
        files += path.rglob("*") if path.is_dir() else [path]
    return any(file.is_file() and file.name not in (manifest.FILE, LOCK) for file in files)


def run_or_resume(output: Path, run: Callable[..., TrainingRun]) -> bool:
    """Run unless that is done; resume an unfinished run, and start again if it was another run.

    Returned is whether the run is finished; otherwise it was interrupted, and the same call goes on.
    """
    if (output / manifest.FILE).is_file():
        if (output / MODEL).is_dir() and manifest.read(output).get("status") == "finished":
            return True
        try:
            return not run(resume=True).output.interrupted
        except AnotherRunError as error:
            logger.info(f"started again: {error}")
    return not run(overwrite=True).output.interrupted


def end(
    output: Path,
    record: dict[str, Any],
    trained: TrainOutput,
    entries: Mapping[str, Any],
    replace_model: Callable[[Path], object] | None = None,
) -> None:
    """Write into the manifest how the run ended, and what the method adds, and before that the model's card.

    ``replace_model`` puts another model in the place of the trained one first: the start, or one trained again.
    """
    if replace_model is not None:
        replace_model(output / MODEL)
    # Written last: a run that is killed before it says finished is evaluated again.
    status = "interrupted" if trained.interrupted else "finished"
    record = record | {"outcome": asdict(trained), "status": status, **entries}
    if not trained.interrupted:
        write_card(output / MODEL, card_of(output, record))
    manifest.write(output, record)
    shutil.rmtree(output / REFIT, ignore_errors=True)


_SELECTED = "selected"
"""The model that dev selected, in that subfolder, from when another one takes its place until the run has ended."""

_TRAINED = "trained"
"""The same of the trained model, from when the start takes its place."""

_START = "start"
"""The start, in that subfolder, until it is whole."""


def take_refitted(output: Path) -> None:
    """Put the model that was trained on all pairs in the place of the one that dev selected."""
    (output / MODEL).rename(output / REFIT / _SELECTED)
    (output / REFIT / MODEL).rename(output / MODEL)


def take_start(output: Path, write: Callable[[Path], object]) -> None:
    """Put the start, which ``write`` writes to a folder, in the place of the trained model."""
    write(output / REFIT / _START)
    (output / MODEL).rename(output / REFIT / _TRAINED)
    (output / REFIT / _START).rename(output / MODEL)


def _restore_evaluated(output: Path) -> None:
    """Put back the model that a run evaluates, where the run was killed after another one had taken its place."""
    if (output / REFIT / _TRAINED).is_dir():
        # The start is written again.
        if (output / MODEL).is_dir():
            shutil.rmtree(output / MODEL)
        (output / REFIT / _TRAINED).rename(output / MODEL)
    if not (output / REFIT / _SELECTED).is_dir():
        return
    if (output / MODEL).is_dir():
        (output / MODEL).rename(output / REFIT / MODEL)
    (output / REFIT / _SELECTED).rename(output / MODEL)


PRETRAIN = "pretrain"
"""The method whose models are to be trained further before sentences are compared by them."""

FOLDS = "folds"
"""The method of any cross-validation in its manifest."""

LEARNING_RATE = "learning_rate"
"""Key of a manifest: the learning rate, where the start decided it."""

CHOSEN_SHARE = "weight_share"
"""Key of a manifest: how far the weights go from the start to the end, as the folds of a run chose."""

SECTIONS = "card"
"""Key in what a method adds: text for the card, by heading."""


def card_of(output: Path, record: Mapping[str, Any]) -> Card:
    """Return the facts of a trained model's card, from the manifest and the results of its run."""
    settings = dict(record["settings"])
    if LEARNING_RATE in record:
        settings["learning_rate"] = record[LEARNING_RATE]
    data = record["data"]
    # only of encoders: the language of a pretraining is how its documents are split
    rights = {name: settings.pop(name) for name in RIGHTS} if "license" in settings else {}
    start = str(settings.pop("model"))  # of a student it may be how it is made of its teacher
    results = Results()
    if (output / RESULTS).is_file():
        results = read_results(output / RESULTS)
    base = start
    method = f"trained by {record['method']}"
    if is_made_from_teacher(start):
        base = settings["teacher"][0]
        method += f" into {start}"
    # The name under which a start is evaluated ends so.
    start_results = [row for row in results if row.model.endswith("(before)")]
    model_results = [row for row in results if row.seed is not None]
    if record.get("verdict", {}).get("keep_reason"):
        start_in_words = record.get(STANDARDIZED_START, "kept as it is")
        method = f"{start_in_words}, as training by {record['method']} was not shown to help"
        model_results = start_results
        if STANDARDIZED_START in record:
            model_results = [row for row in results if row.model.endswith(STANDARDIZED)]
    return Card(
        name=output.resolve().name,
        base=base,
        method=method,
        is_cross_encoder=settings.get("encoder") == "cross",
        is_language_model=record["method"] == PRETRAIN,
        **rights,
        data=[
            CardData(split, name_without_folder(dataset["source"]), dataset["rows"], dataset["sha256"])
            for split, dataset in data.items()
        ],
        label_use=_label_use(record),
        settings=settings,
        results=model_results,
        start=start_results,
        versions=record["versions"],
        sections=record.get(SECTIONS, {}),
    )


def _label_use(record: Mapping[str, Any]) -> list[str]:
    """Return what the loss made of the labels, in sentences without a path: the lines that begin with its name."""
    begins = f"{record['settings'].get('loss')}: "
    lines = [line for line in record.get("summary", []) if line.startswith(begins)]
    return [f"Labels for {line}." for line in lines]
