"""The methods by which a model is trained: one entry each, with its settings, its reader and what it trains on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samesense.data import PairData
from samesense.data.documents import read_documents
from samesense.data.examples import Examples
from samesense.data.rows.sources import Source, in_memory, name_of
from samesense.data.sentences import Sentences
from samesense.data.tuples.data import TupleData
from samesense.errors import ConfigError
from samesense.execution.torch_import import loading_torch
from samesense.recipes import lessons
from samesense.recipes.context.documents import Documents, name_documents
from samesense.recipes.context.settings import ContextSettings
from samesense.recipes.cosent.settings import CosentSettings, choose
from samesense.recipes.mixed.data import Mixture, refuse
from samesense.recipes.mixed.settings import MixedSettings
from samesense.recipes.reading import Reading, read_labelled
from samesense.recipes.run.training_run import TrainingRun
from samesense.recipes.sections.data import SectionsSettings, SectionTriplets, read_triplets
from samesense.recipes.settings import EncoderSettings, bind, read_settings, shipped
from samesense.recipes.supmpn.settings import SupmpnSettings, read_for_supmpn
from samesense.recipes.surrogate.data import Harvested
from samesense.recipes.surrogate.reading import read_harvest
from samesense.recipes.surrogate.settings import SurrogateSettings
from samesense.recipes.unsupervised.settings import RankcseSettings, SimcseSettings, read_bare, read_for_simcse

if TYPE_CHECKING:
    from samesense.recipes.run.job import Job, TrainingInputs


@dataclass(frozen=True)
class Method:
    """One way to train."""

    name: str  # as in --method
    takes: str  # the data, in words
    settings: type[EncoderSettings]
    data: tuple[type, ...]  # classes of the data that it takes
    reader: Callable[[Sequence[str], Any], Examples]  # reads them from sources; the settings of the method say how
    has_stages: bool = False  # whether it is more than one training
    reading: tuple[str, ...] = ()  # the settings that decide what is read
    from_files: bool = False  # data in memory are not taken
    # says of data and settings what share of the batches teaches nothing; DataError where all of them do
    lessons: Callable[[Any, Any], list[str]] = lambda train, settings: []
    # what it selects by where no pairs are given for that, in words
    selects: str = "none, the last state is kept; labelled pairs as dev choose the best checkpoint"

    @property
    def drops_bad_rows(self) -> bool:
        """Whether the option ``drop_bad_rows`` is taken, for the data and for pairs that select and test."""
        return "drop_bad_rows" in self.settings.model_fields

    def choose(
        self, config: str, overrides: Mapping[str, Any], read: Callable[[], Examples], form: str = ""
    ) -> tuple[str, EncoderSettings]:
        """Return the settings of a run: the shipped ones, then the user's own file, then what was given.

        ``config`` is the name of a shipped file, whose settings without effect beside ``overrides`` are left out, the
        path of the user's own, or ``"auto"`` for the method's; the name returned is for display. ``read`` reads the
        data, for a method whose settings depend on their kind. ``form`` is a shipped file of what differs for the data
        at hand.
        """
        # First, as `bind` knows this method alone and cannot say whose setting another is.
        check_known(self, overrides)
        shipped_files = [read_settings(name) for name in (self.name, form) if name]
        config_settings = {} if config == "auto" else read_settings(config)
        if config in shipped():
            config_settings = self.settings.fitting(read_settings(config), overrides)
        return (form or self.name) if config == "auto" else config, bind(
            self.settings, *shipped_files, config_settings, overrides
        )

    def read(self, sources: Sequence[Source], settings: EncoderSettings, reading: Reading) -> Examples:
        """Return the training data; ConfigError for options of labels where the method takes none."""
        if reading != Reading():
            raise ConfigError(
                f"columns, label order, label range and drop bad rows are for labelled pairs; method {self.name} takes "
                f"{self.takes}. Leave them out."
            )
        if self.from_files and any(map(in_memory, sources)):
            raise ConfigError(f"Method {self.name} reads {self.takes} from files; received {name_of(sources[0])}.")
        return self.reader(sources, settings)

    def own_settings(self, overrides: Mapping[str, Any], reading: Reading) -> tuple[dict[str, Any], Reading]:
        """Return settings and reading, with what the method has as a setting of its own moved there."""
        moved = {
            name: value
            for name, value in vars(reading).items()
            if name in self.settings.model_fields and value != getattr(Reading(), name)
        }
        remaining = {name: value for name, value in vars(reading).items() if name not in moved}
        return {**overrides, **moved}, Reading(**remaining)

    def check(self, train: Examples, settings: EncoderSettings) -> list[str]:
        """Return lines on how the data are used; raises if they do not fit the settings, or teach nothing."""
        return [*self.describe_use(train, settings), *self.lessons(train, settings)]

    def describe_use(self, train: Examples, settings: EncoderSettings) -> list[str]:
        """Return lines on how the data are used; raises if they do not fit the settings."""
        return []

    def run(
        self,
        train: Examples,
        settings: EncoderSettings,
        output: Path,
        *,
        resume: bool = False,
        overwrite: bool = False,
        **parts: Any,
    ) -> TrainingRun:
        """Train with settings and data that are there already; see :func:`samesense.recipes.run.runner.run`.

        ``parts`` are ``dev``, ``test``, ``guards``, ``concludes``, ``cross_validation`` and ``refit`` of
        :class:`samesense.recipes.run.job.Job`.
        """
        # The time of the run includes the import of torch.
        begun = time.perf_counter()
        # Called only to raise: what it returns is in the summary of the training inputs too.
        self.describe_use(train, settings)
        job = self._job(train, settings, output, begun=begun, remarks=self.lessons(train, settings), **parts)
        return self._train(job, resume=resume, overwrite=overwrite)

    def _job(self, train: Examples, settings: EncoderSettings, output: Path, **parts: Any) -> Job[Any, Any]:
        with loading_torch():
            from samesense.recipes.run.job import Job

        return Job(method=self.name, data=train, settings=settings.for_data(train), output=output, **parts)

    def _train(self, job: Job[Any, Any], *, resume: bool, overwrite: bool) -> TrainingRun:
        from samesense.recipes.run.runner import run

        return run(job, self.prepare_inputs, resume=resume, overwrite=overwrite)

    def prepare_inputs(self, model: Any, job: Job[Any, Any]) -> TrainingInputs:
        """Return what a start model is trained on.

        Raises:
            ConfigError: if the method is more than one training.
        """
        if self.has_stages:
            raise ConfigError(f"Method {self.name} is more than one training, and cannot be one of a mixture.")
        # Imported here, as the recipes import torch: the command line reads this file for its flags.
        from samesense.recipes.inputs import PREPARE

        return PREPARE[self.name](model, job)

    def estimate(self, train: Examples, settings: EncoderSettings, output: Path, **pairs: Any) -> list[str]:
        """Return, in words, the steps and the time of a run; see :mod:`samesense.recipes.run.estimate`.

        ``pairs`` are ``dev``, ``test``, ``guards``, ``cross_validation`` and ``refit``, as for :meth:`run`.
        """
        return self._estimate(self._job(train, settings, output, concludes=True, **pairs))

    def _estimate(self, job: Job[Any, Any]) -> list[str]:
        with loading_torch():
            from samesense.recipes.run.estimate import estimate

        return estimate(job, self.prepare_inputs)

    def estimated_seconds(self, train: Examples, settings: EncoderSettings, output: Path, **pairs: Any) -> float:
        """Return the seconds that a run takes, folds included, as :meth:`estimate` has them."""
        with loading_torch():
            from samesense.recipes.run.estimate import measure_time

        job = self._job(train, settings, output, concludes=True, **pairs)
        return sum(measure_time(job, self.prepare_inputs).seconds.values())

    def run_or_resume(
        self, train: Examples, settings: EncoderSettings, output: Path, *, dev: PairData | None = None
    ) -> bool:
        """Train unless that is done; see :func:`run`, and :func:`samesense.recipes.run.run_folder.run_or_resume`."""
        from samesense.recipes.run.run_folder import run_or_resume

        return run_or_resume(output, partial(self.run, train, settings, output, dev=dev))


class _Cosent(Method):
    """Labelled pairs, on whose kind the paper's settings depend; for both kinds of encoder."""

    @property
    def drops_bad_rows(self) -> bool:
        return True

    def choose(
        self, config: str, overrides: Mapping[str, Any], read: Callable[[], Examples], form: str = ""
    ) -> tuple[str, EncoderSettings]:
        check_known(self, overrides)
        return choose(config, overrides, kind=read().kind)  # type: ignore[attr-defined]  # PairData

    def read(self, sources: Sequence[Source], settings: EncoderSettings, reading: Reading) -> PairData:
        return read_labelled(sources, settings, reading)

    def describe_use(self, train: Any, settings: Any) -> list[str]:
        return [settings.targets(train).summary]


