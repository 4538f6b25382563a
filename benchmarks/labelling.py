"""Compare a few labels on pairs that models choose with as many labels on random pairs.

    python benchmarks/labelling.py --pool stsb.train.tsv.gz --test stsb.test.tsv.gz --model default --other BGE \
        --output runs/labelling

The labels of a real set stand for the person: a function that knows them is the scorer of samesense.label. --unrelated
adds this number of random pairs of sentences of the set with label 0, as in texts that nobody has paired yet. Each run
is a line of OUTPUT/results.jsonl; finished runs are reused, so the same command resumes.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

import samesense
from samesense.execution.shards.folders import append_json, parsed_lines
from samesense.inference.labelling.choose import random_pairs

WAYS = ("random", "bands", "disagreement")


def pool_of(args: argparse.Namespace) -> dict[frozenset[str], float]:
    """Return the label of every pair that may be chosen."""
    data = samesense.read(args.pool)
    texts = list(dict.fromkeys([*data.sentences1, *data.sentences2]))
    unrelated = {frozenset(pair): 0.0 for pair in random_pairs(texts, args.unrelated, np.random.default_rng(0))}
    rows = zip(data.sentences1, data.sentences2, data.labels, strict=True)
    return unrelated | {frozenset((first, second)): label for first, second, label in rows if first != second}


def run(
    args: argparse.Namespace, pool: dict[frozenset[str], float], models: Any, way: str, seed: int
) -> dict[str, Any]:
    """Choose, label, train and evaluate once."""
    folder = args.output / f"{way}-{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    samesense.label(
        [tuple(pair) for pair in map(sorted, pool)],
        output=folder / "labels.tsv",
        pairs=args.labels,
        pairs_by=way,
        scorer=lambda pairs: np.array([pool[frozenset(pair)] for pair in pairs]),
        model=models[0],
        other=models[1] if way == "disagreement" else None,
        seed=seed,
    )
    labelled = samesense.read(folder / "labels.tsv", label_range=(0, args.highest))
    trained = samesense.train(
        labelled,
        dev="none",
        output=folder / "run",
        model=args.model,
        seed=seed,
        max_steps=args.steps,
        batch_size=16,
        learning_rate=args.learning_rate,
    )
    rows = samesense.evaluate(trained.model, args.test, intervals=False)
    spearman = {row.dataset: row.value for row in rows if row.metric == "spearman" and row.subset == "all"}
    shutil.rmtree(folder / "run")
    labels = np.array(labelled.labels)
    return {
        "way": way,
        "seed": seed,
        "model": args.model,
        "unrelated": args.unrelated,
        "labels": args.labels,
        "pool": Path(args.pool).name,
        "steps": args.steps,
        "learning_rate": args.learning_rate,
        "zeros": float((labels == 0).mean()),
        "mean": float(labels.mean()),
        "spearman": spearman,
    }


def report(rows: list[dict[str, Any]], start: dict[str, float]) -> None:
    """Print means over seeds, x100, and what each way differs from random labels by, with its standard deviation."""
    random = {row["seed"]: row["spearman"] for row in rows if row["way"] == "random"}
    for dataset, before in start.items():
        print(f"{dataset}: before {100 * before:.2f}")
        for way in WAYS:
            of = {row["seed"]: 100 * row["spearman"][dataset] for row in rows if row["way"] == way}
            apart = [value - 100 * random[seed][dataset] for seed, value in of.items() if seed in random]
            if len(apart) > 1:
                print(
                    f"  {way}: {statistics.mean(of.values()):.2f}, {len(of)} seeds; against random "
                    f"{statistics.mean(apart):+.2f}, sd {statistics.stdev(apart):.2f}"
                )


def main() -> None:
    """Make the missing runs until the minutes are over, and print the results of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pool", required=True)
    parser.add_argument("--test", nargs="+", required=True)
    parser.add_argument("--model", default="default")
    parser.add_argument("--other", required=True, help="second model, for disagreement")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--unrelated", type=int, default=0)
    parser.add_argument("--labels", type=int, default=200)
    parser.add_argument("--highest", type=float, default=5)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--learning-rate", type=float, default=2e-5)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--only", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no run after this number of minutes")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    log = args.output / "results.jsonl"
    started = time.monotonic()
    models = [samesense.load(name, cache=args.output / "vectors") for name in (args.model, args.other)]
    pool = pool_of(args)
    done = parsed_lines(log.read_bytes()) if log.is_file() else []
    for seed in args.seeds:
        for way in args.only:
            if any((row["way"], row["seed"]) == (way, seed) for row in done):
                continue
            if time.monotonic() - started > 60 * args.minutes:
                return
            done.append(run(args, pool, models, way, seed))
            append_json(log, done[-1])
            print(done[-1], f"{time.monotonic() - started:.0f} s", flush=True)
    before = samesense.evaluate(models[0], args.test, intervals=False)
    report(done, {row.dataset: row.value for row in before if row.metric == "spearman" and row.subset == "all"})


if __name__ == "__main__":
    main()
