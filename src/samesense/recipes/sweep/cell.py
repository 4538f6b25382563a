"""One cell: trained or taken up where it was left, evaluated, and left with figures and scores but without its model.

cell.json  manifest.json  history.jsonl  results.jsonl  scores.npz  model/ (until it is evaluated, or kept)
"""

from __future__ import annotations

import re
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from samesense.data import PairData
from samesense.errors import OutputError, SamesenseError
from samesense.evaluation.binary import BinaryTask
from samesense.evaluation.sts import StsTask
from samesense.evaluation.task import Task
from samesense.execution.unread import counted
from samesense.files import replacing, write_json
from samesense.inference.models.load import load
from samesense.recipes.planning.dev_split import iterate_texts
from samesense.recipes.sweep.file import LAYERS
from samesense.recipes.sweep.identity import APART, OTHERWISE
from samesense.recipes.sweep.plan import Cell
from samesense.recipes.sweep.splits import Splits
from samesense.reports import append_results
from samesense.schemas import Record, read_object
from samesense.training import manifest
from samesense.types import Precision, Result, Scorer, Scores

RECORD = "cell.json"
SCORES = "scores.npz"
RESULTS = "results.jsonl"


@dataclass(frozen=True)
class CellJob:
    """A cell, its data, its folder, and the arithmetic in which it is evaluated."""

    cell: Cell
    splits: Splits
    folder: Path
    test_precision: Precision


def run_cell(job: CellJob) -> str:
    """Run a cell to its end, and return its status: ``"finished"``, ``"failed"`` or ``"interrupted"``.

    What it raises is written into its record, and the caller goes on. After Ctrl-C it can be resumed.

    OutputError if its folder cannot be written, as on a full disk: no other cell could be written either.
    """
    started = time.perf_counter() - read_record(job.folder).get("seconds", 0.0)
    # A process that is killed leaves this status, by which it is known to have failed.
    record(job, "running")
    try:
        with counted() as unread:
            status, error = _ended(job)
    except OutputError as unwritten:
        with suppress(OutputError):
            record(job, "failed", started, error=str(unwritten))
        raise
    return record(job, status, started, unread=unread.summary, **({"error": error} if error else {}))


def _ended(job: CellJob) -> tuple[str, str]:
    """Run a cell to its end, and return its status, and why it failed if it did."""
    cell = job.cell
    try:
        if cell.seed is None:
            candidate = open_start(job)
        elif _train(job):
            candidate = load(
                job.folder / "model", name=cell.variant, precision=job.test_precision, seed=cell.seed, cache=True
            )
        else:
            return "interrupted", ""
        results, scores = evaluate(candidate, job.splits)
        write_scores(job.folder / SCORES, scores)
        # Appending would add to the figures of an earlier try.
        (job.folder / RESULTS).unlink(missing_ok=True)
        append_results(job.folder / RESULTS, results)
    except KeyboardInterrupt:
        return "interrupted", ""
    except OutputError:
        raise
    except Exception as error:  # recorded; one failing cell must not end the sweep
        # An error of this library explains itself; any other needs its traceback.
        if isinstance(error, SamesenseError):
            text = str(error)
        else:
            text = "".join(traceback.format_exception(error))
        return "failed", text.strip()
    return "finished", ""


def status_of(folder: Path) -> str:
    """Return what became of the cell in a folder; ``"absent"`` if it was never begun."""
    return str(read_record(folder).get("status", "absent"))


class CellRecord(Record):
    """What a cell has written of itself."""

    status: str
    error: str = ""
    seconds: float = 0.0
    identity: dict[str, Any] = Field(default_factory=dict)
    unread: dict[str, Any] = Field(default_factory=dict)


def read_record(folder: Path) -> dict[str, Any]:
    """Return what a cell has written of itself; nothing if it was never begun."""
    path = folder / RECORD
    if not path.is_file():
        return {}
    return read_object(path, CellRecord, fix=f"Delete the folder {folder} to run it again.")


def record(job: CellJob, status: str, started: float | None = None, **entries: Any) -> str:
    """Write the record of the cell, with the seconds that it took in all calls; returns ``status``.

    ``started`` is the time less that of the calls before; without it they stay as they were.
    """
    cell = job.cell
    if started is None:
        seconds = read_record(job.folder).get("seconds", 0.0)
    else:
        seconds = round(time.perf_counter() - started, 1)
    content = {
        "status": status,
        "variant": cell.variant,
        "dataset": cell.dataset,
        "seed": cell.seed,
        "start": _short(str(cell.overrides.get("model", "default"))),
        "settings": {key: value for key, value in cell.overrides.items() if key not in ("model", LAYERS)},
        "layers": cell.layers,
        "rows": _rows(job.splits),
        "identity": cell.identity,
        "seconds": seconds,
        **entries,
    }
    write_json(job.folder / RECORD, content, sync=True)
    return status


