"""Cross-validation against pairs held out: width of the verdict's interval and time, by the number of labelled pairs.

    python benchmarks/verdict.py --model M --data stsb.train.tsv.gz sickr.train.tsv.gz --output verdicts

Both ways train on the same random pairs for the same number of steps. Finished runs are reused, so the same command
resumes; each run appends a line to OUTPUT/results.jsonl, and a table is printed.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

import samesense
from samesense.execution.shards.folders import append_json, parsed_lines
from samesense.recipes.planning import few_examples

SIZES = (200, 400, 800, 1600)
WAYS = ("held out", "folds")


def drawn_pairs(source: str, rows: int, seed: int) -> Any:
    """Return ``rows`` random pairs of a source."""
    from samesense.data.sampling import draw_positions

    data = samesense.read(source)
    return data.take(draw_positions(len(data), rows, seed))


def run_of(way: str, pairs: Any, seed: int, args: argparse.Namespace) -> dict[str, Any]:
    """Train by one way, and return seconds, difference and interval x100."""
    few_examples.FEW_PAIRS = len(pairs) + 1 if way == "folds" else 0  # forces the way that is measured
    begun = time.perf_counter()
    run = samesense.train(
        pairs,
        model=args.model,
        seed=seed,
        max_steps=args.steps,
        precision=args.precision,
        report=False,
        output=args.output / "run",
        overwrite=True,
    )
    seconds = time.perf_counter() - begun
    task = run.verdict.task
    return {
        "tested": task.n,
        "seconds": round(seconds, 1),
        "difference": 100 * (task.end - task.start),
        "width": 100 * (task.high - task.low),
    }


def show(lines: list[dict[str, Any]]) -> None:
    """Print medians over data sets and seeds."""
    print("| pairs | way | tested | width of the interval | seconds | runs |\n|---:|---|---:|---:|---:|---:|")
    for rows in SIZES:
        for way in WAYS:
            runs = [line for line in lines if (line["rows"], line["way"]) == (rows, way)]
            if runs:
                tested, width, seconds = (
                    statistics.median(line[name] for line in runs) for name in ("tested", "width", "seconds")
                )
                print(f"| {rows:,} | {way} | {tested:.0f} | {width:.1f} | {seconds:.0f} | {len(runs)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="default")
    parser.add_argument("--data", nargs="+", required=True)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--seeds", nargs="+", type=int, default=(1, 2, 3))
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    results = args.output / "results.jsonl"
    lines = parsed_lines(results.read_bytes()) if results.is_file() else []
    for seed in args.seeds:
        for source in args.data:
            for rows in args.sizes:
                for way in WAYS:
                    key = {"data": Path(source).name, "rows": rows, "way": way, "seed": seed, "steps": args.steps}
                    if any(key.items() <= line.items() for line in lines):
                        continue
                    line = key | run_of(way, drawn_pairs(source, rows, seed), seed, args)
                    append_json(results, line)
                    lines.append(line)
    show(lines)


if __name__ == "__main__":
    main()
