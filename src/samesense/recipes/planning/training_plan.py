"""A training that is planned: its data and settings in words, an estimate of its time, and its run.

Nothing of this imports torch before the run.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from samesense.data import PairData, examine
from samesense.data.examples import Examples
from samesense.data.languages import reads_as_english
from samesense.data.overlap import count_trained_anchors
from samesense.data.sentences import Sentences
from samesense.data.tuples.data import TupleData
from samesense.errors import ConfigError
from samesense.execution.ranks import is_main
from samesense.execution.timing import clock_time
from samesense.files import write_json_lines
from samesense.places import check_folder
from samesense.recipes.held_out.cross_validation import CrossValidation
from samesense.recipes.held_out.pairs import DEV, HELD_OUT_TUPLES, TEST, write_pairs
from samesense.recipes.held_out.sets import ComparedSet, Sets, sets_of, sets_of_run
from samesense.recipes.held_out.unlabelled_sets import AnchorSet, ClassSet, SectionSet
from samesense.recipes.methods import Method
from samesense.recipes.mixed.data import Mixture
from samesense.recipes.planning.dev_split import describe_leaks, describe_shared, iterate_texts
from samesense.recipes.run.earlier_run import check_folder_of_run
from samesense.recipes.run.outcome.requirements import check_requirements
from samesense.recipes.run.training_run import TrainingRun
from samesense.recipes.sections.data import SectionTriplets
from samesense.recipes.settings import EncoderSettings
from samesense.types import Result

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """Data and settings of a training, checked, before anything is computed."""

    method: Method  # by which is trained
    config: str  # name of the settings, for display
    settings: EncoderSettings  # of the run
    overrides: Mapping[str, Any] = field(default_factory=dict)  # settings that were given one by one
    train: Examples  # what is trained on
    dev: PairData | None = None  # labelled pairs that choose the best checkpoint, if any
    test: PairData | None = None  # labelled pairs on which the model is evaluated before and after, if any
    guards: tuple[PairData, ...] = ()  # labelled pairs on which the model must not get worse
    held_out: bool = False  # whether dev was held out of the training data
    test_held_out: bool = False  # whether test was
    cross_validation: CrossValidation | None = None  # folds that give the verdict and choose how far to go
    refit: bool = False  # whether the model is trained again on the dev pairs too, at the end
    messages: tuple[str, ...] = ()  # lines to print: what the data are, which decided the method

    def lines(self) -> list[str]:
        """Return in words what the data are, what selects, and which settings hold."""
        settings = "".join(f", {name} = {self._written_value(name)}" for name in self.overrides)
        return [
            *self.messages,
            *self._data_lines(),
            f"selection: {self._describe_selection()}",
            *self._describe_conclusion(),
            f"settings: {self.config}{settings}",
        ]

    def _written_value(self, name: str) -> str:
        """Return the value of an overridden setting as it was read, lists as options take them."""
        value = getattr(self.settings, name, self.overrides[name])
        if isinstance(value, list | tuple):
            return ",".join(map(str, value))
        return str(value)

    def _data_lines(self) -> list[str]:
        if isinstance(self.train, Mixture):
            return [
                f"{component.name}: {line}" for component in self.train.parts for line in self._lines_of(component.data)
            ]
        return self._lines_of(self.train)

    def _lines_of(self, train: Examples) -> list[str]:
        other_sets = {split: data for split, data in (("dev", self.dev), ("test", self.test)) if data is not None}
        if isinstance(train, PairData):
            return list(examine(train, against=other_sets).lines())
        if isinstance(train, TupleData):
            summary: str | None = train.summary()[0]  # the run prints it all
        else:
            summary = getattr(train, "summary", None)
        summary_line = f"data: {summary or f'{train.name}, {len(train)} examples'}"
        leak_lines = [
            line
            for split, other_set in other_sets.items()
            # Without texts, as of a harvest, nothing can be found in both.
            if any(iterate_texts(train))
            for line in describe_leaks(train, other_set, split)
        ]
        return [summary_line, *(f"  {line}" for line in [*leak_lines, *self._language_warnings(train)])]

    def _language_warnings(self, train: Examples) -> list[str]:
        """Return a warning where the default model is to learn from unlabelled texts that are not English."""
        texts = train.texts if isinstance(train, Sentences) else []
        if isinstance(train, SectionTriplets):
            texts = [anchor for anchor, _, _ in train.triplets]
        if self.settings.model != "default" or reads_as_english(texts):
            return []
        return [
            "warning: these texts do not read as English, and the default model was trained on English alone: give "
            "`model` of their language, or a multilingual one"
        ]

    def _describe_selection(self) -> str:
        cross_validation = self.cross_validation
        if cross_validation is not None:
            steps = "none, the last state is kept"
            if cross_validation.selects:
                steps = "the folds choose how much of the training is kept"
            return f"{steps}; {len(cross_validation.folds)} folds, {cross_validation.apart}"
        if self.dev is None:
            refit = "; at the end those held out are trained on too" if self.refit else ""
            return f"{self.method.selects}{refit}"
        if not self.held_out:
            return f"Spearman on {self._count_selecting()} pairs of {self.dev.name}"
        component = self.train.labelled() if isinstance(self.train, Mixture) else None
        trained_data = component.data if component else self.train
        refit = "; at the end they are trained on too" if self.refit else ""
        return f"Spearman on {self._count_selecting()} pairs held out, {describe_shared(self.dev, trained_data)}{refit}"

    @cached_property
    def sets(self) -> Sets:
        """What selects, and on what the trained model is compared with its start."""
        if self.method.has_stages:
            return sets_of(self.dev, self.test, self.guards, split_dev=False)
        return sets_of_run(self.settings, self.train, split_dev=True, **self._other_data())

    def _count_selecting(self) -> int:
        if self.sets.selecting is None:
            return 0
        return len(self.sets.selecting)

    def _describe_conclusion(self) -> list[str]:
        """Return on what there will be a verdict, and what more is done."""
        verdict_set = self.sets.verdict
        if isinstance(verdict_set, SectionSet):
            lines = [f"beside the start: {len(set(verdict_set.held_out.documents))} examples {verdict_set.description}"]
        elif isinstance(verdict_set, AnchorSet):
            lines = self._describe_tuples(verdict_set, "anchors")
        elif isinstance(verdict_set, ClassSet):
            lines = self._describe_tuples(verdict_set, "texts")
        else:
            lines = []
            if verdict_set:
                origin = verdict_set.description or f"of {verdict_set.name}"
                lines.append(f"beside the start: {len(verdict_set.data)} pairs {origin}")
        if verdict_set is None and getattr(self.train, "held_out", None) is not None:
            lines = [f"no verdict: {self.sets.reason}"]  # before the time is spent
        if isinstance(verdict_set, ComparedSet) and (remark := verdict_set.task.remark()):
            lines.append(f"  {remark}")
        if self.settings.learning_curve:
            lines.append("learning curve: 7 more trainings on parts of the data, which take 1.5 times as long")
        return lines

    def _describe_tuples(self, verdict_set: AnchorSet | ClassSet, unit: str) -> list[str]:
        """Return how many anchors or texts the verdict is on, and what of a test is left out, or trained on too."""
        lines = [f"beside the start: {len(verdict_set.tested)} {unit} {verdict_set.description}"]
        if verdict_set.role == "test":
            trained = count_trained_anchors(verdict_set.tested, self.train)
            if trained:
                lines.append(f"  {trained} {unit} of test are trained on: scores on them are too high")
            if left_out := verdict_set.tested.describe_left_out():
                lines.append(f"  {left_out}")
        return lines

    def _other_data(self) -> dict[str, Any]:
        """Return the pairs beside the training data, and the folds, as a run takes them."""
        return {
            "dev": self.dev,
            "test": self.test,
            "guards": self.guards,
            "cross_validation": self.cross_validation,
        }

    def dry_run(self, output: str | Path, *, free: bool = True) -> list[str]:
        """Return in words how the data are used, the steps, and an estimate of the time.

        What the run opens is opened, and what it checks before its first step is checked, the output folder too where
        it must be ``free``. Nothing is left behind.
        """
        # Loads torch, which a plan that is only shown does without.
        from samesense.recipes.run.run_folder import check_new

        if free:
            check_new(Path(output), overwrite=False)
        self.settings.check_models()
        self._check_requirements()
        data_lines = self.method.check(self.train, self.settings)
        parts = {**self._other_data(), "refit": self.refit}
        return [*data_lines, *self.method.estimate(self.train, self.settings, Path(output), **parts)]

    def run(self, output: str | Path, *, resume: bool = False, overwrite: bool = False) -> TrainingRun:
        """Train and evaluate; see :func:`samesense.train`. Pairs that were held out are kept in the folder.

        ConfigError, DataError, ModelError and OutputError come before the first step, where a run could not end well.
        """
        # Before torch is loaded and steps are measured, which takes half a minute.
        if is_main():
            check_folder(Path(output))
            if not (resume or overwrite):
                check_folder_of_run(Path(output))
        self.settings.check_models()
        self._check_requirements()
        if self.cross_validation is not None and not resume:
            self._announce_folds(self.cross_validation, Path(output))
        trained = self.method.run(
            self.train,
            self.settings,
            Path(output),
            concludes=True,
            refit=self.refit,
            resume=resume,
            overwrite=overwrite,
            **self._other_data(),
        )
        self._write_held_out(Path(output))
        return trained

    def _check_requirements(self) -> None:
        # Stages have settings of their own, and each is checked when it begins.
        if not self.method.has_stages:
            check_requirements(self.settings, self.train, self.sets)

    def _announce_folds(self, cross_validation: CrossValidation, output: Path) -> None:
        """Say how many trainings there are and about how long they take, and how to do with one."""
        seconds = self.method.estimated_seconds(self.train, self.settings, output, **self._other_data())
        logger.info(
            f"cross-validation: {len(cross_validation.folds)} trainings on parts of the {len(self.train)} pairs test "
            f"all of them, then one on all; about {clock_time(seconds)} on this machine. `folds` none trains once and "
            "tests on pairs held out"
        )

    def _write_held_out(self, output: Path) -> None:
        if not is_main():
            return
        if self.held_out and self.dev is not None:
            write_pairs(output, self.dev, DEV)
        if self.test_held_out and self.test is not None:
            write_pairs(output, self.test, TEST)
        held_out = self.train.held_out if isinstance(self.train, TupleData) else None
        # The user's own test is in its file.
        if held_out is not None and held_out.data is not None and not held_out.is_test:
            write_json_lines(output / HELD_OUT_TUPLES, held_out.data.to_dicts())

    def cross_validate(
        self, folds: str, output: str | Path, *, resume: bool = False, overwrite: bool = False
    ) -> list[Result]:
        """Evaluate by cross-validation; see :func:`samesense.recipes.planning.folds.cross_validate`."""
        # Loads torch, as above.
        from samesense.recipes.planning.folds import cross_validate

        unsupported = next(
            (name for name in ("merge", "learning_curve", "guard") if getattr(self.settings, name)), None
        )
        if unsupported is not None:
            raise ConfigError(
                f"Evaluation by cross-validation makes no model, and `{unsupported}` is for one. Leave it out."
            )
        pairs = labelled_training_pairs(self.train, self.method)
        return cross_validate(
            self.method, pairs, self.settings, Path(output), folds, resume=resume, overwrite=overwrite
        )


def labelled_training_pairs(train: Examples, method: Method) -> PairData:
    """Return training data that can be dealt into folds; ConfigError if they are no labelled pairs."""
    if isinstance(train, PairData):
        return train
    raise ConfigError(
        f"Cross-validation deals labelled pairs into folds, and method {method.name} trains on {method.takes}. Give "
        "labelled pairs."
    )
