"""Settings of the recipes that learn from unlabelled sentences, SimCSE and RankCSE, and how their data are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from samesense.data import PairData, concat, read_pairs
from samesense.data.sentences import Sentences, read_unlabelled
from samesense.errors import ConfigError
from samesense.execution.settings import with_defaults
from samesense.recipes.settings import KEEP_START, EncoderSettings, KeepStart
from samesense.types import PoolingName, Precision

Head = Literal["train-only", "kept", "none"]
"""A layer behind the pooling: thrown away after training, a part of the model, or not there."""


@with_defaults(learning_rate=3e-5, weight_decay=0.0, warmup_ratio=0.0, batch_size=64, epochs=1.0)
class ViewSettings(EncoderSettings):
    """What SimCSE and RankCSE share: two dropout views of a sentence, and a head behind the pooling."""

    bare_pooling: ClassVar[PoolingName] = "cls"
    bare_length: ClassVar[int] = 32

    eval_steps: int | None = Field(
        125, ge=1, description="steps between evaluations on the dev set, with at least one at the end"
    )
    pooling: PoolingName | None = Field(None, description="pooling [the model's own; a bare transformer's cls]")
    max_seq_length: int | None = Field(
        None, ge=2, description="longest input in training, in tokens [the model's own; a bare transformer's 32]"
    )
    head: Head = Field("train-only", description="dense layer and tanh: discarded after training, kept, or none")
    dropout: float | None = Field(None, gt=0, lt=1, description="dropout of the model in training [its own]")
    geometry: bool = Field(
        False, description="write alignment and uniformity of dev into the history at each evaluation"
    )
    columns: str | None = Field(None, description="columns of tables that are read, as in: question,answer")
    keep_repeated: bool = Field(False, description="keep repeated sentences")
    min_chars: int | None = Field(None, ge=1, description="leave out sentences of fewer characters")
    max_chars: int | None = Field(None, ge=1, description="leave out sentences of more characters")

    @classmethod
    def _changed(cls, stated: Mapping[str, Any], idle: dict[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
        """Return those that are stated and not as they are by default, which is as good as left out."""
        default = {name: cls.model_fields[name].default for name in idle}
        return {name: needed for name, needed in idle.items() if stated.get(name, default[name]) != default[name]}

    def steps_between_evaluations(self, examples: int) -> int:
        """Return the number of steps between two evaluations on the dev set; a short run has one, at its end."""
        return min(super().steps_between_evaluations(examples), self.steps(examples))


class SimcseSettings(ViewSettings):
    """Settings of the SimCSE recipe; the defaults are those of its code for BERT-base without supervision."""

    supervised: bool = Field(
        False, description="learn from anchor, positive and hard negative of NLI pairs or triplets"
    )
    temperature: float = Field(0.05, gt=0, description="divides the cosines")
    own_negative_weight: float = Field(
        0.0, description="supervised: logarithm of how many times an anchor's own hard negative counts"
    )
    mlm_weight: float = Field(0.0, ge=0, description="weight of masked language modelling [off]; SimCSE 0.1")
    mlm_share: float = Field(0.15, gt=0, lt=1, description="share of the tokens that are masked")
    batches: Literal["random", "no-duplicates"] = Field("random", description="no-duplicates: no text twice in a batch")
    keep_start: KeepStart = Field("never", description=KEEP_START)

    @classmethod
    def without_effect(cls, stated: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
        """Return which stated settings have no effect beside the others: the setting that each needs, and its value."""
        return cls._changed(stated, {"mlm_share": ("mlm_weight", "above 0")} if not stated.get("mlm_weight") else {})

    @model_validator(mode="after")
    def _fits(self) -> SimcseSettings:
        if self.own_negative_weight and not self.supervised:
            raise ConfigError(
                "own_negative_weight weighs hard negatives, and unlabelled sentences have none. Leave it out, or set "
                "supervised."
            )
        if self.mlm_weight and self.mini_batch_num_tokens is not None:
            raise ConfigError(
                "mlm_weight holds the whole batch for its own forward, so that mini_batch_num_tokens would bound "
                "nothing. Leave out one of them."
            )
        return self


@with_defaults(learning_rate=2e-5, warmup_ratio=0.05, batch_size=128, epochs=4.0)
class RankcseSettings(ViewSettings):
    """Settings of the RankCSE recipe; the defaults are the paper's for ListMLE on BERT-base."""

    teacher: tuple[str, ...] = Field((), description="what to learn the ranking from; several are averaged")
    teacher_weights: tuple[float, ...] | None = Field(None, description="weight of each teacher, of any sum [equal]")
    rank: Literal["listnet", "listmle", "cosent"] = Field("listmle", description="formula of the ranking term")
    contrast: float = Field(1.0, ge=0, description="weight of InfoNCE; 0 leaves it out")
    beta: float = Field(1.0, ge=0, description="weight of the consistency of two views; 0 leaves it out")
    gamma: float = Field(1.0, ge=0, description="weight of the ranking of the teachers; 0 leaves it out")
    tau1: float = Field(0.05, gt=0, description="temperature of InfoNCE and consistency")
    tau2: float = Field(0.05, gt=0, description="temperature of the model in the ranking term")
    tau3: float = Field(0.025, gt=0, description="listnet: temperature of the teachers")
    consistency: Literal["js", "community"] = Field(
        "js", description="js: the paper's divergence; community: minus an entropy, as a public implementation has it"
    )
    include_diagonal: bool | None = Field(
        None, description="a sentence itself is in the lists that are ranked [listmle yes, listnet and cosent no]"
    )
    batches: Literal["random", "neighbours"] = Field(
        "random", description="neighbours: groups of 8 sentences that the teachers put close together"
    )
    views: Literal["two", "one"] = Field("two", description="one: for models without dropout, with beta 0")
    teacher_cache: str | None = Field(
        None, description="folder in which vectors of teachers are kept and looked for [teachers in the run's folder]"
    )
    teacher_dtype: Literal["float16", "float32"] = Field("float16", description="type of the numbers in that folder")
    teacher_precision: Precision = Field("auto", description="arithmetic of the teachers")
    teacher_pooling: PoolingName | None = Field(
        None, description="pooling of teachers that are models [its own, or mean if it has none]"
    )

    @classmethod
    def without_effect(cls, stated: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
        """Return which stated settings have no effect beside the others: the setting that each needs, and its value."""
        rank, beta, gamma = (stated.get(name, cls.model_fields[name].default) for name in ("rank", "beta", "gamma"))
        idle = {}
        if rank != "listnet":
            idle["tau3"] = ("rank", "listnet")
        if not beta:
            idle["consistency"] = ("beta", "above 0")
        if not gamma:
            idle |= dict.fromkeys(("rank", "tau2", "tau3", "include_diagonal", "batches"), ("gamma", "above 0"))
        return cls._changed(stated, idle)

    @model_validator(mode="after")
    def _fits(self) -> RankcseSettings:
        weights = self.teacher_weights
        if weights is not None and (
            len(weights) != len(self.teacher) or min(weights, default=0) < 0 or not sum(weights)
        ):
            raise ConfigError(
                f"teacher_weights takes one number a teacher, none below 0 and one above; received {len(self.teacher)} "
                f"teachers and {', '.join(map(str, weights)) or 'nothing'}."
            )
        self.check_terms()
        return self

    @property
    def embedding_models(self) -> tuple[str, ...]:
        """The teachers that a run asks: none where the ranking has no weight."""
        if self.gamma:
            return self.teacher
        return ()

    def check_terms(self) -> None:
        """Raise ConfigError if the terms of the loss that have a weight cannot be learnt from."""
        if not (self.contrast or self.beta or self.gamma):
            raise ConfigError("contrast, beta and gamma are all 0, which leaves nothing to learn. Give one of them.")
        if self.views == "one" and (self.beta or not self.gamma):
            raise ConfigError(
                "One view has nothing to be consistent with, and only a ranking to learn: views one goes with beta 0 "
                f"and gamma above 0; received beta {self.beta} and gamma {self.gamma}."
            )


def read_bare(sources: Sequence[str], settings: ViewSettings) -> Sentences:
    """Return the sentences of ``sources`` that the settings leave."""
    return read_unlabelled(
        sources,
        columns=settings.columns,
        keep_repeated=settings.keep_repeated,
        min_chars=settings.min_chars,
        max_chars=settings.max_chars,
    )


def read_for_simcse(sources: Sequence[str], settings: SimcseSettings) -> Sentences | PairData:
    """Return unlabelled sentences, or labelled pairs where the settings say so."""
    if settings.supervised:
        return concat([read_pairs(source, columns=settings.columns, drop_bad_rows=None) for source in sources])
    return read_bare(sources, settings)
