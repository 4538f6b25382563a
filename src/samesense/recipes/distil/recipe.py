"""Distillation: a small, fast student that ranks sentences as its teachers do, from text alone.

    samesense distil sentences.txt --teacher A --student layers:3 --dev dev.tsv --output runs/small

Each teacher encodes the sentences once; see :mod:`samesense.training.teachers`. The student learns the ranking that
they give the sentences of each batch, as in RankCSE, and their vectors. Then student and teachers are evaluated on the
same pairs and timed in turns.

Source: Liu et al. 2023 (RankCSE), for the ranking of several teachers; see
    :class:`~samesense.losses.distillation.Distillation` for the vectors.
Differs: no InfoNCE and no consistency, and so one view: the teachers say what is near, also of a sentence and itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

from sentence_transformers import SentenceTransformer

from samesense.data import PairData, read_pairs
from samesense.data.sentences import Sentences
from samesense.encoder.assembly.build import set_prompt
from samesense.encoder.assembly.students import make_student
from samesense.encoder.maps.whitening import check_whole
from samesense.errors import ConfigError, ModelError
from samesense.losses.distillation import Distillation
from samesense.recipes.distil.report import KEPT, StudentReport, report_student
from samesense.recipes.distil.settings import DistilSettings
from samesense.recipes.run.estimate import estimate as estimate_job
from samesense.recipes.run.job import FurtherResults, Job, TrainingInputs
from samesense.recipes.run.run_folder import SECTIONS, check_new
from samesense.recipes.run.runner import run as run_job
from samesense.recipes.run.training_run import TrainingRun
from samesense.recipes.unsupervised.rankcse import describe, terms, with_teachers
from samesense.training.teachers import TeacherStore

METHOD = "distil"

MANY = 100_000
"""Sentences that are looked at to see whether they are few."""


@dataclass(frozen=True, repr=False)
class Distillate(TrainingRun):
    """What a run leaves: how it was trained, and what the student kept and gained, unless it was interrupted."""

    report: StudentReport | None = None

    def __str__(self) -> str:
        report = [] if self.report is None else [self.report.text(), "\n".join(self.conclusion())]
        return "\n\n".join(["\n".join(self.lines()), *report])


@dataclass(frozen=True)
class DistilPlan:
    """What a student learns from, and is evaluated on; ConfigError if two test sets have one name.

    ``dev`` chooses the best checkpoint, and is evaluated on where there are no ``tests``.
    """

    train: Sentences
    settings: DistilSettings
    dev: PairData | None = None
    tests: Sequence[PairData] = ()

    def __post_init__(self) -> None:
        names = [data.name for data in self.tests]
        if len(set(names)) < len(names):
            raise ConfigError(f"Each test set needs a name of its own; received {', '.join(names)}.")

    def run(self, output: Path, *, resume: bool = False, overwrite: bool = False) -> Distillate:
        """Encode by the teachers, train the student, and evaluate and time both; all of it is left in ``output``.

        ``resume`` also evaluates what was trained and not evaluated; ``overwrite`` leaves the vectors of teachers.
        """
        # The run calls `report` once the student is saved; the list hands its outcome back.
        reports: list[StudentReport] = []

        def report() -> FurtherResults:
            evaluated = self.tests or ([] if self.dev is None else [self.dev])
            reports.append(report_student(output, self.settings, self.train.texts, evaluated))
            # The run itself evaluates the student on the first of the tests.
            scored_by_run = {test.name for test in self.tests[:1]}
            results = [row for row in reports[0].results if row.seed is None or row.dataset not in scored_by_run]
            entries = {KEPT: reports[0].content(), SECTIONS: {"Distilled": reports[0].section()}}
            return FurtherResults(results, entries)

        def prepared(model: SentenceTransformer, job: Job[Sentences, DistilSettings]) -> TrainingInputs:
            return replace(prepare(model, job), after_training=report)

        done = run_job(self._job(output), prepared, build=build_student, resume=resume, overwrite=overwrite)
        return Distillate(**vars(done), report=reports[0] if reports else None)

    def estimate(self, output: Path, *, free: bool = True) -> list[str]:
        """Return, in words, the steps and an estimate of the time, the report not counted; as :meth:`run` it raises.

        ``free`` says that nothing may be in the output folder.
        """
        if free:
            check_new(output, overwrite=False)
        return estimate_job(self._job(output), prepare, build=build_student)

    def _job(self, output: Path) -> Job[Sentences, DistilSettings]:
        """Return what is trained; the student is compared with its start on the first test set."""
        return Job(
            method=METHOD,
            data=self.train,
            settings=self.settings,
            output=output,
            dev=self.dev,
            test=self.tests[0] if self.tests else None,
            guards=[read_pairs(source, drop_bad_rows=None) for source in self.settings.guard],
            concludes=True,
        )


def build_student(job: Job[Sentences, DistilSettings]) -> SentenceTransformer:
    """Return the student before training; ModelError if its vectors are cut, as losses are given whole ones."""
    settings = job.settings
    student = make_student(
        settings.model,
        settings.teacher[0],
        job.data.texts,
        spacing=settings.spacing,
        pooling=settings.pooling,
        first=settings.first,
        teacher_pooling=settings.teacher_pooling,
    )
    check_whole(student)
    return set_prompt(student, settings.prompt)


def prepare(model: SentenceTransformer, job: Job[Sentences, DistilSettings]) -> TrainingInputs:
    """Return what a student is trained on: the sentences, and their vectors by the teachers."""
    settings = job.settings
    inputs = with_teachers(model, job, partial(loss_of, model, settings), describe(settings, settings.regress))
    return replace(inputs, summary=[*inputs.summary, *_few_sentences(model, job.data)])


def _few_sentences(model: SentenceTransformer, train: Sentences) -> list[str]:
    """Return a warning if there are fewer different sentences than dimensions of the student's vectors."""
    dim = model.get_embedding_dimension() or 0
    different = len(set(islice(train.texts, MANY)))
    if different >= dim:
        return []
    return [
        f"warning: the sentences are few, {different} different ones for vectors of {dim} dimensions: the student "
        "learns little of what its teachers make of other texts. Give more of the kind that it will encode"
    ]


def loss_of(model: SentenceTransformer, settings: DistilSettings, stores: list[TeacherStore]) -> Distillation:
    """Return the loss; the weights of its maps are drawn here, so the seed must be set."""
    arguments = terms(model, settings, stores)
    dim = model.get_embedding_dimension()
    if dim is None:
        raise ModelError("Distillation needs the width of the student's embeddings, and this model does not say it.")
    widths = [store.dim for store in stores]
    return Distillation(model, widths=widths, dim=dim, regress=settings.regress, **arguments).to(model.device)
