"""Take over the results of a sweep folder into the folder of a paper; see ``tables.py``."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np

from samesense.metrics import best_threshold


def take(results: Path, sweep: str, folder: Path) -> None:
    """Copy what a sweep has left into the folder of a paper's results; scores only where they are few."""
    if not (folder / "results.jsonl").is_file():
        raise SystemExit(f"{folder} has no results.jsonl: the sweep writes it when it ends. Run it to its end.")
    words, lines = ["git", "rev-parse", "--short", "HEAD"], []
    commit = subprocess.run(words, capture_output=True, text=True, cwd=Path(__file__).parent)
    for line in _lines(folder / "results.jsonl"):
        row = {**json.loads(line), "commit": commit.stdout.strip()}
        lines.append(json.dumps(row | _more(results.parent.name, sweep, row, folder), ensure_ascii=False) + "\n")
    results.mkdir(exist_ok=True)
    (results / f"{sweep}.jsonl").write_text("".join(lines), encoding="utf-8")
    compared = (folder / "comparisons.jsonl").read_text(encoding="utf-8")
    (results / f"{sweep}.comparisons.jsonl").write_text(compared, encoding="utf-8")


def _more(paper: str, sweep: str, row: dict, folder: Path) -> dict:
    """Return what a page shows besides the figures: few pairs, a path of alignment, what is kept of Origin."""
    if (paper, sweep) == ("cosent", "cases"):
        return _cases(row, folder)
    if (paper, sweep) == ("rankcse", "geometry"):
        return {"geometry": _geometry(row, folder)}
    if paper == "context" and row["seed"] is not None:
        manifest = json.loads((_home(row, folder) / "manifest.json").read_text(encoding="utf-8"))
        return {"kept": manifest["kept"]} if "kept" in manifest else {}
    return {}


def _geometry(row: dict, folder: Path) -> list[list[float]]:
    """Return step, alignment and uniformity of each look of a cell."""
    history = _home(row, folder) / "history.jsonl"
    logs = [json.loads(line) for line in _lines(history)] if history.exists() else []
    return [[log["step"], log["dev_alignment"], log["dev_uniformity"]] for log in logs if "dev_alignment" in log]


def _home(row: dict, folder: Path) -> Path:
    """Return the folder of the cell that gave a row."""
    plan = json.loads((folder / "sweep.json").read_text(encoding="utf-8"))
    entry = next(e for e in plan["cells"] if all(e[key] == row[key] for key in ("variant", "dataset", "seed")))
    return folder / "runs" / str(entry["folder"])


def _cases(row: dict, folder: Path) -> dict:
    """Return scores, labels and threshold of a cell whose test pairs are few."""
    home = _home(row, folder)
    identity = json.loads((home / "cell.json").read_text(encoding="utf-8"))["identity"]
    with np.load(home / "scores.npz") as kept:
        scores, dev = kept[f"sts:{row['test']}:spearman"], kept["dev"]
    labels = {
        part: [json.loads(line)[2] for line in _lines(folder / "pairs" / f"{sha}.jsonl")]
        for part, sha in (("test", row["data"]["test"]), ("dev", identity["dev"]))
    }
    threshold = float(best_threshold(dev, labels["dev"], "accuracy"))
    return {"scores": scores.tolist(), "labels": labels["test"], "threshold": threshold}


def _lines(path: Path) -> list[str]:
    """Return the lines of a file; texts in them may hold other signs that end a line."""
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
