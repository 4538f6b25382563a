"""Mine hard negatives: texts that a model puts near an anchor, and that are not its positives.

Many of the nearest texts are unlabelled positives (false negatives). The score of the anchor's positive tells where
they begin: candidates that come close to it, or exceed it, are left out.

Source: Moreira et al. 2024, "NV-Retriever: Improving text embedding models with effective hard-negative mining"
    (arXiv 2407.15831): ``absolute_margin`` is their TopK-MarginPos, ``relative_margin`` their TopK-PercPos, of which
    95 % was the best, ``range_min`` their TopK shifted by N, ``max_score`` their TopK-Abs. The names are those of
    ``mine_hard_negatives`` in sentence-transformers.
Differs: of several positives the one with the lowest score counts. A relative margin lowers a negative score too, so
    that a margin never admits more candidates.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from samesense.choices import Sampling, check_count, check_number
from samesense.data.tuples.completion import key_of
from samesense.data.tuples.data import TupleData
from samesense.encoder.cosine import row_cosines
from samesense.errors import ConfigError, DataError
from samesense.evaluation.task import checked_scores
from samesense.execution.progress import progress_bar
from samesense.files import map_array
from samesense.inference.encode import write_unit_vectors
from samesense.inference.models.model import Model
from samesense.inference.search.exact import Best, nearest
from samesense.inference.search.lists import blocks
from samesense.scratch import ScratchFolder
from samesense.types import Embeddings, Indices, Pair, Score, Scores

logger = logging.getLogger(__name__)

BLOCK_ANCHORS = 1024
"""Number of anchors whose candidates are in memory at once."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Rules by which texts near an anchor become its negatives.

    Attributes:
        num_negatives: most negatives of an anchor.
        range_min: number of nearest texts that are skipped.
        range_max: number of nearest texts that are considered, skipped ones included.
        absolute_margin: least difference of a negative's score from the positive's.
        relative_margin: the same as a fraction of the positive's score: 0.05 admits scores up to 95 % of it.
        max_score: highest score of a negative.
        min_score: lowest score of a negative.
        sampling: take the nearest eligible texts (``"top"``), or a random sample of them (``"random"``).
        seed: seed of ``"random"``.
    """

    num_negatives: int = 5
    range_min: int = 0
    range_max: int = 100
    absolute_margin: float | None = None
    relative_margin: float | None = 0.05
    max_score: float | None = None
    min_score: float | None = None
    sampling: Sampling = "top"
    seed: int = 0

    def __post_init__(self) -> None:
        check_count("num_negatives", self.num_negatives)
        if not 0 <= self.range_min < self.range_max:
            raise ConfigError(
                f"The nearest from `range_min` to `range_max` are considered, 0 or more and rising; received "
                f"{self.range_min} and {self.range_max}."
            )
        for name in ("absolute_margin", "relative_margin", "max_score", "min_score"):
            if (value := getattr(self, name)) is not None:
                check_number(name, value)
        for name, margin in (("absolute_margin", self.absolute_margin), ("relative_margin", self.relative_margin)):
            if margin is not None and margin < 0:
                raise ConfigError(f"`{name}` is 0 or more; received {margin:g}. Example: 0.05")
        if self.min_score is not None and self.max_score is not None and self.min_score > self.max_score:
            raise ConfigError(
                f"`min_score` is not above `max_score`; received {self.min_score:g} and {self.max_score:g}."
            )

    def ceiling(self, positives: Scores) -> float:
        """Return the highest score that a negative may have, for positives with these scores ``(positives,)``."""
        lowest = float(positives.min())
        tops = [np.inf if self.max_score is None else self.max_score]
        if self.absolute_margin is not None:
            tops.append(lowest - self.absolute_margin)
        if self.relative_margin is not None:
            # The absolute value: the margin lowers a negative score as well.
            tops.append(lowest - self.relative_margin * abs(lowest))
        return min(tops)

    def chosen(self, scores: Scores, ceiling: float, row: int) -> Indices:
        """Return the indices of the negatives among candidates with these scores ``(candidates,)``, highest first."""
        # Stable, so that of equal scores the nearer text comes first.
        order = np.argsort(-scores, kind="stable")
        floor = -np.inf if self.min_score is None else self.min_score
        eligible = order[(scores[order] <= ceiling) & (scores[order] >= floor)]
        if self.sampling == "random" and len(eligible) > self.num_negatives:
            # Seeded by the row, so that an anchor draws the same beside any others.
            drawn = np.random.default_rng((self.seed, row)).permutation(len(eligible))[: self.num_negatives]
            # Back in the order of the scores.
            eligible = eligible[np.sort(drawn)]
        return eligible[: self.num_negatives]


def mine_negatives(
    data: TupleData,
    model: Model,
    choice: Choice,
    *,
    corpus: Iterable[str] = (),
    score: Score | None = None,
) -> TupleData:
    """Return the data with mined negatives added to the existing ones of each anchor.

    Candidates are the positives and negatives of all anchors, and the texts of a corpus; texts that differ only in case
    and spaces count once. A candidate is never a negative of itself or of one of its positives. An anchor without a
    positive gets none. Vectors are in a temporary file, so that memory grows with the texts only; the search is exact.

    Args:
        data: anchors with positives.
        model: retrieves the candidates.
        choice: rules by which candidates become negatives.
        corpus: more candidates.
        score: scores pairs for margins and limits, such as a cross-encoder; by default the model's cosine.

    Raises:
        DataError: if there are no candidates, or the anchors are sentences with classes.
        ModelError: if a vector or a score cannot be used.
    """
    if data.classes is not None:
        raise DataError(f"{data.source}: sentences with classes have those of other classes as negatives already.")
    pool = _Pool(data, corpus)
    if not pool.candidates:
        raise DataError(f"{data.source}: there are no texts to be negatives. Give anchors with positives, or a corpus.")
    if choice.range_min >= pool.candidates:
        raise DataError(
            f"`range_min` skips the nearest {choice.range_min} texts, and there are {pool.candidates} candidates. "
            "Lower it, or give a larger corpus."
        )
    mined_rows: list[list[str]] = [[] for _ in data.anchors]
    near_positives = 0
    with ScratchFolder() as folder:
        path = Path(folder) / "vectors.bin"
        dim = write_unit_vectors(model, pool.texts, path)
        vectors: Embeddings = map_array(path, np.float32, len(pool.texts), dim)
        with progress_bar("negatives", "anchor", len(data)) as bar:
            for start in range(0, len(data), BLOCK_ANCHORS):
                rows = range(start, min(len(data), start + BLOCK_ANCHORS))
                for row, texts, scores in _scored(data, rows, pool, vectors, choice, score):
                    count = len(data.positives[row])
                    ceiling = choice.ceiling(scores[:count])
                    near_positives += int((scores[count:] > ceiling).sum())
                    mined_rows[row] = [texts[count + index] for index in choice.chosen(scores[count:], ceiling, row)]
                bar.update(len(rows))
    negatives = [[*existing, *mined] for existing, mined in zip(data.negatives, mined_rows, strict=True)]
    _log_anchors_without_negatives(data, negatives)
    return replace(data, negatives=negatives, left_out={**data.left_out, "neighbours too near": near_positives})


def _log_anchors_without_negatives(data: TupleData, negatives: Sequence[Sequence[str]]) -> None:
    """Log how many anchors with a positive have no negative at the end; a warning if these are all."""
    paired = [row_negatives for row_negatives, positives in zip(negatives, data.positives, strict=True) if positives]
    without = sum(not row_negatives for row_negatives in paired)
    if without:
        level = logging.WARNING if without == len(paired) else logging.INFO
        logger.log(
            level,
            f"{data.name}: {without:,} of {len(paired):,} anchors have no negative, as all candidates are positives of "
            "theirs, were skipped, or are beyond a margin or limit. Lower `range_min` or the margins, change the "
            "limits, or give a larger `corpus`.",
        )


class _Pool:
    """All texts, candidates first, and which candidates are excluded for an anchor."""

    def __init__(self, data: TupleData, corpus: Iterable[str]) -> None:
        self._key = key_of("same")
        labelled = (text for side in (data.positives, data.negatives) for group in side for text in group)
        first: dict[int, str] = {}
        for texts in (labelled, corpus):
            for text in texts:
                first.setdefault(self._key(text), text)
        self.candidates = len(first)
        remaining = (text for rows in ([data.anchors], data.positives) for group in rows for text in group)
        # Candidates come first, so that their vectors are one block of the file.
        row_of = {text: row for row, text in enumerate(dict.fromkeys([*first.values(), *remaining]))}
        self.texts = list(row_of)
        self._row_of = row_of
        self._candidate_row = {key: row for row, key in enumerate(first)}
        self._positives: dict[int, set[int]] = {}
        for anchor, positives in zip(data.anchors, data.positives, strict=True):
            for text in positives:
                # In both directions: an anchor is no negative of its positive either.
                self._add_positive(anchor, text)
                self._add_positive(text, anchor)

    def _add_positive(self, text: str, positive: str) -> None:
        row = self._candidate_row.get(self._key(positive))
        if row is not None:
            self._positives.setdefault(self._key(text), set()).add(row)

    def rows(self, texts: Sequence[str]) -> list[int]:
        """Return the rows of the vectors of texts."""
        return [self._row_of[text] for text in texts]

    def barred(self, anchor: str, negatives: Sequence[str]) -> set[int]:
        """Return the candidates excluded for an anchor: itself, its positives, and its existing negatives."""
        keys = map(self._key, [anchor, *negatives])
        excluded = {self._candidate_row[key] for key in keys if key in self._candidate_row}
        return excluded | self._positives.get(self._key(anchor), set())


Scored = tuple[int, list[str], Scores]
"""Row of an anchor, its positives followed by its candidates (nearest first), and their scores with the anchor."""


def _scored(
    data: TupleData, block: range, pool: _Pool, vectors: Embeddings, choice: Choice, score: Score | None
) -> list[Scored]:
    """Return positives and candidates with their scores, for the anchors of a block that have a positive."""
    rows = [row for row in block if data.positives[row]]
    candidates = [
        _by_cosine(row, data, [*pool.rows(data.positives[row]), *ids], pool, vectors)
        for row, ids in zip(rows, _nearest(data, rows, pool, vectors, choice), strict=True)
    ]
    if score is None or not candidates:
        return candidates
    pairs: list[Pair] = [(data.anchors[row], text) for row, texts, _ in candidates for text in texts]
    score_splits = np.split(
        checked_scores(score(pairs), pairs), np.cumsum([len(texts) for _, texts, _ in candidates])[:-1]
    )
    return [(row, texts, split) for (row, texts, _), split in zip(candidates, score_splits, strict=True)]


def _by_cosine(row: int, data: TupleData, text_rows: list[int], pool: _Pool, vectors: Embeddings) -> Scored:
    """Return an anchor with the texts of these rows and their cosines."""
    (anchor_row,) = pool.rows([data.anchors[row]])
    scores = row_cosines(vectors[anchor_row : anchor_row + 1], vectors[text_rows])
    return row, [pool.texts[text_row] for text_row in text_rows], scores


def _nearest(
    data: TupleData, rows: Sequence[int], pool: _Pool, vectors: Embeddings, choice: Choice
) -> Iterator[list[int]]:
    """Yield the considered candidates of each anchor, the nearest first."""
    barred = [pool.barred(data.anchors[row], data.negatives[row]) for row in rows]
    # More are searched by as many as are excluded, so that range_max remain.
    count = choice.range_max + max(map(len, barred), default=0)
    best = [Best(choice.range_max + len(excluded)) for excluded in barred]
    queries = vectors[pool.rows([data.anchors[row] for row in rows])]
    nearest(queries, lambda: blocks(vectors[: pool.candidates]), best, count)
    for closest, excluded in zip(best, barred, strict=True):
        ids = [index for index in closest.ids.tolist() if index not in excluded]
        yield ids[choice.range_min : choice.range_max]
