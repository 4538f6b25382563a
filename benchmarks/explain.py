"""Measure how faithful explanations are: leave out the words they rank first, or random ones, and score again.

python benchmarks/explain.py --model minilm-l6 --data stsb.test.tsv.gz

One to three words of the first text are left out of pairs with a score of 0.5 or more. The larger the drop, the more
faithful the order. ``gap`` is the distance of the sum of the first text's shares from the score.
"""

from __future__ import annotations

import argparse
import random

import numpy as np

import samesense
from samesense.inference.explain import explain, word_spans


def without(text: str, positions: list[int]) -> str:
    spans = word_spans(text)
    return " ".join(text[a:b] for position, (a, b) in enumerate(spans) if position not in positions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="default")
    parser.add_argument("--data", required=True)
    parser.add_argument("--pairs", type=int, default=200)
    chosen = parser.parse_args()
    model = samesense.load(chosen.model, precision="float32")
    data = samesense.read(chosen.data)
    scores = model.scores(data.pairs())
    draw = random.Random(0)
    long_pairs = [p for p, s in zip(data.pairs(), scores, strict=True) if s >= 0.5 and len(word_spans(p[0])) >= 6]
    pairs = draw.sample(long_pairs, min(chosen.pairs, len(long_pairs)))
    drops: dict[str, list[list[float]]] = {"tokens": [], "occlusion": [], "random": []}
    gaps: dict[str, list[float]] = {"tokens": [], "occlusion": []}
    for pair in pairs:
        joined = (without(pair[0], []), pair[1])  # normalises spacing, which alone must not change the score
        orders = {}
        for by in ("tokens", "occlusion"):
            explanation = explain(model, *joined, by=by)
            shares = [word.share for word in explanation.words1 if word.text != "[marks]"]
            orders[by] = np.argsort(shares)[::-1].tolist()
            gaps[by].append(abs(explanation.gap))
        orders["random"] = draw.sample(range(len(shares)), len(shares))
        shortened = [(without(joined[0], order[:count]), joined[1]) for order in orders.values() for count in (1, 2, 3)]
        base, *less = model.scores([joined, *shortened])
        for number, by in enumerate(orders):
            drops[by].append([base - score for score in less[3 * number : 3 * number + 3]])
    print(f"{chosen.model}: {len(pairs)} pairs\n| words left out by | 1 | 2 | 3 | gap |\n|---|---:|---:|---:|---:|")
    for by, values in drops.items():
        gap = f"{np.mean(gaps[by]):.1e}" if by in gaps else ""
        print(f"| {by} | {' | '.join(f'{drop:.3f}' for drop in np.mean(values, axis=0))} | {gap} |")


if __name__ == "__main__":
    main()
