"""Read and write results as JSON lines, and read the folder of a training run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import Field, TypeAdapter, ValidationError

from samesense.errors import DataError, OutputError
from samesense.failures import writing
from samesense.files import is_special, parse_json, write_bytes
from samesense.locks import in_turn
from samesense.places import check_place, check_suffix
from samesense.reports.figures.curves import Curve
from samesense.results.results import Results
from samesense.schemas import Record, described, read_checked
from samesense.types import Result

_RESULT = TypeAdapter(Result)


def check_results(path: str | Path, inputs: Iterable[str | Path] = ()) -> None:
    """Raise OutputError, before long work, if results cannot be appended to a file, or it is one of ``inputs``.

    ConfigError if its name does not end in ``.jsonl``.
    """
    check_place(path, inputs)
    # A pipe is only written to.
    if not is_special(path):
        _before(path)
    check_suffix(path, "A file of results", [".jsonl"])


def append_results(path: str | Path, results: Sequence[Result]) -> None:
    """Append results to a file of results, which is created if absent.

    OutputError if it cannot be written, or holds something else. A new file is written beside the old one and then
    replaces it, so an interruption leaves either the old or the new file. Processes that append at the same moment wait
    for each other.
    """
    lines = "".join(json.dumps(result.to_dict(), allow_nan=False) + "\n" for result in results).encode("utf-8")
    if is_special(path):
        write_bytes(path, lines)
        return
    with writing(path), in_turn(Path(path).resolve()):
        write_bytes(path, _before(path) + lines, sync=True)


def _before(path: str | Path) -> bytes:
    """Return the lines that a file of results holds, empty if it does not exist; OutputError if it holds others."""
    try:
        before = Path(path).read_bytes() if Path(path).exists() else b""
        if before:
            read_results(path)
    except OSError as err:
        raise OutputError(f"Results cannot be written to {path}: {err}") from err
    except DataError as err:
        raise OutputError(f"Results are added to a file of results alone: {err}. Name another output.") from err
    if before and not before.endswith(b"\n"):
        return before + b"\n"
    return before


def read_results(path: str | Path) -> Results:
    """Read a file that :func:`append_results` wrote, in the order of its lines; blank lines are skipped.

    DataError if the file cannot be read, or a line is not a result (the error names it).
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as err:
        raise DataError(f"Results cannot be read from {path}: {err}") from err
    results = Results()
    # Not splitlines, which would also cut at a line separator within a text.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            results.append(_RESULT.validate_json(line))
        except ValidationError as err:
            raise DataError(f"{path}, line {number} is not a result: {described(err)}") from err
    return results


DEV = "eval_dev_spearman"
"""Name of the dev score in the history."""

TERM = "loss_"
"""What the names of a loss's terms begin with in the history."""

IF_EQUAL = "_if_equal"
"""What the name of a term ends with that is the same term's cost where all scores are equal."""


@dataclass(frozen=True)
class Run:
    """One training run."""

    name: str  # in the report; seeds of one variant share it
    settings: dict[str, Any]  # with which the run was started
    curve: Curve | None  # Spearman on dev along the steps; None if it was never evaluated on dev
    results: list[Result]  # of the trained model on test data
    losses: Curve | None = None  # training loss along the steps, each point the mean since the one before
    terms: Mapping[str, Curve] = field(default_factory=dict)  # the same of the terms of the loss, by their names


class ManifestRecord(Record):
    """The part of a run's manifest that reports show."""

    settings: dict[str, Any] = Field(default_factory=dict)


def read_run(folder: str | Path, name: str | None = None) -> Run:
    """Read the folder that ``samesense train`` wrote."""
    home = Path(folder)
    if not (home / "manifest.json").is_file():
        raise DataError(f"{folder} holds no training run (no manifest.json). Give the `output` folder of a training.")
    manifest = read_checked(home / "manifest.json", ManifestRecord)
    history: list[Any] = []
    if (home / "history.jsonl").is_file():
        history = _json_lines(home / "history.jsonl")
    results = Results()
    if (home / "results.jsonl").is_file():
        results = read_results(home / "results.jsonl")
    run_name = name or home.resolve().name
    return Run(
        name=run_name,
        settings=manifest.settings,
        curve=_curve(run_name, history, DEV),
        results=[row for row in results if row.seed is not None],  # the start has no seed
        losses=_curve(run_name, history, "loss"),
        terms=_terms(run_name, history),
    )


def _terms(name: str, history: Sequence[Any]) -> dict[str, Curve]:
    """Return the terms of the loss along the steps, by their names without the prefix."""
    keys = dict.fromkeys(key for entry in history if isinstance(entry, dict) for key in entry if key.startswith(TERM))
    curves = {key.removeprefix(TERM): _curve(name, history, key) for key in keys}
    return {term: curve for term, curve in curves.items() if curve is not None}


def _curve(name: str, history: Sequence[Any], key: str) -> Curve | None:
    """Return the values of ``key`` along the steps of a history; ``None`` if it has none."""
    entries = [entry for entry in history if isinstance(entry, dict) and {key, "step"} <= entry.keys()]
    # null stands for an undefined figure
    values = {entry["step"]: entry[key] for entry in entries if entry[key] is not None}
    if not values:
        return None
    return Curve(name, tuple(values), tuple(values.values()))


def sweep_points(runs: Sequence[Run], setting: str) -> dict[str, dict[float, list[float]]]:
    """Gather Spearman (x100) of runs by the value of one setting.

    There is a series for each test set (the best dev score for a run without test sets) and for each combination of the
    other settings in which the runs differ, except the seed. Returns one figure per run for each series and each value
    of the setting.
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
        suffix = ""
        if varying:
            combination = ", ".join(f"{key} = {_format_setting(key, run.settings.get(key))}" for key in varying)
            suffix = f" ({combination})"
        for dataset, figure in _figures(run).items():
            series = points.setdefault(f"{dataset}{suffix}", {})
            series.setdefault(float(value), []).append(100 * figure)
    return points


def _figures(run: Run) -> dict[str, float]:
    """Return the Spearman of a run on each test set, or the best on dev if it has none."""
    figures = {row.dataset: row.value for row in run.results if (row.metric, row.subset) == ("spearman", "all")}
    if figures:
        return figures
    if run.curve is None:
        raise DataError(f"Run {run.name} has no figure to draw: it was evaluated neither on test nor on dev data.")
    return {"best dev": run.curve.best[1]}


def _format_setting(key: str, value: Any) -> Any:
    """Return a setting as legends show it: a start model by its name, without its folder."""
    if key == "model" and isinstance(value, str):
        return Path(value).name
    return value


def _json_lines(path: Path) -> list[Any]:
    """Return the JSON values of a file, one per line."""
    try:
        return [parse_json(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
