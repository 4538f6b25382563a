"""Labelled pairs, and sentences with classes, as anchors with positives and negatives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from samesense.data.benchmarks.sentences import read_sentences
from samesense.data.columns.labels import Kind
from samesense.data.conventions.column_names import Side
from samesense.data.pairs.data import PairData
from samesense.data.rows.sources import Source, as_sources, name_of, short_name
from samesense.data.tuples.data import Statement, TupleData, group_statements, tuple_data
from samesense.data.tuples.read import SIDES
from samesense.errors import DataError
from samesense.places import JOINT

_SIDES: dict[Kind, dict[float, Side]] = {
    "binary": {1.0: "positive", 0.0: "negative"},
    "triplet": {1.0: "positive", 0.0: "negative"},
    "nli": SIDES,
}

PARTNERS = 20
"""Most positives of a sentence, so that large classes do not need memory quadratic in their size."""

SEED = 0
"""Seed of the order in which sentences of a class become each other's positives."""


def tuples_of_pairs(data: PairData) -> TupleData:
    """Return pairs as tuples with the first sentences as anchors; DataError for scores, which have no positives."""
    if data.kind not in _SIDES:
        raise DataError(
            f"{data.source}: scores do not say which pairs are positives. Give labels 0 and 1, or anchors with "
            "positives."
        )
    sides = _SIDES[data.kind]
    rows = zip(data.sentences1, data.sentences2, data.labels, strict=True)
    statements = (
        Statement(first, first, second, sides[label], row) for row, (first, second, label) in enumerate(rows, 1)
    )
    return tuple_data(group_statements(statements), source=data.source, name=data.name)


def read_classes(sources: Source, *, columns: str | None = None, drop_bad_rows: bool | None = False) -> TupleData:
    """Read sentences with classes as anchors, from one source or several; DataError if one cannot be read.

    See :func:`tuples_of_classes`; ``columns`` are those of the text and the class.
    """
    source_list = as_sources(sources)
    read = [read_sentences(source, columns=columns, drop_bad_rows=drop_bad_rows) for source in source_list]
    return tuples_of_classes(
        [text for labelled_texts in read for text in labelled_texts.texts],
        [label for labelled_texts in read for label in labelled_texts.labels],
        source=JOINT.join(map(name_of, source_list)),
        name=JOINT.join(map(short_name, source_list)),
    )


def tuples_of_classes(texts: Sequence[str], labels: Sequence[str], *, source: str, name: str) -> TupleData:
    """Return each sentence once as an anchor, with at most :data:`PARTNERS` others of its class as positives.

    The class of every text is kept, because sentences of one class are never negatives of each other. Sentences with
    several classes are left out and counted.
    """
    classes: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for text, label in zip(texts, labels, strict=True):
        classes[text][label] = None
    class_of = {text: next(iter(names)) for text, names in classes.items() if len(names) == 1}
    members: defaultdict[str, list[str]] = defaultdict(list)
    for text, label in class_of.items():
        members[label].append(text)
    partners = {
        text: positives for texts_of in members.values() for text, positives in _positives_in_class(texts_of).items()
    }
    # TupleData identifies classes by number.
    numbers = {label: number for number, label in enumerate(members)}
    return TupleData(
        anchors=list(class_of),
        positives=[partners[text] for text in class_of],
        negatives=[[] for _ in class_of],
        neutrals=[[] for _ in class_of],
        source=source,
        name=name,
        left_out={
            "sentences of several classes": len(classes) - len(class_of),
            "repeated rows": len(texts) - sum(map(len, classes.values())),
        },
        classes={text: numbers[label] for text, label in class_of.items()},
        class_names=tuple(members),
    )


def _positives_in_class(texts: Sequence[str]) -> dict[str, list[str]]:
    """Return the positives of each sentence of a class: the next ones in a circular random order."""
    order = np.random.default_rng((SEED, len(texts))).permutation(len(texts))
    count = min(PARTNERS, len(texts) - 1)
    return {
        texts[index]: [texts[order[(position + step) % len(texts)]] for step in range(1, count + 1)]
        for position, index in enumerate(order)
    }
