"""How many batches of a run teach, by its data and settings: said before the first step, refused where none does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from samesense.data.pairs.data import PairData
from samesense.data.pairs.keys import text_keys
from samesense.data.pairs.targets import Targets
from samesense.data.sentences import Sentences
from samesense.data.tuples.completion import normalize_text
from samesense.data.tuples.data import TupleData
from samesense.errors import DataError
from samesense.execution.ranks import world_size
from samesense.losses.lessons import IN_BATCH, OF_PAIRS, OF_TRIPLETS, Batch, Lesson, drawn_batches
from samesense.losses.registry import PAIR_LOSSES
from samesense.recipes.sections.data import SectionsSettings, SectionTriplets
from samesense.recipes.supmpn.settings import SupmpnSettings
from samesense.recipes.unsupervised.settings import RankcseSettings, SimcseSettings
from samesense.types import Indices

WORTH_SAYING = 0.01
"""Share of batches that teach nothing from which on it is reported."""

MOST_TUPLES = 5_000
"""Anchors of an epoch whose tuples are made to be looked at."""


@dataclass(frozen=True)
class Lessons:
    """How many of some batches teach."""

    batches: int
    teaching: int
    whole: bool  # whether they are an epoch, and not a part of it
    lesson: Lesson
    advice: str

    def lines(self, source: str) -> list[str]:
        """Return in words what share teaches nothing, if it is worth saying; DataError if no batch teaches."""
        lacking = 1 - self.teaching / max(1, self.batches)
        if lacking < WORTH_SAYING:
            return []
        lesson = self.lesson
        if self.teaching == 0 and self.whole:
            raise DataError(
                f"{source}: no batch of this run would teach anything: all {self.batches:,} {lesson.lacking}. "
                f"To mend it: {self.advice}."
            )
        prefix = "warning: " if lacking >= 0.5 else ""
        scope = "" if self.whole else f" of {self.batches:,} looked at"
        return [f"{prefix}batches: {lacking:.1%}{scope} {lesson.lacking} and teach nothing; {self.advice}"]


def counted(
    batches: Iterable[Indices], teaches: Callable[[Indices], bool], rows: int, lesson: Lesson, advice: str = ""
) -> Lessons:
    """Return how many batches teach; ``advice`` is the lesson's, if none is given."""
    number = 0
    teaching = 0
    held = 0
    for batch in batches:
        number += 1
        held += len(batch)
        teaching += teaches(batch)
    return Lessons(number, teaching, held >= rows, lesson, advice or lesson.fix)


def of_targets(formed: Targets, lesson: Lesson, settings: Any, batches: str = "random") -> Lessons:
    """Return how many batches of columns of texts and labels teach."""
    columns = [values for name, values in formed.columns.items() if name != "label"]
    texts = np.stack([text_keys(map(normalize_text, values)) for values in columns])
    label = formed.columns.get("label")
    labels = None if label is None else np.asarray(label, dtype=np.float64)
    groups = formed.groups
    if groups is not None:
        lesson = lesson.within_groups()
    options = {**dict(settings), **formed.settings}

    def teaches(rows: Indices) -> bool:
        return lesson.teaches(
            Batch(
                texts[:, rows],
                None if labels is None else labels[rows],
                options,
                None if groups is None else groups[rows],
            )
        )

    size = settings.batch_size * world_size()
    drawn = drawn_batches(len(formed), size, settings.seed, batches, texts, labels, groups)
    rows = len(formed)
    if batches == "label-aware":  # which leave out the examples that do not fill a batch
        rows = rows // size * size
    advice = lesson.advice(settings.batch_size, batches, options.get("margin", 0.0))
    lessons = counted(drawn, teaches, rows, lesson, advice)
    # What is wrong with such data is not that a batch lacks another label.
    if not lessons.teaching and labels is not None and len(texts) == 2 and (texts[0] == texts[1]).all():
        return replace(lessons, lesson=OF_PAIRS, advice=OF_PAIRS.fix)
    return lessons


def of_pairs(train: PairData, settings: Any) -> list[str]:
    """Return what is to be said of the batches of labelled pairs."""
    formed = settings.targets(train)
    lines = of_targets(formed, settings.spec.lesson, settings, settings.batches).lines(train.source)
    # The recipe of CoSENT reports the exact share itself.
    if settings.loss == "cosent" and formed.groups is None:
        return []
    return lines


