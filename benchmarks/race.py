"""A race against default settings on the default model, in equal time, on one set.

    python benchmarks/race.py --name mrpc --train mrpc.train.tsv.gz --test mrpc.test.tsv.gz --budget 180 --output races

Both are tested on the same pairs, which were not used for selection. The default is trained on the same pairs, for as
many steps as fit into the budget (measured on ten steps), and at most for its own number of epochs. Finished runs are
reused, so the same command resumes; each set appends a line to OUTPUT/results.jsonl.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import samesense
from samesense.execution.shards.folders import append_json, parsed_lines


def some(source: str, rows: int) -> Any:
    """Return ``rows`` random pairs of a source, the same each time; all of them if it has fewer."""
    data = samesense.read(source)
    return data if rows >= len(data) else data.split(rows / len(data), 0)[1]


def spearman(results: Any) -> dict[str, float]:
    """Return Spearman and its interval, x100, of the last model among results."""
    row = [result for result in results if (result.metric, result.subset) == ("spearman", "all")][-1]
    return {"value": 100 * row.value, "low": 100 * row.low, "high": 100 * row.high}


def by_default(args: argparse.Namespace, train: Any, dev: Any, test: Any) -> dict[str, Any]:
    """Train by default settings within the budget, and return the figures on test, before and after."""
    options: dict[str, Any] = {"dev": dev, "overwrite": True, "model": args.default, "config": "cosent"}
    begun = time.perf_counter()
    probe = samesense.train(train, max_steps=10, output=args.output / args.name / "probe", **options)
    step = probe.spent["training"] / 10
    remaining = time.perf_counter() - begun - probe.spent["training"]
    most = most_steps(train)
    steps = max(10, min(most, int(0.9 * (args.budget - remaining) / step)))
    begun = time.perf_counter()
    run = samesense.train(train, max_steps=steps, output=args.output / args.name / "default", **options)
    seconds = time.perf_counter() - begun
    return {
        "start": spearman(samesense.evaluate(args.default, test)),
        "default": spearman(samesense.evaluate(run.model, test)),
        "default_seconds": round(seconds, 1),
        "default_steps": steps,
        "default_most_steps": most,
    }


def most_steps(train: Any) -> int:
    """Return the steps of the recipe's own epochs."""
    from samesense.recipes.planning.plan import plan

    planned = plan(train, dev="none")
    return planned.settings.steps(planned.settings.examples(planned.train))


def main() -> None:
    """Hold the race, train by default, and print both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("name", "train", "test"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--dev", default=None)
    parser.add_argument("--models", nargs="*", default=[])
    parser.add_argument("--no-at-hand", action="store_true")
    parser.add_argument("--default", default="default")
    parser.add_argument("--budget", type=float, default=180.0, help="seconds")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--train-rows", type=int, default=10**9)
    parser.add_argument("--test-rows", type=int, default=10**9)
    args = parser.parse_args()
    log = args.output / "results.jsonl"
    if log.is_file() and any(row["name"] == args.name for row in parsed_lines(log.read_bytes())):
        return
    train = some(args.train, args.train_rows)
    test = some(args.test, args.test_rows)
    if args.dev is None:
        train, dev = train.split(0.1, 42)
    else:
        dev = some(args.dev, 1000)
    held = samesense.race(
        train,
        dev=dev,
        test=test,
        budget=args.budget,
        models=args.models,
        at_hand=not args.no_at_hand,
        output=args.output / args.name / "race",
    )
    print(held)
    winners = {"quality": held.quality.name, "cpu": held.cpu.name}
    figures = {what: [row for row in held.test if row.model == name] for what, name in winners.items()}
    row = {
        "name": args.name,
        "train": len(train),
        "dev": len(dev),
        "test": len(test),
        "budget": args.budget,
        "race_seconds": round(held.spent, 1),
        "quality_model": held.quality.name,
        "cpu_model": held.cpu.name,
        "cpu_form": held.cpu.form,
        "times_as_fast": round(held.cpu.speed / held.quality.speed, 1),
        **{name: spearman(rows) for name, rows in figures.items()},
    }
    row |= by_default(args, train, dev, test)
    append_json(log, row)
    print(row)


if __name__ == "__main__":
    main()
