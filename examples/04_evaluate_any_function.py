"""Evaluation takes any function from pairs to numbers: here the share of common words, without any model.

python examples/04_evaluate_any_function.py [MODEL]    (MODEL is named in the result only)
"""

import sys
from collections.abc import Sequence

import numpy as np

import samesense
from samesense.data import sample_path
from samesense.types import Pair, Scores


def word_overlap(pairs: Sequence[Pair]) -> Scores:
    """Return, for each pair, the number of common words divided by the number of all words."""
    scores = np.zeros(len(pairs))
    for row, (first, second) in enumerate(pairs):
        one, other = set(first.lower().split()), set(second.lower().split())
        scores[row] = len(one & other) / len(one | other)
    return scores


def main(model: str = "word overlap") -> None:
    scorer = samesense.Model(name=model, score=word_overlap, protocol="Jaccard of lower-case words")
    print(samesense.evaluate(scorer, samesense.read(sample_path("test"))))


if __name__ == "__main__":
    main(*sys.argv[1:2])
