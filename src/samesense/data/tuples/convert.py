"""Labelled pairs, and sentences with classes, as anchors with positives and negatives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from samesense.data.formats.columns import Side
from samesense.data.formats.labels import Kind
from samesense.data.pairs.data import PairData
from samesense.data.tuples.data import Statement, TupleData, grouped, tuple_data
from samesense.data.tuples.read import SIDES
from samesense.errors import DataError

_SIDES: dict[Kind, dict[float, Side]] = {
    "binary": {1.0: "positive", 0.0: "negative"},
    "triple": {1.0: "positive", 0.0: "negative"},
    "nli": SIDES,
}

PARTNERS = 20
"""Most positives of a sentence, so that large classes take no more memory than small ones."""

SEED = 0
"""Of the order in which sentences of a class are each other's positives."""


def tuples_of_pairs(data: PairData) -> TupleData:
    """Return the first sentences of pairs as anchors; DataError if their labels do not say what is a positive."""
    if data.kind not in _SIDES:
        raise DataError(
            f"{data.source}: scores do not say which pairs are positives. Give labels 0 and 1, or anchors with "
            "positives."
        )
    sides = _SIDES[data.kind]
    rows = zip(data.sentences1, data.sentences2, data.labels, strict=True)
    said = (Statement(one, one, other, sides[label], row) for row, (one, other, label) in enumerate(rows, 1))
    return tuple_data(grouped(said), source=data.source, name=data.name)


def tuples_of_classes(texts: Sequence[str], labels: Sequence[str], *, source: str, name: str) -> TupleData:
    """Return each sentence once as an anchor, its positives being others of its class, :data:`PARTNERS` at most.

    The class of every text is kept, since sentences of one class are no negatives of each other. Sentences that stand
    in several classes are left out, and counted.
    """
    classes: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for text, label in zip(texts, labels, strict=True):
        classes[text][label] = None
    own = {text: next(iter(found)) for text, found in classes.items() if len(found) == 1}
    members: defaultdict[str, list[str]] = defaultdict(list)
    for text, label in own.items():
        members[label].append(text)
    partners = {text: chosen for texts_of in members.values() for text, chosen in _partners(texts_of).items()}
    numbers = {label: number for number, label in enumerate(members)}
    return TupleData(
        anchors=list(own),
        positives=[partners[text] for text in own],
        negatives=[[] for _ in own],
        neutrals=[[] for _ in own],
        source=source,
        name=name,
        left_out={
            "sentences of several classes": len(classes) - len(own),
            "repeated rows": len(texts) - sum(map(len, classes.values())),
        },
        classes={text: numbers[label] for text, label in own.items()},
    )


def _partners(texts: Sequence[str]) -> dict[str, list[str]]:
    """Return the positives of each sentence of a class: those that follow it in a random order, round and round."""
    order = np.random.default_rng((SEED, len(texts))).permutation(len(texts))
    count = min(PARTNERS, len(texts) - 1)
    return {
        texts[at]: [texts[order[(place + step) % len(texts)]] for step in range(1, count + 1)]
        for place, at in enumerate(order)
    }
