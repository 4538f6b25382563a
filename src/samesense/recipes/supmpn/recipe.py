"""SupMPN, and the losses it is compared with: from anchors with positives and negatives to an evaluated, usable model.

    samesense train nli.jsonl.gz --method supmpn --dev dev.tsv --output runs/supmpn
    samesense train lists.jsonl --config supmpn --dev dev.tsv --output runs/paper

Source: Dehghan and Amasyali 2022 (SupMPN); settings in ``configs/supmpn.toml``, which says where they come from.
Differs: see :class:`samesense.data.tuples.completion.Completion` for what the paper leaves open; a negative that is the
    same text as the anchor or one of its positives does not count, unless ``false_negative_filter`` is off.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from sentence_transformers import SentenceTransformer

from samesense.data.pairs.targets import Targets
from samesense.data.tuples.augment import Augment, augment_positives, example_lines
from samesense.data.tuples.augmentations import augment_named
from samesense.data.tuples.data import TupleData
from samesense.execution.ranks import world_size
from samesense.recipes.run.job import Job, TrainingInputs
from samesense.recipes.supmpn.guide import Guide
from samesense.recipes.supmpn.settings import SupmpnSettings
from samesense.recipes.unsupervised.views import set_dropout
from samesense.training.dataset import as_dataset
from samesense.training.texts import LogCut, TrainingTexts
from samesense.training.tuple_batches import LogSavings, SetEpoch, TupleBatches, has_dropout

logger = logging.getLogger(__name__)


def prepare(model: SentenceTransformer, job: Job[TupleData, SupmpnSettings]) -> TrainingInputs:
    """Return what a model is trained on; its dropout is set."""
    train = job.data
    settings = job.settings
    # First, as `has_dropout` below looks at the model.
    if settings.dropout is not None:
        set_dropout(model, settings.dropout)
    if settings.spec.targets is not None:
        formed = settings.spec.targets(train)
        joined = settings.batch_size * world_size()
        each = f"sentences: {2 * joined} a step ({joined} pairs)"
        return TrainingInputs(
            dataset=as_dataset(formed.columns),
            loss=lambda: settings.spec.build(model, settings, formed),
            summary=[*train.summary(), formed.summary, each],
        )
    rows = settings.usable(train)
    complete = settings.completion(rows)
    complete.check()
    guide = Guide(rows, settings, job.output) if settings.guided else None
    texts = TrainingTexts(model, settings.max_seq_length)
    batches = TupleBatches(
        rows.anchors,
        complete,
        texts,
        places=settings.places,
        # A guide finds the vector of a text by its key.
        key=complete.key() if guide is None else guide.row,
        positives=rows.positives,
        once=settings.encode_once,
        apart=has_dropout(model),
    )

    # anchors by their row numbers; TupleBatches makes the tuples
    options: dict[str, Any] = {"positives": settings.places[0]}
    if guide is not None:
        options["guide"] = guide.vectors
    formed = Targets({"anchor": rows.anchors, "label": list(range(len(rows)))}, "", options)
    return TrainingInputs(
        dataset=as_dataset(formed.columns),
        loss=lambda: settings.spec.build(model, settings, formed),
        summary=[*train.summary(), *_formed(rows, len(train), settings), *_warnings(rows, settings, batches.apart)],
        collator=batches,
        callbacks=[SetEpoch(batches), LogSavings(batches), LogCut(texts)],
        before_training=_preparation(batches, rows, settings, guide),
    )


def _preparation(
    batches: TupleBatches, rows: TupleData, settings: SupmpnSettings, guide: Guide | None
) -> Callable[[], None] | None:
    """Return what is computed before the first step: the vectors of the guide, or further positives."""
    if guide is not None:
        return guide.encode
    augment = augment_named(
        settings.augment, fraction=settings.augment_share, seed=settings.seed, paraphraser=settings.paraphraser
    )
    return None if augment is None else partial(_augment, batches, rows, augment, settings)


def _augment(batches: TupleBatches, rows: TupleData, augment: Augment, settings: SupmpnSettings) -> None:
    """Show what the augmentation does, and have the tuples made with what it gives."""
    for line in ("augmented positives, such as:", *example_lines(rows, augment)):
        logger.info(line)
    augmented = augment_positives(rows, augment, settings.places[0])
    # The trainer has the collator by now, so that its parts are replaced.
    batches.complete = settings.completion(augmented)
    batches.positives = augmented.positives
    batches.key = batches.complete.key()


def _formed(rows: TupleData, anchors: int, settings: SupmpnSettings) -> list[str]:
    """Return what tuples are made of, and how many sentences a step encodes."""
    side_sizes = settings.places
    lines = []
    if len(rows) < anchors:
        hint = "; tuples padded would use them" if settings.several else ""
        lines.append(f"{anchors - len(rows):,} anchors without {settings.needed} are not used{hint}")
    shares = [
        1 - sum(min(len(texts), most) for texts in side) / max(1, most * len(rows))
        for side, most in zip((rows.positives, rows.negatives), side_sizes, strict=True)
    ]
    if settings.tuples == "ragged":
        lines.append(f"tuples: at most {side_sizes[0]} positives and {side_sizes[1]} negatives, nothing filled up")
    else:
        filled = "copies of the anchor"
        if settings.augment != "none":
            filled = f"made by {settings.augment}, else copies"
        lines.append(
            f"tuples: {side_sizes[0]} positives, {shares[0]:.0%} of them {filled}; {side_sizes[1]} negatives, "
            f"{shares[1]:.0%} of them drawn from other anchors"
        )
    each = settings.sentences_each(rows)
    joined = settings.batch_size * world_size()
    return [*lines, f"sentences: about {each * joined:.0f} a step ({joined} anchors)"]


def _warnings(rows: TupleData, settings: SupmpnSettings, dropout: bool) -> list[str]:
    copies = settings.tuples == "padded" and any(len(positives) < settings.places[0] for positives in rows.positives)
    if not copies or dropout:
        return []
    return [
        "warning: the model has no dropout, so that copies of an anchor are its own vector and only push others "
        "away; set dropout, take tuples ragged, or fewer positives"
    ]
