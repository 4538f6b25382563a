"""Labelled pairs as anchors with positives and negatives: what a pair's label says of its second sentence."""

from __future__ import annotations

from samesense.data.formats.labels import Kind
from samesense.data.pairs.data import PairData
from samesense.data.tuples.data import Side, Statement, TupleData, grouped, tuple_data
from samesense.data.tuples.read import SIDES
from samesense.errors import DataError

_SIDES: dict[Kind, dict[float, Side]] = {
    "binary": {1.0: "positive", 0.0: "negative"},
    "triple": {1.0: "positive", 0.0: "negative"},
    "nli": SIDES,
}


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
