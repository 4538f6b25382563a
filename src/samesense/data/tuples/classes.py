"""Sentences with class labels as anchors: sentences of one class are positives of each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from samesense.data.tuples.data import TupleData

PARTNERS = 20
"""Most positives of a sentence, so that large classes take no more memory than small ones."""

SEED = 0
"""Of the order in which sentences of a class are each other's positives."""


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
