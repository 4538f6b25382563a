"""Settings of SupMPN and of the losses it is compared with; see :mod:`samesense.recipes.supmpn.recipe`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

from pydantic import Field, model_validator

from samesense.data.detected_kind import DetectedKind
from samesense.data.kinds import detect_kind
from samesense.data.pairs.data import PairData, concat
from samesense.data.pairs.read import read_pairs
from samesense.data.rows.sources import Source
from samesense.data.tuples.completion import Completion
from samesense.data.tuples.convert import read_classes, tuples_of_pairs
from samesense.data.tuples.data import TupleData
from samesense.data.tuples.read import read_tuples
from samesense.errors import ConfigError, DataError
from samesense.execution.ranks import world_size
from samesense.execution.settings import with_defaults
from samesense.losses.gist import GuideSettings
from samesense.losses.registry import TUPLE_LOSSES
from samesense.losses.spec import LossSpec
from samesense.losses.tuples import PlacesSettings
from samesense.recipes.settings import KEEP_START, REFIT, EncoderSettings, KeepStart
from samesense.types import PoolingName


@TUPLE_LOSSES.add_settings
@with_defaults(learning_rate=5e-5, weight_decay=0.0, warmup_ratio=0.0)
class SupmpnSettings(PlacesSettings, GuideSettings, EncoderSettings):
    """Settings of the SupMPN recipe and of the losses it is compared with; the defaults are the paper's."""

    bare_pooling: ClassVar[PoolingName] = "first-last"
    bare_length: ClassVar[int] = 32

    loss: str = Field("supmpn", description="what is minimised; info-nce is supmpn with one positive and one negative")
    group_anchors: bool = Field(True, description="put rows of one anchor together; those of NLI data always are")
    columns: str | None = Field(
        None, description="anchor,positive or anchor,positive,negative or premise,hypothesis,label or text,class"
    )
    label_order: str | None = Field(None, description="names of the labels 0, 1, 2 of NLI data")
    drop_bad_rows: bool = Field(False, description="leave out rows that break a rule, and say how many")
    sentences_per_step: int | None = Field(
        None, ge=1, description="choose batch_size so that about this number of sentences are encoded in a step"
    )
    refit: bool = Field(True, description=REFIT)
    keep_start: KeepStart = Field("unless-higher", description=KEEP_START)
    pooling: PoolingName | None = Field(None, description="pooling [the model's own; a bare transformer's first-last]")
    max_seq_length: int | None = Field(
        None, ge=2, description="longest input in training, in tokens [the model's own; a bare transformer's 32]"
    )
    dropout: float | None = Field(None, gt=0, lt=1, description="dropout of the model in training [its own]")
    batch_size: int = Field(256, ge=1, description="anchors per process and step")
    epochs: float = Field(3, gt=0, description="passes over the anchors")
    mini_batch_num_tokens: int | None = Field(
        4096, ge=1, description="most tokens held at once; larger batches go in parts, same loss and gradient"
    )

    @model_validator(mode="after")
    def _belongs(self) -> SupmpnSettings:
        fields = type(self).model_fields
        TUPLE_LOSSES.check([name for name, value in self if value != fields[name].default], self.loss)
        if self.augment == "none" and self.augment_share is not None:
            raise ConfigError("augment_share belongs to an augmentation, and augment is none. Leave it out.")
        return self

    def for_data(self, train: TupleData) -> Self:
        """Return the settings with the batch size of each process that ``sentences_per_step`` of all asks for."""
        if self.sentences_per_step is None:
            return self
        anchors = max(1, round(self.sentences_per_step / self.sentences_each(train) / world_size()))
        return self.model_copy(update={"batch_size": anchors})

    def examples(self, train: TupleData) -> int:
        """Return how many examples an epoch has: the usable anchors, or the pairs that the loss makes of them."""
        return len(self.usable(train) if self.spec.targets is None else self.spec.targets(train))

    def sentences_each(self, train: TupleData) -> float:
        """Return how many sentences an example has on average, equal ones counted as often as they come."""
        if self.spec.targets is not None:
            return 2.0  # pairs
        if self.tuples == "padded":
            return 1.0 + sum(self.places)
        rows = self.usable(train)
        sides = zip((rows.positives, rows.negatives), self.places, strict=True)
        return 1.0 + sum(min(len(texts), most) for side, most in sides for texts in side) / len(rows)

    def usable(self, train: TupleData) -> TupleData:
        """Return the anchors that can be trained on: those with all that is not filled up.

        A loss that takes one positive gets no copies of the anchor in its place, being no method of dropout; triplets
        left ragged need a negative, too.

        Raises:
            DataError: if there is none.
        """
        if self.tuples == "padded" and self.several:
            return train
        both = self.tuples == "ragged" and self.loss == "triplet"
        sides = zip(train.positives, train.negatives, strict=True)
        rows = [row for row, (positives, negatives) in enumerate(sides) if positives and (negatives or not both)]
        if not rows:
            left_out = train.describe_left_out()
            why = f" ({left_out})" if left_out else ""
            raise DataError(
                f"{train.source}: no anchor of {len(train)} has {self.needed}, which loss {self.loss} with tuples "
                f"{self.tuples} needs{why}. Take tuples padded, or other data."
            )
        if len(rows) == len(train):
            return train
        return train.take(rows)

    @property
    def several(self) -> bool:
        """Whether the loss takes several positives, and copies of the anchor among them."""
        return TUPLE_LOSSES.belongs("positives", self.loss)

    @property
    def guided(self) -> bool:
        """Whether a guide tells the false negatives of the loss."""
        return TUPLE_LOSSES.belongs("guide", self.loss)

    @property
    def embedding_models(self) -> tuple[str, ...]:
        """The models that embed the training texts before the first step."""
        return () if self.guide is None else (self.guide,)

    @property
    def needed(self) -> str:
        """What an anchor must have of its own, in words."""
        if self.loss == "triplet" and self.tuples == "ragged":
            return "a positive and a negative"
        return "a positive"

    @property
    def spec(self) -> LossSpec:
        """The loss that is trained."""
        return TUPLE_LOSSES.spec(self.loss)

    @property
    def places(self) -> tuple[int, int]:
        """How many positives and negatives the loss takes of an anchor at most."""
        if self.several:
            return (self.positives, self.negatives)
        return (1, 1)

    def completion(self, rows: TupleData) -> Completion:
        """Return how tuples are made."""
        positives, negatives = self.places
        return Completion(
            data=rows,
            positives=positives,
            negatives=negatives,
            padded=self.tuples == "padded",
            fixed=self.resample == "fixed",
            seed=self.seed,
            false_negative_filter=self.false_negative_filter,
        )


