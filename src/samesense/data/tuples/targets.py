"""Anchors with partners as classified pairs, for the softmax loss."""

from __future__ import annotations

from samesense.data.pairs.targets import Targets
from samesense.data.tuples.data import TupleData
from samesense.errors import DataError


def partners_as_classes(data: TupleData) -> Targets:
    """Return each anchor with each of its partners: negatives, neutrals and positives, numbered from 0.

    DataError if there are partners of one kind only.
    """
    sides = {"contradiction": data.negatives, "neutral": data.neutrals, "entailment": data.positives}
    classes = [name for name, partners in sides.items() if any(partners)]
    if len(classes) < 2:
        raise DataError(
            f"{data.source}: softmax tells classes apart, and there are partners of {', '.join(classes)} only. Give "
            "data with negatives, or take loss info-nce."
        )
    rows = [
        (anchor, partner, label)
        for row, anchor in enumerate(data.anchors)
        for label, name in enumerate(classes)
        for partner in sides[name][row]
    ]
    columns = dict(zip(("sentence1", "sentence2", "label"), map(list, zip(*rows, strict=True)), strict=True))
    summary = f"softmax: {len(rows):,} pairs of {len(classes)} classes ({', '.join(classes)})"
    return Targets(columns, summary, {"classes": len(classes)})