class _Context(Method):
    """Running documents: more than one training."""

    def describe_use(self, train: Any, settings: Any) -> list[str]:
        if settings.learning_curve:
            raise ConfigError("`learning_curve` cuts training data, and documents are not cut to a part. Leave it out.")
        origin = settings.origin_settings()
        for source in train.sources:
            # The first document shows whether a source can be read at all.
            next(read_documents(source, language=origin.language, paragraphs=origin.paragraphs))
        return []

    def _train(self, job: Job[Any, Any], *, resume: bool, overwrite: bool) -> TrainingRun:
        from samesense.recipes.context.recipe import run

        return run(job, overwrite=overwrite)  # which always resumes

    def _estimate(self, job: Job[Any, Any]) -> list[str]:
        from samesense.recipes.context.estimate import estimate

        return estimate(job)


class _Mixed(Method):
    """Data of several kinds, each with a method of its own."""

    @property
    def drops_bad_rows(self) -> bool:
        return True

    def describe_use(self, train: Mixture, settings: EncoderSettings) -> list[str]:  # type: ignore[override]
        return _describe_components(train, lambda method, data, own_settings: method.describe_use(data, own_settings))


def _lessons_of_components(train: Mixture, settings: MixedSettings) -> list[str]:
    """Return what is to be said of the batches of each kind."""
    return _describe_components(train, lambda method, data, own_settings: method.lessons(data, own_settings))