def read_for_supmpn(sources: Sequence[Source], settings: SupmpnSettings) -> TupleData:
    """Return the training data; see :func:`samesense.data.tuples.read.read_tuples`.

    Sentences with classes become anchors; see :func:`samesense.data.tuples.convert.tuples_of_classes`. Triplets are
    read as labelled pairs are, whose names of columns they have.
    """
    detected = [_detected(source, settings.columns) for source in sources]
    if all(kind is not None and kind.triplets for kind in detected):
        return tuples_of_pairs(_read_triplets(sources, detected, settings))
    if all(kind is not None and kind.kind == "classes" for kind in detected):
        return read_classes(sources, columns=settings.columns, drop_bad_rows=settings.drop_bad_rows)
    return read_tuples(
        sources,
        columns=settings.columns,
        group_anchors=settings.group_anchors,
        label_order=settings.label_order,
        drop_bad_rows=settings.drop_bad_rows,
    )


def _detected(source: Source, columns: str | None) -> DetectedKind | None:
    """Return the kind of a source; ``None`` where the reader of anchors says what is wrong."""
    try:
        return detect_kind(source, columns)
    except DataError:
        return None


def _read_triplets(
    sources: Sequence[Source], detected: Sequence[DetectedKind | None], settings: SupmpnSettings
) -> PairData:
    columns = [kind.columns if kind else settings.columns for kind in detected]
    return concat(
        [
            source
            if isinstance(source, PairData)
            else read_pairs(source, columns=names, drop_bad_rows=settings.drop_bad_rows)
            for source, names in zip(sources, columns, strict=True)
        ]
    )
