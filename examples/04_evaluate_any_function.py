"""Evaluation takes any function from pairs to numbers: here the share of common words, without any model.

python examples/04_evaluate_any_function.py [MODEL]    (MODEL is named in the result only)
"""

import sys
from collections.abc import Sequence

import numpy as np

from samesense.data import read_pairs, sample_path
from samesense.evaluation import evaluate_sts
from samesense.types import Pair, Scores


def word_overlap(pairs: Sequence[Pair]) -> Scores:
    """Return, for each pair, the number of common words divided by the number of all words."""
    scores = np.zeros(len(pairs))
    for row, (first, second) in enumerate(pairs):
        one, other = set(first.lower().split()), set(second.lower().split())
        scores[row] = len(one & other) / len(one | other)
    return scores


def main(model: str = "word overlap") -> None:
    data = read_pairs(sample_path("test"))
    results = evaluate_sts(
        word_overlap, data.pairs(), data.labels, dataset=data.name, model=model, protocol="Jaccard of lower-case words"
    )
    print(results)


if __name__ == "__main__":
    main(*sys.argv[1:2])
