"""The registry of losses: the module of each, the data it fits, its settings, and its kinds of batches.

Flags, help, checks, error messages and tests are derived from these tables, so a loss is added by one entry. Modules
are named and not imported, as settings and ``--help`` must not need torch. A setting that several losses share is
declared once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pydantic import BaseModel, Field

from samesense.data.pairs import targets as pairs
from samesense.data.pairs.bins import Bins
from samesense.data.pairs.data import PairData
from samesense.data.pairs.targets import Targets
from samesense.data.tuples.completion import Guard
from samesense.data.tuples.data import partners_as_classes
from samesense.data.tuples.paraphrase import PARAPHRASER, AugmentName
from samesense.training.losses.lessons import IN_BATCH, IN_ORDER, OF_ANGLE, OF_LOGITS, OF_ROWS, OF_TRIPLETS
from samesense.training.losses.spec import Losses, LossSpec


class Temperature(BaseModel):
    """Settings of losses with a softmax over cosines."""

    temperature: float = Field(0.05, gt=0, description="divides the cosines; the papers' scale of 20")


class CrossCoSENTSettings(Temperature):
    """Settings of CoSENT for both kinds of encoder."""

    margin: float = Field(0.0, ge=0, description="labels must differ by more than this to be compared")


class CoSENTSettings(CrossCoSENTSettings):
    """Settings of CoSENT on embeddings."""

    similarity: Literal["cosine", "angle"] = Field("cosine", description="what is ranked; angle is AnglE's")


class ContrastiveSettings(BaseModel):
    """Settings of the contrastive loss."""

    threshold: float = Field(0.0, ge=-1, lt=1, description="negatives below this cosine cost nothing")
    literal: bool = Field(False, description="Eq. 2 of the CoSENT paper as printed, instead of the hinge")


class PositiveAbove(BaseModel):
    """Setting of losses that need positive pairs."""

    positive_above: float | None = Field(None, description="scores above this are positive [the middle of the scale]")


class PositivesSettings(PositiveAbove):
    """Settings for the extraction of positive pairs and hard negatives."""

    hard_negatives: bool = Field(True, description="negative partners of an anchor compete for it")


class SoftmaxSettings(BaseModel):
    """Settings of the classification of pairs."""

    product: bool = Field(False, description="add u * v to the features, as InferSent does")


class BinsSettings(BaseModel):
    """Setting for the binning of scores into classes."""

    bins: Bins = Field(None, description="of scores: number of bins of equal width, or edges, as in: 0,1.5,3,5")


class TripletSettings(BaseModel):
    """Settings of triplet losses."""

    distance: Literal["cosine", "euclidean"] = Field("cosine", description="distance")
    triplet_margin: float | None = Field(
        None, ge=0, description="how much nearer the positive must be [cosine 0.5, euclidean 1]"
    )


class AngleSettings(Temperature):
    """Settings of AnglE's three terms."""

    angle_temperature: float = Field(1.0, gt=0, description="divides AnglE's similarities")
    cosine_weight: float = Field(1.0, ge=0, description="weight of CoSENT of the cosines")
    in_batch_weight: float = Field(1.0, ge=0, description="weight of InfoNCE of the positive pairs")
    angle_weight: float = Field(1.0, ge=0, description="weight of CoSENT of AnglE's similarities")


def _ordered_labels_with_threshold(data: PairData, *, positive_above: float | None = None) -> Targets:
    return replace(pairs.labels_in_order(data), settings={"positive_above": pairs.positive_cut(data, positive_above)})


