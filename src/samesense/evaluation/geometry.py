"""Geometry: how a model's embeddings are distributed on the unit sphere."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from samesense.data import PairData
from samesense.errors import DataError
from samesense.evaluation.suite import Suite
from samesense.evaluation.task import Task, join_clauses, timed, unit_embeddings
from samesense.metrics import alignment, anisotropy, effective_rank, uniformity
from samesense.types import Scorer, TaskResult

POSITIVE_ABOVE = 4.0
"""Pairs with a label above this, on the published scale, are positives."""

PUBLISHED_SCALE = 5.0
"""Upper end of the scale of :data:`POSITIVE_ABOVE`, which starts at 0."""


class GeometryTask(Task):
    """Alignment of positive pairs; uniformity, anisotropy and effective rank of all distinct sentences.

    Every embedding is first scaled to unit length, a step that is often forgotten. Positives are the pairs with a label
    above 4 on the scale of 0 to 5. On another scale the threshold is at the same fraction, 4/5, so that of labels 0
    and 1 the 1 is positive. Published figures are on STS-B dev (RankCSE) or on all of STS-B (SimCSE).

    Source: Gao et al. (2021), SimCSE, section 7; Wang and Isola (2020) for the two measures.
    Differs: a repeated sentence counts once; the papers do not say what they do.
    """

    suite = "geometry"
    embeds = True

    def __init__(self, data: PairData, *, dataset: str = "", note: str = "") -> None:
        """Choose the positive pairs, and the sentences of the other measures.

        DataError if the scale of the labels is unknown, or there is no positive.
        """
        if data.scale is None:
            raise DataError(
                f"{data.source}: positives are chosen by a cut on the scale of the labels, which is unknown. "
                "Give it when reading: label_range=(0, 5)."
            )
        low, high = data.scale
        threshold = low + POSITIVE_ABOVE * (high - low) / PUBLISHED_SCALE
        self.dataset = dataset or data.name
        distinct = dict.fromkeys(text for pair in data.pairs() for text in pair)
        self._row_of = {text: row for row, text in enumerate(distinct)}
        self._positives = [
            (self._row_of[first], self._row_of[second])
            for (first, second), label in zip(data.pairs(), data.labels, strict=True)
            if label > threshold
        ]
        if not self._positives:
            raise DataError(
                f"{data.source}: alignment needs positive pairs, and no label of {len(data)} is above {threshold:g} on "
                f"the scale of {low:g} to {high:g}. Give data with such pairs."
            )
        description = f"{len(self._positives)} positives: label above {threshold:g} on {low:g}-{high:g}"
        self.note = join_clauses(note, "unit length", description)

    def texts(self) -> Iterable[str]:
        """Return the distinct sentences, in order of first appearance."""
        return self._row_of.keys()

    def evaluate(self, candidate: Scorer) -> TaskResult:
        """Return ``alignment``, ``uniformity``, ``anisotropy`` and ``effective_rank``; there is no evidence."""
        self.check_embeds(candidate)
        texts = list(self._row_of)
        rows, seconds = timed(candidate, texts, lambda: unit_embeddings(candidate, texts))
        build = self.builder(candidate, seconds)
        left, right = np.array(self._positives).T
        n = len(texts)
        population = f"population: all {n} distinct sentences"
        return TaskResult(
            [
                build.result("alignment", alignment(rows[left], rows[right]), len(left), "mean squared distance"),
                build.result("uniformity", uniformity(rows), n, f"{population}; t = 2, every pair of two of them"),
                build.result(
                    "anisotropy", anisotropy(rows), n, f"{population}; mean cosine of every pair of two of them"
                ),
                build.result("effective_rank", effective_rank(rows), n, f"{population}; centred"),
            ]
        )


SUITE = Suite(
    task=GeometryTask,
    data="STS-B dev, also the Chinese; any labelled pairs",
    figures="alignment, uniformity, anisotropy, effective rank",
    metrics=("alignment", "uniformity", "anisotropy", "effective_rank"),
    one_table=True,
    takes_pairs=True,
    split="dev",
)
