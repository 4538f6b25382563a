"""Evaluate the saved models of a sweep on transfer tasks, and write into the results of a paper.

python reproduce/transfer.py supmpn sweeps/supmpn-anchors --start START --data FOLDER --variants triplet softmax

``results/transfer.jsonl`` gets a line for each run and task and for each run's mean of the tasks, and
``results/transfer.comparisons.jsonl`` the comparisons with the first variant. ``tables.py`` writes them into the page.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
from taking import adjusted, commit, write_rows

import samesense
from samesense.reports.report import Report
from samesense.results.results import mean_name


def models_of(folder: Path, variants: list[str], start: str) -> list[str]:
    """Return NAME=MODEL of the start point and of the runs of these variants; the seeds of a variant share its name."""
    plan = json.loads((folder / "sweep.json").read_text(encoding="utf-8"))
    runs = [(cell["variant"], folder / "runs" / cell["folder"]) for cell in plan["cells"]]
    if missing := set(variants) - {name for name, _ in runs}:
        raise SystemExit(f"{folder} has no variant {', '.join(sorted(missing))}.")
    return [f"start={start}", *(f"{name}={path}" for name in variants for variant, path in runs if variant == name)]


def rows_of(report: Report, start: str) -> list[dict]:
    """Return a row for each run and task, and one for each run's mean of the tasks."""
    behind = {"commit": commit(), "start": Path(start).name, "made in": report.environment}
    rows = [
        {"variant": row.model, "test": row.dataset, "seed": row.seed, "n": row.n, "accuracy": row.value, **behind}
        for row in report.results
        if row.metric == "accuracy" and row.subset == "all"
    ]
    runs = dict.fromkeys((row["variant"], row["seed"]) for row in rows)
    means = []
    for run in runs:
        run_rows = [row for row in rows if (row["variant"], row["seed"]) == run]
        figure = float(np.mean([row["accuracy"] for row in run_rows]))
        n = sum(row["n"] for row in run_rows)
        means.append({**run_rows[0], "test": mean_name(len(run_rows)), "n": n, "accuracy": figure})
    return [*rows, *means]


def main() -> None:
    """Evaluate, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paper")
    parser.add_argument("sweep", type=Path)
    parser.add_argument("--start", required=True, help="the untouched start point")
    parser.add_argument("--data", required=True, help="folder of the transfer sets")
    parser.add_argument("--fast", action="store_true", help="5 folds instead of 10")
    parser.add_argument("--cache", help="folder in which embeddings are kept, to go on after an interruption")
    parser.add_argument("--variants", nargs="+", required=True, help="of the sweep; the first is the reference")
    args = parser.parse_args()
    report = samesense.compare(
        models_of(args.sweep, args.variants, args.start),
        args.data,
        suites=["transfer"],
        against=args.variants[0],
        fast=args.fast,
        cache=args.cache,
        speed=False,
        precision="bfloat16",
    )
    if report.ranking is None:
        raise SystemExit(f"Some runs have no figure on some tasks: {'; '.join(report.notes)}")
    results = Path(__file__).parent / args.paper / "results"
    write_rows(results / "transfer.jsonl", rows_of(report, args.start))
    compared = [*report.comparisons, *report.ranking.of_means]
    write_rows(results / "transfer.comparisons.jsonl", adjusted([asdict(comparison) for comparison in compared]))


if __name__ == "__main__":
    main()