def of_views(train: Sentences | PairData, settings: SimcseSettings) -> list[str]:
    """Return what is to be said of the batches of SimCSE; masked words teach in any batch."""
    if settings.mlm_weight or isinstance(train, PairData) != settings.supervised:  # which the method refuses itself
        return []
    if isinstance(train, PairData):
        formed = PAIR_LOSSES.targets(train, "triplet")
    else:
        formed = Targets({"sentence": train.texts}, "")
    lesson = IN_BATCH if isinstance(train, PairData) else _OF_SENTENCES
    return of_targets(formed, lesson, settings, settings.batches).lines(train.source)


def of_rankings(train: Sentences, settings: RankcseSettings) -> list[str]:
    """Return what is to be said of the batches of RankCSE, and of distillation."""
    if getattr(settings, "regress", 0.0):  # each sentence teaches by its teachers' vectors
        return []
    if settings.contrast or settings.beta:
        fewest = 2
    else:
        # A ranking orders two others, or one other and the sentence itself.
        fewest = 3 - bool(_with_itself(settings))
    lesson = Lesson(
        lambda batch: len(np.unique(batch.texts[0])) >= fewest,
        f"have fewer than {fewest} different sentences",
        "raise batch_size, or leave out repeated sentences",
    )
    return of_targets(Targets({"sentence": train.texts}, ""), lesson, settings).lines(train.source)


def _with_itself(settings: RankcseSettings) -> bool:
    include_diagonal = settings.include_diagonal
    if include_diagonal is not None:
        return include_diagonal
    return settings.rank == "listmle"


def of_sections(train: SectionTriplets, settings: SectionsSettings) -> list[str]:
    """Return what is to be said of the batches of section triplets."""
    return of_targets(Targets(train.columns(), ""), OF_TRIPLETS, settings).lines(train.source)


def of_tuples(train: TupleData, settings: SupmpnSettings) -> list[str]:
    """Return what is to be said of the batches of anchors with positives and negatives."""
    settings = settings.for_data(train)
    if settings.spec.targets is not None:
        return of_targets(settings.spec.targets(train), settings.spec.lesson, settings).lines(train.source)
    rows = settings.usable(train)
    complete = settings.completion(rows)
    key = complete.key()
    size = settings.batch_size * world_size()
    # One whole batch at least, however large it is.
    order = np.random.default_rng(settings.seed).permutation(len(rows))[: max(MOST_TUPLES, size)]
    teaches = _TEACHES.get(settings.loss, _has_rival)
    if getattr(settings, "symmetric", False) and settings.false_negative_filter == "off":
        teaches = _has_rival_in_either_direction

    def tuple_keys(row: int) -> _Tuple:
        near, far = complete(row)
        row_keys = {key(rows.anchors[row]), *map(key, rows.positives[row])}
        return _Tuple(key(rows.anchors[row]), tuple(map(key, near)), tuple(map(key, far)), frozenset(row_keys))

    drawn = (order[start : start + size] for start in range(0, len(order), size))
    lessons = counted(drawn, lambda batch: teaches([tuple_keys(row) for row in batch.tolist()]), len(rows), IN_BATCH)
    return lessons.lines(train.source)


@dataclass(frozen=True)
class _Tuple:
    """Keys of the texts of a tuple, and of all that are no negatives of its anchor."""

    anchor: int
    positives: tuple[int, ...]
    negatives: tuple[int, ...]
    non_negatives: frozenset[int]


def _has_rival(batch: list[_Tuple]) -> bool:
    """Return whether any anchor has a candidate that is neither itself nor a positive of it."""
    candidates = {key for row in batch for key in (*row.positives, *row.negatives)}
    return any(not candidates <= row.non_negatives for row in batch)


def _has_rival_in_either_direction(batch: list[_Tuple]) -> bool:
    """Return the same, or whether a positive differs from another anchor, which no filter leaves out."""
    return _has_rival(batch) or len({row.anchor for row in batch}) > 1


def _has_triplet(batch: list[_Tuple]) -> bool:
    return any(near != far for tuple_ in batch for near in tuple_.positives for far in tuple_.negatives)


_TEACHES: dict[str, Callable[[list[_Tuple]], bool]] = {"triplet": _has_triplet}
"""Of the losses of tuples for which something else must be there than a text that is no positive."""

_OF_SENTENCES = Lesson(
    IN_BATCH.teaches, "have one sentence only", "raise batch_size, which gives every sentence others to differ from"
)