PAIR_LOSSES = Losses(
    LossSpec(
        name="cosent",
        module="pairs.CoSENT",
        lesson=IN_ORDER,
        settings=CoSENTSettings,
        targets=pairs.labels_in_order,
        batches=("label-aware",),
    ),
    LossSpec(
        name="contrastive",
        module="pairs.Contrastive",
        settings=ContrastiveSettings,
        targets=pairs.labels_cut_in_two,
        target_settings=PositiveAbove,
        kinds=("scored", "binary", "triple"),
        takes="labels 0 and 1, or scores, which it cuts in two",
        batches=("label-aware",),
    ),
    LossSpec(name="mse", module="pairs.MSE", targets=pairs.labels_from_0_to_1, batches=("label-aware",)),
    LossSpec(
        name="softmax",
        module="pairs.Softmax",
        lesson=OF_ROWS,
        settings=SoftmaxSettings,
        targets=pairs.labels_as_classes,
        target_settings=BinsSettings,
        takes="classes: NLI or binary labels, whole scores, or other scores by bins",
        batches=("label-aware",),
    ),
    LossSpec(
        name="triplet",
        module="tuples.Triplet",
        lesson=OF_TRIPLETS,
        settings=TripletSettings,
        targets=pairs.formed_triplets,
        kinds=("binary", "nli", "triple"),
        takes="NLI or binary labels, from which it forms triplets",
    ),
    LossSpec(
        name="info-nce",
        module="tuples.InfoNCE",
        lesson=IN_BATCH,
        settings=Temperature,
        targets=pairs.positive_pairs,
        target_settings=PositivesSettings,
        batches=("no-duplicates",),
    ),
    LossSpec(
        name="angle",
        module="angle.AnglE",
        lesson=OF_ANGLE,
        settings=AngleSettings,
        targets=_ordered_labels_with_threshold,
        target_settings=PositiveAbove,
        batches=("label-aware", "no-duplicates"),
    ),
    LossSpec(
        name="cosent",
        encoder="cross",
        module="cross.CrossCoSENT",
        lesson=OF_LOGITS,
        settings=CrossCoSENTSettings,
        targets=pairs.labels_in_order,
        batches=("label-aware",),
    ),
    LossSpec(
        name="cross-entropy",
        encoder="cross",
        module="cross.CrossEntropy",
        lesson=OF_ROWS,
        targets=pairs.labels_from_0_to_1,
        batches=("label-aware",),
    ),
)
"""The losses of labelled pairs: ``samesense train --loss``."""


class Filter(BaseModel):
    """Setting of losses that can filter false negatives."""

    false_negative_filter: Guard = Field(
        "same",
        description="texts that are no negatives of an anchor: same as it or a positive of it; near: or of the same "
        "words; off: all count",
    )


class FilteredInfoNCESettings(Temperature, Filter):
    """Settings of SupMPN's loss."""


class DrawnSettings(BaseModel):
    """Settings for drawing and padding tuples, and for encoding equal texts."""

    resample: Literal["epoch", "fixed"] = Field("epoch", description="draw tuples again each epoch, or once")
    encode_once: bool = Field(True, description="encode equal sentences of a batch once; copies of an anchor apart")
    tuples: Literal["padded", "ragged"] = Field(
        "padded",
        description="padded fills all places, copies of the anchor as positives unless the loss takes one; ragged "
        "leaves them empty",
    )


class PlacesSettings(DrawnSettings):
    """Settings of tuples with several positives and negatives."""

    positives: int = Field(5, ge=1, description="places for positives of an anchor")
    negatives: int = Field(5, ge=0, description="places for negatives of an anchor")
    augment: AugmentName = Field(
        "none", description="how places for positives are filled before copies of the anchor are taken"
    )
    augment_share: float | None = Field(
        None, gt=0, le=1, description="share of words, or of texts [deletion 0.1, synonym 0.2, paraphrase 0.5]"
    )
    paraphraser: str = Field(PARAPHRASER, description="paraphrase: folder or hub name of a seq2seq model")


class FilteredDrawnSettings(DrawnSettings, Filter):
    """Settings of tuples for the triplet loss, whose negatives are filtered when they are drawn."""


TUPLE_LOSSES = Losses(
    LossSpec(
        name="supmpn",
        module="tuple_batches.TupleMultiPositive",
        settings=FilteredInfoNCESettings,
        target_settings=PlacesSettings,
    ),
    LossSpec(
        name="info-nce",
        module="tuple_batches.TupleMultiPositive",
        settings=FilteredInfoNCESettings,
        target_settings=DrawnSettings,
    ),
    LossSpec(
        name="triplet",
        module="tuple_batches.TupleTriplet",
        settings=TripletSettings,
        target_settings=FilteredDrawnSettings,
    ),
    LossSpec(name="softmax", module="pairs.Softmax", lesson=OF_ROWS, targets=partners_as_classes),
    LossSpec(name="supcon", module="tuple_batches.TupleSupCon", settings=Temperature, target_settings=PlacesSettings),
    LossSpec(
        name="batch-hard",
        module="tuple_batches.TupleBatchTriplet",
        settings=TripletSettings,
        target_settings=PlacesSettings,
    ),
)
"""The losses of anchors with positives and negatives: ``samesense train --method supmpn --loss``."""

OTHER_MODULES = ("tuples.MultiPositive", "sentences.SupCon", "sentences.BatchTriplet", "sentences.RankCSE")
"""Loss modules with fixed columns that no flag names; they are for custom trainers."""
