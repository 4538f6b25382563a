"""Results on disk, one JSON object a line, and what a training run left in its folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, TypeAdapter, ValidationError

from samesense.errors import DataError, OutputError
from samesense.files import is_special, parse_json, write_bytes
from samesense.places import check_place
from samesense.reports.figures.curves import Curve
from samesense.results import Results
from samesense.schemas import Record, read_object
from samesense.types import Result

_RESULT = TypeAdapter(Result)


def check_results(path: str | Path, inputs: Iterable[str | Path] = ()) -> None:
    """Raise OutputError, before long work, if results could not be added to a file, or it is one of ``inputs``."""
    check_place(path, inputs)
    _before(path)


def append_results(path: str | Path, results: Sequence[Result]) -> None:
    """Add results to the end of a file of results, which is made if absent.

    OutputError if it cannot be written, or holds something else. A whole new file is written beside the old and then
    takes its place, so an interruption leaves either the old or the new one. Two processes that append at the same
    moment may lose one of the additions.
    """
    lines = "".join(json.dumps(result.to_dict(), allow_nan=False) + "\n" for result in results)
    write_bytes(path, _before(path) + lines.encode("utf-8"), sync=True)


def _before(path: str | Path) -> bytes:
    """Return the results that a file holds, which is there or not, as lines; OutputError if it holds something else."""
    if is_special(path):
        return b""  # it is written into, and what it had is not read
    try:
        before = Path(path).read_bytes() if Path(path).exists() else b""
        if before:
            read_results(path)
    except OSError as err:
        raise OutputError(f"Results cannot be written to {path}: {err}") from err
    except DataError as err:
        raise OutputError(f"Results are added to a file of results alone: {err}. Name another output.") from err
    return before + b"\n" if before and not before.endswith(b"\n") else before


def read_results(path: str | Path) -> Results:
    """Read a file that :func:`append_results` wrote, in the order of its lines; blank lines are passed over.

    DataError if the file cannot be read, or a line is no result (the line is named).
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as err:
        raise DataError(f"Results cannot be read from {path}: {err}") from err
    results = Results()
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            results.append(_RESULT.validate_json(line))
        except ValidationError as err:
            first = err.errors()[0]
            place = "".join(f"field {name!r}: " for name in first["loc"])
            raise DataError(f"{path}, line {number} is not a result: {place}{first['msg']}") from err
    return results


DEV = "eval_dev_spearman"
"""Name of the dev score in the history."""


@dataclass(frozen=True)
class Run:
    """One training run."""

    name: str  # what the report calls it; seeds of one thing have one name
    settings: dict[str, Any]  # as the run was started with
    curve: Curve | None  # Spearman on dev along the steps; None if it was never evaluated on dev
    results: list[Result]  # of the trained model on test data
    losses: Curve | None = None  # training loss along the steps, of the steps since the point before


class ManifestRecord(Record):
    """What is shown of a run's manifest."""

    settings: dict[str, Any] = Field(default_factory=dict)


def read_run(folder: str | Path, name: str | None = None) -> Run:
    """Read the folder that ``samesense train`` wrote."""
    home = Path(folder)
    if not (home / "manifest.json").is_file():
        raise DataError(f"{folder} holds no training run (no manifest.json). Give the `output` folder of a training.")
    manifest = read_object(home / "manifest.json", ManifestRecord)
    logs = _objects(home / "history.jsonl") if (home / "history.jsonl").is_file() else []
    shown = name or home.resolve().name
    curve, losses = (_curve(shown, logs, key) for key in (DEV, "loss"))
    results = read_results(home / "results.jsonl") if (home / "results.jsonl").is_file() else []
    return Run(shown, manifest.get("settings", {}), curve, [row for row in results if row.seed is not None], losses)


def _curve(name: str, logs: Sequence[Any], key: str) -> Curve | None:
    points = (entry for entry in logs if isinstance(entry, dict) and {key, "step"} <= entry.keys())
    steps = {entry["step"]: entry[key] for entry in points if entry[key] is not None}  # null has no figure
    return Curve(name, tuple(steps), tuple(steps.values())) if steps else None


def sweep_points(runs: Sequence[Run], setting: str) -> dict[str, dict[float, list[float]]]:
    """Gather Spearman (x100) of runs by the value of one setting.

    There is a series for each test set, or for the best dev score where a run has no test set, and for each combination
    of the other settings in which the runs differ, the seed left aside. Returned is, for each series and each value of
    the setting, one figure a run.
    """
    keys = sorted({key for run in runs for key in run.settings} - {"seed", setting})
    varying = [key for key in keys if len({json.dumps(run.settings.get(key)) for run in runs}) > 1]
    points: dict[str, dict[float, list[float]]] = {}
    for run in runs:
        value = run.settings.get(setting)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise DataError(
                f"A sweep over {setting!r} needs a number for it in every run; {run.name} has {value!r}. "
                f"Its settings: {', '.join(run.settings) or 'none'}."
            )
        figures = {row.dataset: row.value for row in run.results if (row.metric, row.subset) == ("spearman", "all")}
        if not figures and run.curve is not None:
            figures = {"best dev": run.curve.best[1]}
        if not figures:
            raise DataError(f"Run {run.name} has no figure to draw: it was evaluated neither on test nor on dev data.")
        own = ", ".join(f"{key} = {_shown(key, run.settings.get(key))}" for key in varying)
        for dataset, figure in figures.items():
            series = points.setdefault(f"{dataset} ({own})" if own else dataset, {})
            series.setdefault(float(value), []).append(100 * figure)
    return points


def _shown(key: str, value: Any) -> Any:
    """Return a setting as a legend has it: a start model by its name, and not by its place."""
    return Path(value).name if key == "model" and isinstance(value, str) else value


def _objects(path: Path) -> list[Any]:
    """Return what a file holds: the one object of ``.json``, or one a line."""
    try:
        text = path.read_text(encoding="utf-8")
        return [parse_json(one) for one in ([text] if path.suffix == ".json" else text.splitlines())]
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
