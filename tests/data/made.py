"""Generated labelled pairs: few sentences in many pairs, with many duplicates and contradictions."""

import random

from samesense.data.pairs.data import PairData

SCALES = {"scored": (0.0, 5.0), "binary": (0, 1), "nli": (0.0, 2.0), "triplet": (0.0, 1.0)}


def pair_data(rows, kind, scale="usual"):
    first, second, labels = (list(column) for column in zip(*rows, strict=True))
    return PairData(
        sentences1=first,
        sentences2=second,
        labels=labels,
        subsets=None,
        kind=kind,
        scale=SCALES[kind] if scale == "usual" else scale,
        source="made.tsv",
        label_column="label",
    )


def drawn(kind, labels, rows=200, sentences=30, seed=0):
    source = random.Random(seed)

    def sentence():
        return f"s{source.randrange(sentences)}"

    return pair_data([(sentence(), sentence(), source.choice(labels)) for _ in range(rows)], kind)


SCORED = drawn("scored", [0.0, 0.5, 2.5, 2.6, 4.0, 5.0])
BINARY = drawn("binary", [0.0, 1.0])
NLI = drawn("nli", [0.0, 1.0, 2.0])
TRIPLET = drawn("triplet", [0.0, 1.0])
DATA = {"scored": SCORED, "binary": BINARY, "nli": NLI, "triplet": TRIPLET}
