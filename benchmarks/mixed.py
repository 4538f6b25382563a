"""Inference pairs together with a few hundred scored pairs, against either alone, with the same steps and dev pairs.

    python benchmarks/mixed.py --nli lingnli.train.tsv.gz --scored stsb.train.tsv.gz --dev stsb.dev.tsv.gz \
        --test stsb.test.tsv.gz sickr.test.tsv.gz --model BARE --output runs/mixed

Each run has its own folder and finished runs are reused, so the same command resumes; --only selects ways. Each run and
test set appends a line to OUTPUT/results.jsonl, and the means over seeds, x100, are printed.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from typing import Any

import samesense
from samesense.execution.shards.folders import append_json, parsed_lines

NLI: dict[str, Any] = {"loss": "info-nce"}  # contradictions of a premise are its hard negatives
BOTH: dict[str, Any] = {"from": ("nli", "scored"), "parts": {"nli": NLI}}
WAYS: dict[str, dict[str, Any]] = {
    "nli": {"from": ("nli",), **NLI},
    "scored": {"from": ("scored",)},
    "both, proportional": {**BOTH, "mixing": "proportional"},
    "both, weighted": {**BOTH, "mixing": "weighted", "weights": (1.0, 1.0)},
    "both, in turn": {**BOTH, "mixing": "in-turn", "weights": (1.0, 1.0)},
}


def train(args: argparse.Namespace, way: str, seed: int) -> list[dict[str, Any]]:
    """Return the figures of one run."""
    nli = samesense.read(args.nli)
    scored = samesense.read(args.scored)
    data = {"nli": _some(nli, args.nli_rows, args.rows_seed), "scored": _some(scored, args.rows, args.rows_seed)}
    settings = dict(WAYS[way])
    datasets = [data[name] for name in settings.pop("from")]
    folder = args.output / f"{way.replace(', ', '-').replace(' ', '-')}-{seed}"
    run = samesense.train(
        datasets if len(datasets) > 1 else datasets[0],
        dev=_some(samesense.read(args.dev), args.dev_rows, args.rows_seed),
        output=folder,
        overwrite=True,
        model=args.model,
        seed=seed,
        max_steps=args.steps,
        batch_size=args.batch,
        learning_rate=args.learning_rate,
        eval_steps=max(1, args.steps // 5),
        **settings,
    )
    results = samesense.evaluate(run.model, args.test, intervals=False)
    return [
        {"way": way, "seed": seed, "test": row.dataset, "spearman": row.value, "steps": args.steps, "rows": args.rows}
        for row in results
        if row.metric == "spearman" and row.subset == "all"
    ]


def _some(data: Any, rows: int, seed: int) -> Any:
    """Return ``rows`` random rows of labelled pairs."""
    return data if rows >= len(data) else data.split(rows / len(data), seed)[1]


def main() -> None:
    """Make the missing runs, and print the results of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("nli", "scored", "dev"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--test", nargs="+", required=True)
    parser.add_argument("--model", default="default")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=300, help="scored pairs")
    parser.add_argument("--nli-rows", type=int, default=20_000, help="inference pairs")
    parser.add_argument("--dev-rows", type=int, default=200, help="pairs that select, the same for every way")
    parser.add_argument("--rows-seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--only", nargs="+", choices=list(WAYS), default=list(WAYS))
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    log = args.output / "results.jsonl"
    done = parsed_lines(log.read_bytes()) if log.is_file() else []
    for seed in args.seeds:
        for way in args.only:
            if not any((row["way"], row["seed"]) == (way, seed) for row in done):
                figures = train(args, way, seed)
                for row in figures:
                    append_json(log, row)
                done += figures
    for test in dict.fromkeys(row["test"] for row in done):
        for way in WAYS:
            values = [100 * row["spearman"] for row in done if (row["test"], row["way"]) == (test, way)]
            if values:
                spread = f"{min(values):.2f} to {max(values):.2f}"
                print(f"{test:20} {way:20} {statistics.fmean(values):6.2f}  ({spread}, {len(values)} seeds)")


if __name__ == "__main__":
    main()
