"""Turns labelled pairs into the inputs of a loss: label values, classes, triplets or positive pairs.

:mod:`samesense.losses.registry` lists which loss uses which of these functions.

Source: Huang et al. 2024 (TASLP), sections III-A and V, and the scaling in its authors' code (scores divided by 5, NLI
    labels by 2, scores above 2.5 or, on a scale from 1, above 3 positive).
Differs: a scale other than 0 to 5 is mapped to 0..1 linearly. The paper does not say how triplets and the pairs for
    InfoNCE are formed; see :mod:`samesense.data.pairs.triplets`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from samesense.data.columns.labels import has_one_label
from samesense.data.conventions.numbers import number_text
from samesense.data.mapped import collect_numbers
from samesense.data.pairs.bins import classify_scores
from samesense.data.pairs.data import PairData
from samesense.data.pairs.keys import Groups, group_equal, text_keys
from samesense.data.pairs.triplets import FormedRows, form_positive_pairs, form_triplets
from samesense.errors import DataError


@dataclass(frozen=True)
class Targets:
    """Training data in the form that a loss takes.

    Attributes:
        columns: text columns in the order that the loss takes them, then ``label`` if it takes one; all of the same
            length. Ready for ``datasets.Dataset.from_dict``.
        summary: one line of text: how labels were read, what was formed and what was left out.
        settings: settings of the loss module that depend on the data, such as the number of classes.
        groups: group number of each row, if the loss only compares rows of one group.
    """

    columns: Mapping[str, Sequence[Any]]
    summary: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    groups: Groups | None = None

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def trainer_columns(self) -> Mapping[str, Sequence[Any]]:
        """Return the columns for the trainer, in which the label of a row with a group is ``[label, group]``."""
        if self.groups is None:
            return self.columns
        rows = np.column_stack([np.asarray(self.columns["label"], np.float64), self.groups])
        return {**self.columns, "label": rows.tolist()}


MOST_GROUPS = 2**24
"""Groups are numbered in the labels' tensor, whose float32 holds no larger whole numbers."""

FEWEST_COMPARED = 0.1
"""Share of the pairs that must have another label in their group; with fewer, the data hold no groups."""


def scale_midpoint(data: PairData) -> float:
    """Return the middle of the scale of scored pairs; DataError if the scale is not known.

    A scale of 0 to 5 counts as 1 to 5 if no label lies below 1.
    """
    low, high = data.known_scale("Give positive_above, or the scale as label_range LOW HIGH")
    # Sets rated from 1 to 5 are on the scale of STS by inference.
    if (low, high) == (0, 5) and min(data.labels) >= 1:
        low = 1.0
    return (low + high) / 2


def labels_in_order(data: PairData) -> Targets:
    """Return the pairs with their labels unchanged; DataError if all labels are equal, so that they have no order."""
    if has_one_label(data.labels):
        raise DataError(
            f"CoSENT compares pairs with different labels; all {len(data)} pairs of {data.source} to be trained on "
            f"have the label {number_text(data.labels[0])}. Give more pairs of other labels; where pairs are held "
            "out, give `dev` and `test` FILE instead."
        )
    return _pairs(data, data.labels, "labels as they are, their order counts")


def labels_as_they_are(data: PairData, use: str = "") -> Targets:
    """Return the pairs with their labels unchanged; the summary also says what ``use`` is made of them."""
    return _pairs(data, data.labels, f"labels as they are{use}")


def grouped_by_first_text(data: PairData, targets: Targets, *, fix: str) -> Targets:
    """Return targets, one row for each pair, that are grouped by the first texts of the pairs.

    DataError, with ``fix`` as part of its advice, if fewer than :data:`FEWEST_COMPARED` of the pairs have a pair with
    the same first text and another label.
    """
    groups = group_equal(text_keys(data.sentences1))
    sizes = np.bincount(groups)
    mixed = _have_two_labels(data, groups)
    compared = int(sizes[mixed].sum())
    if compared < FEWEST_COMPARED * len(data):
        raise DataError(
            f"{data.source}: only pairs with the same first text are compared, and {compared} of {len(data)} pairs "
            "have one with another label. Give several labelled candidates for each query, the query as first text "
            f"of each pair. {fix}."
        )
    if len(sizes) > MOST_GROUPS:
        raise DataError(
            f"{data.source}: pairs are put into at most {MOST_GROUPS:,} groups; received {len(sizes):,} different "
            "first texts. Give fewer pairs."
        )
    summary = (
        f"{targets.summary}; {len(sizes):,} groups of one first text with {sizes.min()} to {sizes.max()} pairs, "
        f"{int(mixed.sum()):,} of them with two labels"
    )
    return replace(targets, summary=summary, groups=groups)


def count_compared_pairs(data: PairData) -> int:
    """Return the number of pairs that have a pair with the same first text and another label."""
    groups = group_equal(text_keys(data.sentences1))
    return int(np.bincount(groups)[_have_two_labels(data, groups)].sum())


def _have_two_labels(data: PairData, groups: Groups) -> npt.NDArray[np.bool_]:
    """Return whether the pairs of each group have two labels, ``(groups,)``."""
    labels = np.asarray(data.labels, np.float64)
    count = int(groups.max()) + 1
    lowest = np.full(count, np.inf)
    highest = np.full(count, -np.inf)
    np.minimum.at(lowest, groups, labels)
    np.maximum.at(highest, groups, labels)
    return lowest < highest


