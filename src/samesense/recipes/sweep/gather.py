"""What the cells of a sweep have left, read back: figures, scores and curves, without the data or the models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from samesense.errors import ConfigError, DataError
from samesense.files import parse_json
from samesense.recipes.sweep.cell import DEV, RESULTS, SCORES, read_record
from samesense.recipes.sweep.identity import APART
from samesense.recipes.sweep.run import PAIRS, PLAN
from samesense.reports import read_results
from samesense.reports.store import Run, read_run
from samesense.schemas import Record, read_checked
from samesense.training import manifest
from samesense.types import Evidence, EvidenceStatistic, Pair, Result

MOST_LABELS = 3
"""With more different labels, cosines are not summed up label by label."""

STATISTICS: dict[str, EvidenceStatistic] = {
    "spearman": "spearman",
    "average_precision": "average_precision",
    "f1": "f1",
}
"""The statistic of scores and labels behind a metric; others are means of outcomes."""

ARITHMETIC = "arithmetic"
"""Name of the precision of the training among what a cell was made with."""


class PlannedCell(Record):
    """A cell of a plan."""

    folder: str
    variant: str
    dataset: str
    seed: int | None = None


class TriedCell(Record):
    """A cell in which settings are tried."""

    folder: str
    variant: str
    dataset: str
    tried: dict[str, Any]
    chosen: bool


class PlanRecord(Record):
    """The plan of a sweep."""

    config: str
    against: str
    grid: dict[str, list[Any]]
    warnings: list[str]
    skipped: list[str]
    dev: dict[str, str]
    reading: dict[str, dict[str, Any]]
    tuning: list[TriedCell]
    cells: list[PlannedCell]


@dataclass(frozen=True)
class CellResults:
    """What one cell has left."""

    entry: PlannedCell  # its line of the plan
    record: dict[str, Any]  # its own record; empty if it was never begun
    results: list[Result]  # its figures; none unless it is finished
    evidence: list[Evidence]  # what lies behind them
    run: Run | None  # its training, if it was trained
    outcome: dict[str, Any]  # how the training ended
    environment: dict[str, str]  # versions of the libraries by name, and the arithmetic in which it was trained
    summary: Sequence[str] = ()  # what the training made of its data, in lines

    @property
    def status(self) -> str:
        """What became of the cell."""
        return str(self.record.get("status", "absent"))

    @property
    def error(self) -> str:
        """Why the cell failed, in one line; else nothing."""
        return _last_line(self.record)


def read_plan(output: Path) -> PlanRecord:
    """Return the plan that a sweep has written to its folder; ConfigError if the folder holds no sweep."""
    path = output / PLAN
    if not path.is_file():
        raise ConfigError(f"{output} holds no sweep (no {PLAN}). Give the `output` folder of a sweep.")
    return read_checked(path, PlanRecord, fix="Give the command that made it again.")


def gather(output: Path) -> list[CellResults]:
    """Read every cell of the plan, in its order."""
    pairs: dict[str, tuple[list[Pair], npt.NDArray[np.float64]]] = {}
    return [_left(output, entry, pairs) for entry in read_plan(output).cells]


@dataclass(frozen=True)
class Tried:
    """One combination of settings that was tried for a variant on a data set."""

    dataset: str
    variant: str
    settings: str  # in words
    dev: float | None  # its best score on dev; None if it is not finished
    chosen: bool
    status: str  # what became of it
    error: str  # why it failed, in one line; else nothing


def tried(output: Path) -> list[Tried]:
    """Return what was tried for the variants that are tuned, in the order of the plan."""
    trials = []
    for entry in read_plan(output).tuning:
        folder = output / "runs" / entry.folder
        record = read_record(folder)
        curve = read_run(folder).curve if record.get("status") == "finished" else None
        words = ", ".join(f"{name} {value}" for name, value in entry.tried.items())
        dev = None if curve is None else curve.best[1]
        status = str(record.get("status", "absent"))
        trials.append(Tried(entry.dataset, entry.variant, words, dev, entry.chosen, status, _last_line(record)))
    return trials


def _last_line(record: dict[str, Any]) -> str:
    return str(record.get("error", "")).rpartition("\n")[2]


def _left(
    output: Path, entry: PlannedCell, pairs: dict[str, tuple[list[Pair], npt.NDArray[np.float64]]]
) -> CellResults:
    folder = output / "runs" / entry.folder
    record = read_record(folder)
    if record.get("status") != "finished":
        return CellResults(entry, record, [], [], None, {}, {})
    for name, sha256 in record["identity"]["tests"].items():
        # Cells share the pairs of a test set, which are read once.
        if sha256 not in pairs:
            pairs[sha256] = _read_pairs(output / PAIRS / f"{sha256}.jsonl", name)
    # The cell may have been run for a variant of another name, with the same identity.
    results = [replace(row, model=entry.variant) for row in read_results(folder / RESULTS)]
    trained = entry.seed is not None
    run = read_run(folder, entry.variant) if trained else None
    run_manifest = manifest.read(folder) if trained else {}
    versions = dict(run_manifest.get("versions", {}))
    if "precision" in run_manifest:
        versions[ARITHMETIC] = run_manifest["precision"][0]
    evidence = _evidence(folder, entry, record, pairs)
    return CellResults(
        entry,
        record,
        results,
        evidence,
        run,
        run_manifest.get("outcome", {}),
        versions,
        run_manifest.get("summary", []),
    )


def _read_pairs(path: Path, name: str) -> tuple[list[Pair], npt.NDArray[np.float64]]:
    if not path.is_file():
        raise DataError(f"The pairs of {name} are missing from the sweep: {path}. Run the sweep again to write them.")
    try:
        # Not splitlines, which would also cut at a line separator within a text.
        rows = [parse_json(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
        return [(str(first), str(second)) for first, second, _ in rows], np.array([float(label) for *_, label in rows])
    except (ValueError, TypeError) as error:
        raise DataError(f"{path} is damaged ({error}). Run the sweep again to write it.") from error


def _evidence(
    folder: Path,
    entry: PlannedCell,
    record: dict[str, Any],
    pairs: dict[str, tuple[list[Pair], npt.NDArray[np.float64]]],
) -> list[Evidence]:
    evidence = []
    with np.load(folder / SCORES) as scores:
        for key in scores.files:
            # They fit thresholds only, and no figure is of them.
            if key == DEV:
                continue
            task, _, dataset_metric = key.partition(":")
            dataset, _, metric = dataset_metric.rpartition(":")  # a name of the user's, which may hold colons
            examples, labels = pairs[record["identity"]["tests"][dataset]]
            statistic = STATISTICS.get(metric, "mean")
            evidence.append(
                Evidence(
                    task=task,
                    dataset=dataset,
                    metric=metric,
                    model=entry.variant,
                    statistic=statistic,
                    values=scores[key],
                    labels=None if statistic == "mean" else labels,
                    examples=examples,
                    seed=entry.seed,
                )
            )
    return evidence


def rows(cells: Sequence[CellResults]) -> list[dict[str, Any]]:
    """Return one row a finished cell and test set: its settings, data, figures and course, free of paths."""
    table_rows = []
    for cell in cells:
        for dataset in dict.fromkeys(result.dataset for result in cell.results):
            dataset_results = [
                result for result in cell.results if result.dataset == dataset and result.subset == "all"
            ]
            row = cell.entry.model_dump(include={"variant", "dataset", "seed"})
            row |= {"start": cell.record["start"], "settings": settings_of(cell), "layers": cell.record["layers"]}
            row |= {
                "test": dataset,
                "n": dataset_results[0].n,
                "rows": cell.record["rows"],
                "protocol": dataset_results[0].protocol,
            }
            identity = cell.record["identity"]
            row |= {"data": {"train": identity.get("train"), "test": identity["tests"][dataset]}}
            row |= {result.metric: result.value for result in dataset_results}
            if cosines := _by_label(cell, dataset):
                row |= {"cosines": cosines}
            if cell.run is not None:
                row |= {"outcome": cell.outcome, "curve": _points(cell)}
            table_rows.append(row)
    return table_rows


def settings_of(cell: CellResults) -> dict[str, Any]:
    """Return what the file set for a cell, with the names of files and folders in place of their paths."""
    return {key: _strip_folders(value) for key, value in cell.record["settings"].items() if key not in APART}


def _strip_folders(value: Any) -> Any:
    if isinstance(value, list):
        return [_strip_folders(inner) for inner in value]
    if isinstance(value, dict):
        return {key: _strip_folders(inner) for key, inner in value.items()}
    if not isinstance(value, str):
        return value
    head, plus, maps = value.partition("+")  # as in vectors:FILE+whiten
    kind, colon, base = head.rpartition(":")
    path = Path(base).expanduser()
    if path.is_absolute() or path.exists():
        return f"{kind}{colon}{path.name or base}{plus}{maps}"
    return value


def _points(cell: CellResults) -> list[list[float]]:
    curve = None if cell.run is None else cell.run.curve
    if curve is None:
        return []
    return [[s, round(v, 5)] for s, v in zip(curve.steps, curve.values, strict=True)]


def _by_label(cell: CellResults, dataset: str) -> dict[str, list[float]]:
    """Return mean, deviation and count of the scores for each label, where labels are few."""
    for item in cell.evidence:
        if item.dataset == dataset and item.labels is not None:
            kinds = np.unique(item.labels)
            if len(kinds) > MOST_LABELS:
                return {}
            scores_by_label = {f"{kind:g}": item.values[item.labels == kind] for kind in kinds}
            return {kind: [float(v.mean()), float(v.std()), float(len(v))] for kind, v in scores_by_label.items()}
    return {}