def _describe_components(train: Mixture, describe: Callable[[Method, Any, Any], list[str]]) -> list[str]:
    """Return what each component's method says of its data and settings, each line with the component's name."""
    return [
        f"{component.name}: {line}"
        for component in train.parts
        for line in describe(METHODS[component.method], component.data, component.settings)
    ]


_SENTENCE_READING = ("columns", "keep_repeated", "min_chars", "max_chars")

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        _Cosent(
            name="cosent",
            takes="labelled pairs: scored, binary or NLI",
            settings=CosentSettings,
            data=(PairData,),
            reader=read_labelled,
            lessons=lessons.of_pairs,
        ),
        Method(
            name="simcse",
            takes="unlabelled sentences; supervised: NLI pairs or triplets",
            settings=SimcseSettings,
            data=(Sentences, PairData),
            reader=read_for_simcse,
            lessons=lessons.of_views,
            reading=("supervised", *_SENTENCE_READING),
        ),
        Method(
            name="rankcse",
            takes="unlabelled sentences, and teachers",
            settings=RankcseSettings,
            data=(Sentences,),
            reader=read_bare,
            lessons=lessons.of_rankings,
            reading=_SENTENCE_READING,
        ),
        Method(
            name="supmpn",
            takes="anchors with positives and negatives, NLI pairs grouped by premise, or sentences with classes",
            settings=SupmpnSettings,
            data=(TupleData,),
            reader=read_for_supmpn,
            lessons=lessons.of_tuples,
            reading=("columns", "group_anchors", "label_order", "drop_bad_rows"),
        ),
        Method(
            name="sections",
            takes="documents with sections",
            settings=SectionsSettings,
            data=(SectionTriplets,),
            reader=read_triplets,
            lessons=lessons.of_sections,
            reading=("per_document", "triplets_seed"),
            from_files=True,
        ),
        Method(
            name="surrogate",
            takes="a folder of samesense harvest",
            settings=SurrogateSettings,
            data=(Harvested,),
            reader=read_harvest,
            reading=("held_out_share", "most_pairs", "learn_from", "encoder", "targets"),
            from_files=True,
        ),
        _Context(
            name="context",
            takes="running documents",
            settings=ContextSettings,
            data=(Documents,),
            reader=name_documents,
            has_stages=True,
            from_files=True,
            selects="Spearman on pairs held out of the harvest; labelled pairs as dev replace them",
        ),
        _Mixed(
            name="mixed",
            takes="data of several kinds: labelled pairs, anchors with positives, sentences, documents with sections",
            settings=MixedSettings,
            data=(Mixture,),
            reader=refuse,
            lessons=_lessons_of_components,
        ),
    )
}
"""Every method by its name."""

DATA_TYPES = tuple(kind for method in METHODS.values() for kind in method.data)
"""Classes of data that are read already."""


def method_named(name: str) -> Method:
    """Return a method; ConfigError if there is none of this name."""
    if not isinstance(name, str) or name not in METHODS:  # a sweep's file may hold anything
        raise ConfigError(f"The methods are {', '.join(METHODS)}; received {name!r}.")
    return METHODS[name]


def check_known(method: Method, overrides: Mapping[str, Any]) -> None:
    """Raise if a given setting is none of the method's, but another's; one of no method is left to :func:`bind`."""
    for name in overrides:
        if name not in method.settings.model_fields:
            owners = [candidate.name for candidate in METHODS.values() if name in candidate.settings.model_fields]
            if owners:
                raise ConfigError(
                    f"{name} is a setting of method {' and '.join(owners)}; this is method {method.name}, for "
                    f"{method.takes}. Leave it out, or take method {owners[0]}."
                )