def labels_from_0_to_1(data: PairData) -> Targets:
    """Return the pairs with labels from 0 to 1: scores by their scale, contradiction 0, neutral 0.5, entailment 1.

    DataError if the scale of scores is not known.
    """
    if not data.graded:
        return _pairs(data, data.labels, "labels 0 and 1 as they are")
    if data.kind == "nli":
        neutral = "neutral 0.5, " if 1.0 in data.labels else ""
        mapping = f"{data.zero_class} 0, {neutral}entailment 1"
        return _pairs(data, (label / 2 for label in data.labels), mapping)
    low, high = data.known_scale("Give it as label_range LOW HIGH")
    if (low, high) == (0, 1):
        return _pairs(data, data.labels, "labels 0 to 1 as they are")
    if low == 0:
        mapping = f"divided by {number_text(high)}"
    else:
        mapping = f"from {number_text(low)} to {number_text(high)} on 0..1"
    return _pairs(data, ((label - low) / (high - low) for label in data.labels), f"labels {mapping}")


def labels_cut_in_two(data: PairData, *, positive_above: float | None = None) -> Targets:
    """Return the pairs with labels 0 and 1: scores above a threshold, by default the middle of their scale, are 1.

    DataError if all labels are on one side of the threshold.
    """
    if data.kind != "scored":
        return _pairs(data, data.labels, "labels 0 and 1 as they are")
    threshold = positive_threshold(data, positive_above)
    count = sum(label > threshold for label in data.labels)
    # With one class, nothing is learnt from the other term.
    if count in (0, len(data)):
        raise _cut_error(data, threshold, count)
    labels = (float(label > threshold) for label in data.labels)
    return _pairs(data, labels, f"{count} of {len(data)} pairs positive, labels above {number_text(threshold)}")


def labels_as_classes(data: PairData, *, bins: int | tuple[float, ...] | None = None) -> Targets:
    """Return the pairs with class numbers from 0 as labels; every class has an example.

    Scores are binned into classes by ``bins``; see :func:`samesense.data.pairs.bins.classify_scores`.
    """
    if data.kind == "scored":
        scores = classify_scores(data, bins)
        targets = _pairs(data, scores.classes.tolist(), scores.summary, whole=True)
        return Targets(targets.columns, targets.summary, {"classes": len(scores.names)})
    distinct = sorted(set(data.labels))
    labels = (distinct.index(label) for label in data.labels)
    names = list(map(data.label_name, distinct))
    unused = "" if bins is None else "; bins are for scores, and not used"
    targets = _pairs(data, labels, f"{len(distinct)} classes ({', '.join(names)}){unused}", whole=True)
    return Targets(targets.columns, targets.summary, {"classes": len(distinct)})


def formed_triplets(data: PairData) -> Targets:
    """Return anchors, positives and negatives; see :func:`samesense.data.pairs.triplets.form_triplets`.

    DataError if no sentence has both a positive and a negative partner.
    """
    formed = form_triplets(data)
    if not len(formed):
        raise DataError(
            f"{data.source}: a triplet needs a sentence with a positive and a negative partner, and none of "
            f"{len(data)} pairs has one. Take cosent, which compares pairs."
        )
    return Targets(formed.columns, f"{len(formed)} triplets, {_unused(formed, len(data))}")


def positive_pairs(data: PairData, *, positive_above: float | None = None, hard_negatives: bool = True) -> Targets:
    """Return positive pairs, with ``hard_negatives`` also a hard negative for anchors that have one.

    Scores above ``positive_above``, by default the middle of their scale, are positive. DataError if no pair is.
    """
    threshold = positive_threshold(data, positive_above)
    formed = form_positive_pairs(data, above=threshold, hard_negatives=hard_negatives)
    if not len(formed):
        raise _cut_error(data, threshold, 0)
    description = "entailment pairs" if data.kind == "nli" else "positive pairs"
    if data.kind == "scored":
        description += f" (labels above {number_text(threshold)})"
    with_negative = f", {formed.negatives} of them with a hard negative" if formed.negatives else ""
    summary = f"{len(formed)} {description}{with_negative}; {_unused(formed, len(data))}"
    options = {}
    # Labels are there only if not every pair has a negative.
    if "label" in formed.columns:
        options["some_negatives"] = True
    return Targets(formed.columns, summary, options)


def positive_threshold(data: PairData, above: float | None = None) -> float:
    """Return the value above which a label is positive: ``above`` for scores, by default the middle of their scale."""
    if data.kind == "scored":
        if above is not None:
            return above
        return scale_midpoint(data)
    if data.kind == "nli":
        return 1.5
    return 0.5


def _unused(formed: FormedRows, pairs: int) -> str:
    return f"{formed.unused} of {pairs} pairs not used"


def _pairs(data: PairData, labels: Iterable[float], summary: str, *, whole: bool = False) -> Targets:
    # Labels as they are need no copy.
    label_column: Sequence[Any] = data.labels
    if labels is not data.labels:
        label_column = collect_numbers(labels, beside=data.sentences1, whole=whole)
    return Targets({"sentence1": data.sentences1, "sentence2": data.sentences2, "label": label_column}, summary)


def _cut_error(data: PairData, threshold: float, count: int) -> DataError:
    fix = "Give another positive_above, or take cosent" if data.kind == "scored" else "Take cosent"
    return DataError(
        f"{data.source}: {count} of {len(data)} pairs are positive (labels above {number_text(threshold)}), so that "
        f"the loss has nothing to tell apart. {fix}."
    )
