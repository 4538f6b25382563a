"""Take over the results of a sweep folder into the folder of a paper; see ``tables.py``."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from samesense.metrics import best_threshold, holm
from samesense.reports.significance import Comparison
from samesense.results.results import mean_name


def take(results: Path, sweep: str, folder: Path) -> None:
    """Copy the results of a sweep into the folder of a paper's results; scores only where they are few.

    Existing results of data sets that ``folder`` has not run yet stay, so that a sweep can be run one data set at a
    time. Means over all sets, which are adjusted separately, exist only where all sets were run together.
    """
    if not (folder / "results.jsonl").is_file():
        raise SystemExit(f"{folder} has no results.jsonl: the sweep writes it when it ends. Run it to its end.")
    rows = [{**row, "commit": commit()} for row in _rows(folder / "results.jsonl")]
    rows = [row | _more(results.parent.name, sweep, row, folder) for row in rows]
    results.mkdir(parents=True, exist_ok=True)
    plan = json.loads((folder / "sweep.json").read_text(encoding="utf-8"))
    order = list(dict.fromkeys(entry["dataset"] for entry in [*plan["tuning"], *plan["cells"]]))
    tests = {row["test"] for row in rows}
    merged = _merged(results / f"{sweep}.jsonl", "test", rows, tests, order)
    write_rows(results / f"{sweep}.jsonl", merged)
    path = results / f"{sweep}.comparisons.jsonl"
    compared = _rows(folder / "comparisons.jsonl")
    means = [row for row in compared if row["dataset"] == mean_name(len({row["test"] for row in merged}))]
    write_rows(path, [*means, *adjusted(_merged(path, "dataset", compared, tests, order))])


def commit() -> str:
    """Return the commit at which results are taken over."""
    words = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(words, capture_output=True, text=True, cwd=Path(__file__).parent).stdout.strip()


def _merged(path: Path, key: str, taken: list[dict], tests: set[str], order: list[str]) -> list[dict]:
    """Return the new rows and the existing ones of the sweep's other data sets, in the order of the sweep."""
    existing = [row for row in (_rows(path) if path.is_file() else []) if row[key] not in tests]
    placed = [(order.index(name), row) for row in [*existing, *taken] if (name := row[key].partition("/")[0]) in order]
    return [row for _, row in sorted(placed, key=lambda entry: entry[0])]


def write_rows(path: Path, rows: list[dict]) -> None:
    """Write one row a line."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def adjusted(rows: list[dict]) -> list[dict]:
    """Return comparisons, each adjusted over all of its task and metric."""
    corrected = []
    for family in dict.fromkeys((row["task"], row["metric"]) for row in rows):
        family_rows = [row for row in rows if (row["task"], row["metric"]) == family]
        for row, p in zip(family_rows, holm([row["p_value"] for row in family_rows]), strict=True):
            content = {name: value for name, value in row.items() if name != "significant"}
            comparison = Comparison(**{**content, "adjusted": p})
            corrected.append({**asdict(comparison), "significant": comparison.finding})
    return corrected


def _more(paper: str, sweep: str, row: dict, folder: Path) -> dict:
    """Return the extra fields that pages show: scores of few pairs, alignment by step, agreement with Origin."""
    if (paper, sweep) == ("cosent", "cases"):
        return _cases(row, folder)
    if (paper, sweep) == ("rankcse", "geometry"):
        return {"geometry": _geometry(row, folder)}
    if (paper, sweep, row["test"]) == ("rankcse", "documents", "docs/stsb"):
        return {"ratings": _ratings(row, folder)}
    if paper == "context" and row["seed"] is not None:
        manifest = json.loads((_home(row, folder) / "manifest.json").read_text(encoding="utf-8"))
        return {"kept": manifest["kept"]} if "kept" in manifest else {}
    return {}


def _geometry(row: dict, folder: Path) -> list[list[float]]:
    """Return step, alignment and uniformity at each evaluation of a cell."""
    history = _home(row, folder) / "history.jsonl"
    logs = _rows(history) if history.exists() else []
    return [[log["step"], log["dev_alignment"], log["dev_uniformity"]] for log in logs if "dev_alignment" in log]


def _home(row: dict, folder: Path) -> Path:
    """Return the folder of the cell that a row comes from."""
    plan = json.loads((folder / "sweep.json").read_text(encoding="utf-8"))
    entry = next(e for e in plan["cells"] if all(e[key] == row[key] for key in ("variant", "dataset", "seed")))
    return folder / "runs" / str(entry["folder"])


def _ratings(row: dict, folder: Path) -> list[list[float]]:
    """Return number, mean and deviation of the cosines of the pairs rated 0 to 1, ... 4 to 5."""
    with np.load(_home(row, folder) / "scores.npz") as arrays:
        cosines = arrays[f"sts:{row['test']}:spearman"]
    group = np.minimum(np.asarray(_labels(folder, row["data"]["test"])).astype(int), 4)
    groups = [cosines[group == number] for number in range(5)]
    return [[len(members), float(members.mean()), float(members.std(ddof=1))] for members in groups]


def _labels(folder: Path, sha: str) -> list[float]:
    return [pair[2] for pair in _rows(folder / "pairs" / f"{sha}.jsonl")]


def _cases(row: dict, folder: Path) -> dict:
    """Return scores, labels and threshold of a cell whose test pairs are few."""
    home = _home(row, folder)
    identity = json.loads((home / "cell.json").read_text(encoding="utf-8"))["identity"]
    with np.load(home / "scores.npz") as arrays:
        scores = arrays[f"sts:{row['test']}:spearman"]
        dev = arrays["dev"]
    labels = {"test": _labels(folder, row["data"]["test"]), "dev": _labels(folder, identity["dev"])}
    threshold = float(best_threshold(dev, labels["dev"], "accuracy"))
    return {"scores": scores.tolist(), "labels": labels["test"], "threshold": threshold}


def _rows(path: Path) -> list[Any]:
    """Return the parsed JSON lines of a file. Texts may contain other line separators than LF."""
    text = path.read_text(encoding="utf-8").removesuffix("\n")
    return [json.loads(line) for line in text.split("\n")] if text else []
