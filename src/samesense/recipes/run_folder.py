"""The folder of a training run: who may write to it, what it holds while the run goes on, and what it says at the end.

model/  manifest.json  history.jsonl  results.jsonl  checkpoints/ (while training)  .lock (held while writing)

A run is trained once its manifest has an outcome and its model is there, and finished once the manifest says so: what
is left after a stop between the two is to evaluate it.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from samesense.data import PairData
from samesense.data.examples import Examples
from samesense.encoder.storage import check_free
from samesense.errors import ConfigError, OutputError
from samesense.execution.ranks import is_main
from samesense.files import only_writer, write_text
from samesense.inference.names import place_of
from samesense.places import check_folder
from samesense.recipes.training_run import TrainingRun
from samesense.training import manifest
from samesense.training.fit import TrainOutput

logger = logging.getLogger(__name__)

MODEL, CHECKPOINTS, HISTORY, RESULTS = "model", "checkpoints", "history.jsonl", "results.jsonl"


def data_identity(parts: Mapping[str, Examples | None]) -> dict[str, Any]:
    """Return what tells the data of one run from those of another: source, fingerprint, rows and scale of each part."""
    return {
        name: {"source": d.source, "sha256": d.sha256, "rows": len(d)} | _scale(d)
        for name, d in parts.items()
        if d is not None
    }


def _scale(data: Examples) -> dict[str, Any]:
    """Return the label scale, which decides targets and may be the user's word."""
    return {"scale": data.scale} if isinstance(data, PairData) else {}


def check(output: Path, record: dict[str, Any], *, resume: bool, overwrite: bool) -> dict[str, Any]:
    """Raise where this run may not write to ``output``; returns the manifest of the run that is resumed, or nothing."""
    if not resume:
        if is_main():
            check_free(output, overwrite=overwrite)
            _check_inputs(output, record)
        return {}
    if (output / MODEL).exists() and manifest.read(output)["status"] == "finished":
        raise OutputError(f"The run in {output} is finished: its model is there. Overwrite it to train anew.")
    return manifest.check_same_run(output, record)


def _check_inputs(output: Path, record: dict[str, Any]) -> None:
    """Raise OutputError if what :func:`begin` removes is read by this run."""
    inputs = [part["source"] for part in record["data"].values()] + [str(record["settings"].get("model", ""))]
    for name in (MODEL, CHECKPOINTS, HISTORY, RESULTS, manifest.FILE) if output.is_dir() else ():
        check_folder(output / name, [place_of(given) for given in inputs])


def finished_training(output: Path, before: Mapping[str, Any]) -> TrainOutput | None:
    """Return how the training of a resumed run ended, where only the evaluation is left; ``before`` is its manifest."""
    return TrainOutput(**before["outcome"]) if "outcome" in before and (output / MODEL).is_dir() else None


def save_model(output: Path, record: dict[str, Any], trained: TrainOutput, write: Callable[[Path], object]) -> None:
    """Put the trained model into the folder; ``write`` puts it there whole or not at all."""
    manifest.write(output, record | {"outcome": asdict(trained)})
    write(output / MODEL)
    shutil.rmtree(output / CHECKPOINTS, ignore_errors=True)


def locked(output: Path) -> AbstractContextManager[None]:
    """Lock the folder against another run; of several processes of one run, the one that writes does."""
    return only_writer(output) if is_main() else nullcontext()


def begin(output: Path, record: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """Take the folder: remove what an earlier run left, and nothing else, and write the manifest.

    ``before`` is the manifest of the run that it resumes, or empty; the one that holds from now on is returned.
    """
    if before:
        record = before | {"status": "running", "resumed": [*before.get("resumed", []), record["started"]]}
    if not is_main():
        return record
    (output / RESULTS).unlink(missing_ok=True)
    if not before:
        for folder in (MODEL, CHECKPOINTS):
            shutil.rmtree(output / folder, ignore_errors=True)
        for file in (manifest.FILE, HISTORY):
            (output / file).unlink(missing_ok=True)
    output.mkdir(parents=True, exist_ok=True)
    manifest.write(output, record)
    return record


def run_or_resume(output: Path, run: Callable[..., TrainingRun]) -> bool:
    """Run unless that is done; go on with what was begun, and begin anew if it was another run.

    Returned is whether the run is finished; otherwise it was interrupted, and the same call goes on.
    """
    if (output / manifest.FILE).is_file():
        if (output / MODEL).is_dir() and manifest.read(output)["status"] == "finished":
            return True
        try:
            return not run(resume=True).output.interrupted
        except ConfigError as error:
            logger.info(f"begun anew: {error}")
    return not run(overwrite=True).output.interrupted


def to_card(output: Path, heading: str, text: str) -> None:
    """Put a section at the end of the model's card, in the place of one of that name."""
    card = output / MODEL / "README.md"
    before = card.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[0] if card.exists() else ""
    write_text(card, f"{before.rstrip()}\n\n## {heading}\n\n{text}\n".lstrip())


def end(output: Path, record: dict[str, Any], trained: TrainOutput, more: Mapping[str, Any]) -> None:
    """Write into the manifest how the run ended, and what the method adds."""
    status = "interrupted" if trained.interrupted else "finished"
    manifest.write(output, record | {"outcome": asdict(trained), "status": status, **more})
