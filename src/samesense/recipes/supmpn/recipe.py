"""SupMPN, and the losses it is compared with: from anchors with positives and negatives to an evaluated, usable model.

    samesense train nli.jsonl.gz --method supmpn --dev dev.tsv --output runs/supmpn
    samesense train lists.jsonl --method supmpn --tuples ragged --output runs/ragged

Source: Dehghan and Amasyali 2022 (SupMPN); settings in ``configs/supmpn.toml``, which says where they come from.
Differs: see :class:`samesense.data.tuples.completion.Completion` for what the paper leaves open; a negative that is the
    same text as the anchor or one of its positives does not count, unless ``false_negative_filter`` is off.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from torch import nn

from samesense.data.tuples.augment import Augment, augmented, shown
from samesense.data.tuples.augment_named import augment_named
from samesense.data.tuples.completion import Completion
from samesense.data.tuples.data import TupleData
from samesense.data.tuples.keys import key_of
from samesense.errors import DataError
from samesense.recipes.runner import Job, TrainingInputs, as_dataset
from samesense.recipes.supmpn.settings import SupmpnSettings
from samesense.recipes.unsupervised.views import set_dropout
from samesense.training.losses.pairs import Softmax
from samesense.training.losses.tuple_batches import TupleBatchTriplet, TupleMultiPositive, TupleSupCon, TupleTriplet
from samesense.training.tuple_batches import LogSavings, SetEpoch, TupleBatches, has_dropout

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

logger = logging.getLogger(__name__)


def prepare(model: SentenceTransformer, job: Job[TupleData, SupmpnSettings]) -> TrainingInputs:
    """Return what a model is trained on; its dropout is set.

    Raises:
        DataError: if the data do not fit the loss.
        MissingExtraError, ModelError: if what augments is not at hand.
    """
    train, settings = job.data, job.settings
    if settings.dropout is not None:
        set_dropout(model, settings.dropout)
    if settings.loss == "softmax":
        return _pairs(train, settings, model)
    rows = settings.usable(train)
    complete = completion(rows, settings)
    complete.check()
    batches = TupleBatches(
        rows.anchors,
        complete,
        model.preprocess,
        places=settings.places,
        key=key_of(settings.false_negative_filter),
        once=settings.encode_once,
        apart=has_dropout(model),
    )
    augment = augment_named(
        settings.augment, share=settings.augment_share, seed=settings.seed, paraphraser=settings.paraphraser
    )

    return TrainingInputs(
        dataset=as_dataset({"anchor": rows.anchors, "label": list(range(len(rows)))}),
        loss=lambda: loss_of(model, settings),
        summary=[*train.account(), *_formed(rows, len(train), settings), *_warnings(rows, settings, batches.apart)],
        collator=batches,
        callbacks=[SetEpoch(batches), LogSavings(batches)],
        before_training=None if augment is None else partial(_augment, batches, rows, augment, settings),
    )


def _augment(batches: TupleBatches, rows: TupleData, augment: Augment, settings: SupmpnSettings) -> None:
    """Show what the augmentation does, and have the tuples made with what it gives."""
    for line in ("augmented positives, such as:", *shown(rows, augment)):
        logger.info(line)
    batches.complete = completion(augmented(rows, augment, settings.places[0]), settings)


def completion(rows: TupleData, settings: SupmpnSettings) -> Completion:
    """Return how tuples are made."""
    positives, negatives = settings.places
    return Completion(
        data=rows,
        positives=positives,
        negatives=negatives,
        padded=settings.tuples == "padded",
        fixed=settings.resample == "fixed",
        seed=settings.seed,
        false_negative_filter=settings.false_negative_filter,
    )


def loss_of(model: SentenceTransformer, settings: SupmpnSettings) -> nn.Module:
    """Return the loss over tuples that ``settings.loss`` names."""
    budget, places = settings.mini_batch_num_tokens, settings.places
    triplets: dict[str, Any] = {"distance": settings.distance, "margin": settings.triplet_margin}
    match settings.loss:
        case "triplet":
            return TupleTriplet(model, **triplets, mini_batch_num_tokens=budget)
        case "supcon":
            return TupleSupCon(
                model, positives=places[0], temperature=settings.temperature, mini_batch_num_tokens=budget
            )
        case "batch-hard":
            return TupleBatchTriplet(model, positives=places[0], **triplets, mini_batch_num_tokens=budget)
    return TupleMultiPositive(
        model,
        positives=places[0],
        false_negative_filter=settings.false_negative_filter != "off",
        temperature=settings.temperature,
        mini_batch_num_tokens=budget,
    )


def _pairs(train: TupleData, settings: SupmpnSettings, model: SentenceTransformer) -> TrainingInputs:
    """Return the classification of each anchor with each of its partners, which the softmax loss is trained on."""
    sides = {"contradiction": train.negatives, "neutral": train.neutrals, "entailment": train.positives}
    classes = [name for name, partners in sides.items() if any(partners)]
    dim = model.get_embedding_dimension()
    if len(classes) < 2 or dim is None:
        raise DataError(
            f"{train.source}: softmax tells classes apart, and there are partners of {', '.join(classes)} only. Give "
            "data with negatives, or take loss info-nce."
        )
    columns: dict[str, list[Any]] = {"sentence1": [], "sentence2": [], "label": []}
    for row, anchor in enumerate(train.anchors):
        for label, name in enumerate(classes):
            for partner in sides[name][row]:
                for column, value in zip(columns.values(), (anchor, partner, label), strict=True):
                    column.append(value)
    said = f"softmax: {len(columns['label']):,} pairs of {len(classes)} classes ({', '.join(classes)})"
    return TrainingInputs(
        dataset=as_dataset(columns),
        loss=lambda: Softmax(
            model, classes=len(classes), dim=dim, mini_batch_num_tokens=settings.mini_batch_num_tokens
        ),
        summary=[*train.account(), said, f"sentences: {2 * settings.batch_size} a step ({settings.batch_size} pairs)"],
    )


def _formed(rows: TupleData, anchors: int, settings: SupmpnSettings) -> list[str]:
    """Return what tuples are made of, and how many sentences a step encodes."""
    places = settings.places
    lines = []
    if len(rows) < anchors:
        lines.append(f"{anchors - len(rows):,} anchors without a positive are not used; tuples padded would use them")
    shares = [
        1 - sum(min(len(own), most) for own in side) / max(1, most * len(rows))
        for side, most in zip((rows.positives, rows.negatives), places, strict=True)
    ]
    if settings.tuples == "ragged":
        lines.append(f"tuples: at most {places[0]} positives and {places[1]} negatives, nothing filled up")
    else:
        filled = "copies of the anchor" if settings.augment == "none" else f"made by {settings.augment}, else copies"
        lines.append(
            f"tuples: {places[0]} positives, {shares[0]:.0%} of them {filled}; {places[1]} negatives, {shares[1]:.0%} "
            "of them drawn from other anchors"
        )
    each = settings.sentences_each(rows)
    return [*lines, f"sentences: about {each * settings.batch_size:.0f} a step ({settings.batch_size} anchors)"]


def _warnings(rows: TupleData, settings: SupmpnSettings, dropout: bool) -> list[str]:
    copies = settings.tuples == "padded" and any(len(own) < settings.places[0] for own in rows.positives)
    if not copies or dropout:
        return []
    return [
        "warning: the model has no dropout, so that copies of an anchor are its own vector and only push others "
        "away; set dropout, take tuples ragged, or fewer positives"
    ]
