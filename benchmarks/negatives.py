"""Mined hard negatives against those of the batch alone: the same anchors, steps and start.

    python benchmarks/negatives.py --train lingnli.train.tsv.gz --dev lingnli.dev.tsv.gz \
        --sts stsb.test.tsv.gz --output runs/negatives

Premises are anchors and the hypotheses that they entail are positives; all hypotheses, without their labels, are the
corpus that negatives are mined from. Measured on the premises of dev: the mean reciprocal rank of the first entailed
hypothesis among all hypotheses of dev, and the Spearman of the cosines with the labels; and Spearman on a set of STS.
Each run has its own folder, and finished runs are reused. Each run appends a line to OUTPUT/results.jsonl.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

import samesense
from samesense.data.tuples.convert import tuples_of_pairs
from samesense.data.tuples.data import TupleData
from samesense.data.tuples.read import read_tuples
from samesense.execution.shards.folders import append_json, parsed_lines
from samesense.files import write_json_lines

WAYS: dict[str, dict[str, Any] | None] = {
    "in-batch": None,
    "mined, no margin": {"relative_margin": None},
    "mined, 95 % of the positive": {"relative_margin": 0.05},
}
MEASURES = ("mrr", "nli", "sts")


def anchors_of(args: argparse.Namespace, way: str, pairs: Any) -> TupleData:
    """Return premises with their entailed hypotheses, and with mined negatives if the way mines."""
    every = tuples_of_pairs(pairs).take(range(args.anchors))
    bare = TupleData(
        anchors=every.anchors,
        positives=every.positives,
        negatives=[[] for _ in every.anchors],
        neutrals=[[] for _ in every.anchors],
        source=every.source,
        name=way,
    )
    options = WAYS[way]
    if options is None:
        return bare
    anchors = set(every.anchors)
    texts = list(
        dict.fromkeys(
            hypothesis
            for premise, hypothesis in zip(pairs.sentences1, pairs.sentences2, strict=True)
            if premise in anchors
        )
    )
    path = args.output / f"negatives-{list(WAYS).index(way)}.jsonl"
    if not path.is_file():
        mined = samesense.mine_negatives(bare, model=args.model, corpus=texts, **options)
        rows = zip(mined.anchors, mined.positives, mined.negatives, strict=True)
        write_json_lines(path, (dict(zip(("anchor", "positives", "negatives"), row, strict=True)) for row in rows))
    tuples = read_tuples(str(path))
    contradictions = [set(negatives) for negatives in every.negatives]
    count = sum(map(len, tuples.negatives))
    true = sum(
        text in contradicting
        for mined, contradicting in zip(tuples.negatives, contradictions, strict=True)
        for text in mined
    )
    print(f"{way}: {count} negatives mined, {true / count:.0%} of them contradictions of their premise")
    return tuples


def measure(args: argparse.Namespace, model: Any) -> dict[str, float]:
    """Return the figures of a model, x100."""
    encoder = samesense.load(model, cache=True)
    dev = samesense.read(args.dev)
    data = tuples_of_pairs(dev)
    anchors = set(data.anchors[: args.dev_anchors])
    dev = dev.take(row for row, premise in enumerate(dev.sentences1) if premise in anchors)
    data = tuples_of_pairs(dev)
    texts = list(dict.fromkeys(dev.sentences2))
    column_of = {text: row for row, text in enumerate(texts)}
    scores = encoder.encode(data.anchors, normalize=True) @ encoder.encode(texts, normalize=True).T
    ranks = [
        1 + int((row > max(row[column_of[text]] for text in positives)).sum())
        for row, positives in zip(scores, data.positives, strict=True)
        if positives
    ]
    figures = {"mrr": 100 * float(np.mean(1 / np.array(ranks)))}
    for name, source in (("nli", dev), ("sts", samesense.read(args.sts).take(range(args.sts_rows)))):
        rows = samesense.evaluate(encoder, source, intervals=False)
        figures[name] = 100 * next(row.value for row in rows if (row.metric, row.subset) == ("spearman", "all"))
    return figures


def main() -> None:
    """Make the missing runs, and print the results of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("train", "dev", "sts"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--model", default="default")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--anchors", type=int, default=640, help="premises of train")
    parser.add_argument("--dev-anchors", type=int, default=100, help="premises of dev")
    parser.add_argument("--sts-rows", type=int, default=300, help="pairs of the set of STS, the first ones")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=32, help="longest input in training, in tokens")
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument("--loss", default="info-nce")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--only", nargs="+", choices=list(WAYS), default=list(WAYS))
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    log = args.output / "results.jsonl"
    done = parsed_lines(log.read_bytes()) if log.is_file() else []
    if not any(row["way"] == "start" for row in done):
        done.append({"way": "start", "seed": 0, "seconds": 0.0, **measure(args, args.model)})
        append_json(log, done[-1])
    train = samesense.read(args.train)
    tuples: dict[str, TupleData] = {}
    for seed, way in itertools.product(args.seeds, args.only):
        if any((row["way"], row["seed"]) == (way, seed) for row in done):
            continue
        data = tuples[way] = tuples.get(way) or anchors_of(args, way, train)
        started = time.perf_counter()
        folder = args.output / f"{list(WAYS).index(way)}-{seed}"
        run = samesense.train(
            data,
            method="supmpn",
            config="supmpn-ragged",
            loss=args.loss,
            model=args.model,
            seed=seed,
            max_steps=args.steps,
            eval_steps=args.steps,
            batch_size=args.batch,
            dev="none",
            output=folder,
            overwrite=True,
            max_seq_length=args.length,
            learning_rate=args.learning_rate,
        )
        seconds = round(time.perf_counter() - started, 1)
        done.append({"way": way, "seed": seed, "seconds": seconds, **measure(args, run.model)})
        append_json(log, done[-1])
    for way in ("start", *WAYS):
        runs = [row for row in done if row["way"] == way]
        figures = (
            f"{name} {statistics.fmean(row[name] for row in runs):6.2f}" for name in (*MEASURES, "seconds") if runs
        )
        spread = ", ".join(f"{row['mrr']:.2f}" for row in runs)
        print(f"{way:30} {'  '.join(figures)}  (mrr of each seed: {spread})" if runs else f"{way:30} not run")


if __name__ == "__main__":
    main()