def _short(model: str) -> str:
    if Path(model).exists():
        return Path(model).name
    return model


def _rows(splits: Splits) -> dict[str, Any]:
    dev = 0 if splits.dev is None else len(splits.dev)
    return {"train": len(splits.train), "dev": dev, "tests": {name: len(data) for name, data in splits.tests.items()}}


def _train(job: CellJob) -> bool:
    """Train the cell, or go on with it; returns False if it was interrupted in an orderly way."""
    _note_places(job)
    return job.cell.method.run_or_resume(job.splits.train, job.cell.settings, job.folder, dev=job.splits.dev)


def _note_places(job: CellJob) -> None:
    """Write into the manifest of a run that was begun what its cell has now of what its identity tells by content.

    The folder has the name of the identity, so a run is the same though its start model, a teacher or it itself moved.
    """
    if not (job.folder / manifest.FILE).is_file():
        return
    record = manifest.read(job.folder)
    now = job.cell.settings.model_dump(mode="json", include=set(APART | OTHERWISE))
    manifest.write(job.folder, record | {"settings": record["settings"] | now})


def with_cut_start(cell: Cell, output: Path) -> Cell:
    """Return the cell with its start model cut to the layers it keeps, which is made on demand below ``output``."""
    if cell.layers is None:
        return cell
    # Loads torch: only a start that is cut is opened here.
    from samesense.encoder.assembly.build import build
    from samesense.encoder.assembly.students import first_layers
    from samesense.encoder.saving.storage import save
    from samesense.recipes.run.model_adapters import start_settings

    start = cell.identity["start"]  # a name on the hub or, of a folder, the hash of its files
    short = start[:16] if re.fullmatch("[0-9a-f]{64}", start) else start.replace("/", "--")
    folder = output / "starts" / f"{short}-first-{cell.layers}"
    # Saved whole or not at all, so that a folder which exists is complete.
    if not folder.is_dir():
        save(first_layers(build(cell.settings.model, device="cpu"), cell.layers), folder)
    settings = start_settings(cell.settings)  # by its own start: the folder has a pooling
    return replace(cell, settings=settings.model_copy(update={"model": str(folder)}))


DEV = "dev"
"""Under this name the scores of the pairs that select are kept, where thresholds are fitted on them."""


def open_start(job: CellJob) -> Scorer:
    """Make the encoder from which a cell with its settings would start, standardized if they ask for it."""
    # Load torch, which a report of a sweep has no use for, and a process of a cell imports once it hears of Ctrl-C.
    from samesense.encoder.maps.standardize import standardize
    from samesense.recipes.run.model_adapters import BiEncoder, start_settings

    settings = start_settings(job.cell.settings)
    precision = job.test_precision
    model = BiEncoder().build(settings)
    if settings.standardize != "none":
        standardize(model, list(iterate_texts(job.splits.train)), settings.standardize, precision=precision)
    return load(model, name=job.cell.variant, precision=precision, cache=True)


def evaluate(candidate: Scorer, splits: Splits) -> tuple[list[Result], dict[str, Scores]]:
    """Return all figures, and what lies behind them by ``suite:dataset:metric``.

    Labels 0 and 1 are also evaluated as two classes, with thresholds fitted on the pairs that select.
    """
    results: list[Result] = []
    scores: dict[str, Scores] = {}
    for name, test in splits.tests.items():
        for task in _tasks(name, test, splits.dev):
            task_result = task.evaluate(candidate)
            results += task_result.results
            scores |= {
                f"{evidence.task}:{evidence.dataset}:{evidence.metric}": evidence.values
                for evidence in task_result.evidence
            }
    if splits.dev is not None and splits.dev.kind == "binary":
        scores[DEV] = candidate.scores(splits.dev.pairs())
    return results, scores


def _tasks(name: str, test: PairData, dev: PairData | None) -> list[Task]:
    tasks: list[Task] = [StsTask(test, dataset=name, intervals=False)]
    if test.kind == "binary":
        separate_dev = dev is not None and dev.kind == "binary" and dev.sha256 != test.sha256  # a race tests on dev
        tasks.append(BinaryTask(test, dev if separate_dev else None, dataset=name))
    return tasks


def write_scores(path: Path, scores: dict[str, Scores]) -> None:
    """Write arrays by name, whole or not at all."""
    with replacing(path) as beside, beside.open("wb") as stream:
        np.savez_compressed(stream, **scores)  # type: ignore[arg-type]
