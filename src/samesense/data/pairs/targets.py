"""From labelled pairs to what each loss is trained on: how labels are read, and what is left out.

| loss | scored | binary, triples | NLI |
|---|---|---|---|
| cosent | as they are | as they are | as they are |
| mse, cross-entropy | to 0..1 by their scale | as they are | contradiction 0, neutral 0.5, entailment 1 |
| contrastive | positive above the middle | as they are | refused |
| softmax | refused | 2 classes | 3 classes |
| triplet | refused | formed | formed |
| info-nce | positives | positives | entailment |

Source: Huang et al. 2024 (TASLP), sections III-A and V, and the scaling in its authors' code (scores divided by 5, NLI
    labels by 2, scores above 2.5 or, on a scale from 1, above 3 positive).
Differs: a scale other than 0 to 5 is mapped to 0..1 linearly. How triplets and InfoNCE's pairs are formed is not in the
    paper; see :mod:`samesense.data.pairs.triplets`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from samesense.data.formats.scale import number_text
from samesense.data.pairs.data import PairData
from samesense.data.pairs.triplets import Tuples, positives, triplets
from samesense.errors import DataError

LossName = Literal["cosent", "contrastive", "mse", "softmax", "triplet", "info-nce", "cross-entropy"]
"""What a run minimises; ``cross-entropy`` is of cross-encoders, and alone reads labels as probabilities."""

FITTING = {
    "scored": "cosent, mse, contrastive and info-nce",
    "binary": "cosent, contrastive, mse, softmax, triplet and info-nce",
    "triple": "cosent, contrastive, mse, softmax, triplet and info-nce",
    "nli": "cosent, mse, softmax, triplet and info-nce",
}
"""The losses that fit each kind of labels."""

_CLASSES = {0.0: "contradiction", 1.0: "neutral", 2.0: "entailment"}


@dataclass(frozen=True)
class Targets:
    """What a loss is trained on.

    Attributes:
        columns: text columns in the order that the loss takes them, then ``label`` where it takes one; all of one
            length. Ready for ``datasets.Dataset.from_dict``.
        account: one line for people: how labels were read, what was formed and what was left out.
        classes: number of classes, for softmax.
    """

    columns: dict[str, list[Any]]
    account: str
    classes: int | None = None

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))


def targets(
    data: PairData, loss: LossName, *, positive_above: float | None = None, hard_negatives: bool = True
) -> Targets:
    """Return what ``loss`` is trained on.

    Args:
        data: labelled pairs.
        loss: name of a bi-encoder's loss.
        positive_above: contrastive and InfoNCE on scores: those above it are positive; ``None`` is the middle of the
            scale, which runs from 1 if it is 0 to 5 and no label lies below 1.
        hard_negatives: InfoNCE: with hard negatives, where an anchor has one.

    Raises:
        DataError: if labels of this kind do not fit the loss, or nothing can be formed; names the losses that fit.
    """
    match loss:
        case "cosent":
            return _pairs(data, data.labels, "cosent: labels as they are, their order counts")
        case "contrastive":
            return _contrastive(data, positive_above)
        case "mse" | "cross-entropy":
            return _from_0_to_1(data, loss)
        case "softmax":
            return _softmax(data)
        case "triplet":
            return _triplet(data)
        case "info-nce":
            return _info_nce(data, positive_above, hard_negatives)


def midpoint(data: PairData) -> float:
    """Return the middle of the scale of scored pairs.

    A scale of 0 to 5 counts as 1 to 5 if no label lies below 1.

    Raises:
        DataError: if the scale is not known.
    """
    low, high = _scale(data, "Give --positive-above, or the scale with --label-range LOW HIGH")
    if (low, high) == (0, 5) and min(data.labels) >= 1:
        low = 1.0
    return (low + high) / 2


def _from_0_to_1(data: PairData, loss: str) -> Targets:
    if data.kind in ("binary", "triple"):
        return _pairs(data, data.labels, f"{loss}: labels 0 and 1 as they are")
    if data.kind == "nli":
        said = "contradiction 0, neutral 0.5, entailment 1"
        return _pairs(data, [label / 2 for label in data.labels], f"{loss}: {said}")
    low, high = _scale(data, "Give it with --label-range LOW HIGH")
    if (low, high) == (0, 1):
        return _pairs(data, data.labels, f"{loss}: labels 0 to 1 as they are")
    said = f"divided by {number_text(high)}" if low == 0 else f"from {number_text(low)} to {number_text(high)} on 0..1"
    return _pairs(data, [(label - low) / (high - low) for label in data.labels], f"{loss}: labels {said}")


def _contrastive(data: PairData, above: float | None) -> Targets:
    if data.kind == "nli":
        _refuse(data, "contrastive", "labels 0 and 1, or scores, which it cuts in two")
    if data.kind != "scored":
        return _pairs(data, data.labels, "contrastive: labels 0 and 1 as they are")
    cut = midpoint(data) if above is None else above
    labels = [float(label > cut) for label in data.labels]
    count = int(sum(labels))
    if count in (0, len(labels)):
        _refuse_cut(data, cut, count)
    return _pairs(data, labels, f"contrastive: {count} of {len(data)} pairs positive, labels above {number_text(cut)}")


def _softmax(data: PairData) -> Targets:
    if data.kind == "scored":
        _refuse(data, "softmax", "classes: NLI or binary labels")
    found = sorted(set(data.labels))
    labels = [found.index(label) for label in data.labels]
    names = [_CLASSES[label] if data.kind == "nli" else number_text(label) for label in found]
    made = _pairs(data, labels, f"softmax: {len(found)} classes ({', '.join(names)})")
    return Targets(made.columns, made.account, classes=len(found))


def _triplet(data: PairData) -> Targets:
    if data.kind == "scored":
        _refuse(data, "triplet", "NLI or binary labels, of which it forms triplets")
    formed = triplets(data)
    if not len(formed):
        raise DataError(
            f"{data.source}: a triplet needs a sentence with a positive and a negative partner, and none of "
            f"{len(data)} pairs has one. These fit without: cosent, mse, softmax, info-nce"
            f"{'' if data.kind == 'nli' else ', contrastive'}."
        )
    return Targets(formed.columns, f"triplet: {len(formed)} triplets, {_unused(formed, len(data))}")


def _info_nce(data: PairData, above: float | None, hard: bool) -> Targets:
    cut = _cut(data, above)
    formed = positives(data, above=cut, hard_negatives=hard)
    if not len(formed):
        _refuse_cut(data, cut, 0)
    named = "entailment pairs" if data.kind == "nli" else "positive pairs"
    if data.kind == "scored":
        named += f" (labels above {number_text(cut)})"
    with_negative = f", {formed.negatives} of them with a hard negative" if formed.negatives else ""
    return Targets(formed.columns, f"info-nce: {len(formed)} {named}{with_negative}; {_unused(formed, len(data))}")


def _cut(data: PairData, above: float | None) -> float:
    """Return the value above which a label of this kind is positive."""
    if data.kind == "scored":
        return midpoint(data) if above is None else above
    return 1.5 if data.kind == "nli" else 0.5


def _unused(formed: Tuples, pairs: int) -> str:
    return f"{formed.unused} of {pairs} pairs not used"


def _pairs(data: PairData, labels: list[Any], account: str) -> Targets:
    return Targets({"sentence1": data.sentences1, "sentence2": data.sentences2, "label": labels}, account)


def _scale(data: PairData, fix: str) -> tuple[float, float]:
    low, high = data.scale or (0.0, 0.0)
    if low == high or not low <= min(data.labels) <= max(data.labels) <= high:
        raise DataError(
            f"{data.source}: the scale of the labels must be known; they run from {number_text(min(data.labels))} to "
            f"{number_text(max(data.labels))}, and the scale is {data.scale or 'unknown'}. {fix}."
        )
    return low, high


def _refuse(data: PairData, loss: str, takes: str) -> NoReturn:
    raise DataError(
        f"{loss} takes {takes}; {data.source} has {data.kind} labels. These losses fit: {FITTING[data.kind]}."
    )


def _refuse_cut(data: PairData, cut: float, count: int) -> NoReturn:
    fix = "Give another --positive-above, or take cosent" if data.kind == "scored" else "Take cosent"
    raise DataError(
        f"{data.source}: {count} of {len(data)} pairs are positive (labels above {number_text(cut)}), so that the loss "
        f"has nothing to tell apart. {fix}."
    )
