"""What a run is made of: the job, and what a model is trained on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

from torch import nn
from transformers import TrainerCallback

from samesense.data import PairData
from samesense.data.examples import Examples
from samesense.data.pairs.data import concat
from samesense.data.tuples.data import TupleData
from samesense.recipes.held_out.cross_validation import CrossValidation
from samesense.recipes.held_out.sets import Sets, sets_of_run
from samesense.recipes.settings import EncoderSettings
from samesense.training.batches import Batches, BatchSampler
from samesense.training.fit import TrainOutput, fit
from samesense.training.mixing import Mix
from samesense.types import Result

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict

Data = TypeVar("Data", bound=Examples)
Settings = TypeVar("Settings", bound=EncoderSettings)


@dataclass(frozen=True, kw_only=True)
class Job(Generic[Data, Settings]):
    """What is trained on what."""

    method: str  # its name in the manifest
    data: Data  # what is trained on
    settings: Settings  # of the method
    output: Path  # run folder; holds model/, manifest.json, history.jsonl and results.jsonl
    # labelled pairs; the checkpoint with the best Spearman on them is kept. None keeps the last state
    dev: PairData | None = None
    test: PairData | None = None  # labelled pairs on which the model is evaluated before and after
    guards: Sequence[PairData] = ()  # labelled pairs on which the model must not get worse
    remarks: Sequence[str] = ()  # lines to print on data and settings
    # whether it ends with a verdict, for which a part of dev is set aside where there is no test, and with a report;
    # else it is a part of something larger, which compares its models itself
    concludes: bool = False
    # folds whose models give the verdict, before the model of the run is trained on all pairs; for labelled pairs
    # without dev and test
    cross_validation: CrossValidation | None = None
    # whether the model is trained again on what was held out too, once that has selected and tested
    refit: bool = False
    begun: float = field(default_factory=time.perf_counter)  # when it was asked for; its times count from there

    def sets(self) -> Sets:
        """Return what selects, and on what the trained model is compared with its start; raises as ``sets_of``."""
        return sets_of_run(
            self.settings,
            self.data,
            dev=self.dev,
            test=self.test,
            guards=self.guards,
            split_dev=self.concludes,
            cross_validation=self.cross_validation,
        )

    def all_examples(self) -> Data:
        """Return the training data, and what was held out of them: pairs of dev, or anchors."""
        data: Any = self.data
        if isinstance(data, TupleData):
            return cast(Data, data.with_held_out())
        if self.dev is None:
            return self.data
        return cast(Data, concat([data, self.dev]))


class FurtherResults(NamedTuple):
    """What a method adds to the results of a run, and to its manifest."""

    results: list[Result]
    entries: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class TrainingInputs:
    """What a model is trained on, and how."""

    dataset: Dataset | DatasetDict  # text columns, then label where the loss takes one; of several objectives, by name
    # makes the loss; called once the seed is set, since a loss may have weights of its own
    loss: Callable[[], nn.Module]
    summary: Sequence[str] = ()  # lines to print and for the manifest: what was read, formed and left out
    batches: Batches | BatchSampler | Mix = "random"  # how examples are put into batches
    collator: Callable[..., Any] | None = None  # puts examples into a batch, where the trainer's own does not do
    callbacks: Sequence[TrainerCallback] = ()  # of the trainer
    # what takes long, and is done once the folder is taken, so that an interrupted run can be resumed
    before_training: Callable[[], None] | None = None
    after_training: Callable[[], FurtherResults] | None = None  # evaluates the saved model further

    def fit(
        self,
        model: Any,
        settings: EncoderSettings,
        folder: Path,
        *,
        callbacks: Sequence[TrainerCallback] = (),
        **options: Any,
    ) -> TrainOutput:
        """Train a model; for the other ``options`` and what is raised see :func:`samesense.training.fit.fit`."""
        return fit(
            model,
            self.dataset,
            self.loss(),
            settings,
            folder,
            batches=self.batches,
            collator=self.collator,
            max_length=settings.max_seq_length,
            callbacks=[*self.callbacks, *callbacks],
            **options,
        )


Prepare = Callable[[Any, Job[Any, Any]], TrainingInputs]
"""Makes what the start model of a job is trained on."""

Build = Callable[[Job[Any, Any]], Any]
"""Makes the start model of a job."""
