"""Distillation: a small, fast student that ranks sentences as its teachers do, from text alone.

    samesense distil sentences.txt --teacher A --student layers:3 --dev dev.tsv --output runs/small

Each teacher encodes the sentences once; see :mod:`samesense.training.teachers`. The student learns the ranking that
they give the sentences of each batch, as in RankCSE, and their vectors. Then student and teachers are judged on the
same pairs and timed in turns.

Source: Liu et al. 2023 (RankCSE), for the ranking of several teachers; see
    :class:`~samesense.training.losses.distillation.Distillation` for the vectors.
Differs: no InfoNCE and no consistency, and so one view: the teachers say what is near, also of a sentence and itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samesense.data import PairData
from samesense.data.sentences import Sentences
from samesense.encoder.students import is_static, make_student
from samesense.errors import ConfigError, ModelError
from samesense.recipes import run_folder
from samesense.recipes.distil.report import KEPT, Account, account_of
from samesense.recipes.distil.settings import DistilSettings
from samesense.recipes.model_adapters import BiEncoder
from samesense.recipes.runner import Prepared, Trained
from samesense.recipes.runner import run as run_frame
from samesense.recipes.settings import EncoderSettings
from samesense.recipes.unsupervised.geometry_path import path_of
from samesense.recipes.unsupervised.rankcse import account, terms, with_teachers
from samesense.recipes.unsupervised.settings import read_bare as read
from samesense.training.fit import TrainOutput
from samesense.training.losses.distillation import Distillation
from samesense.training.teachers import TeacherStore
from samesense.types import Result

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch import nn

__all__ = ["DistilSettings", "Distilled", "read", "run"]


@dataclass(frozen=True)
class Distilled:
    """What a run leaves: how it was trained, and what it kept and gained, unless it was interrupted."""

    trained: Trained
    account: Account | None


def run(
    train: Sentences,
    settings: DistilSettings,
    output: Path,
    *,
    dev: PairData | None = None,
    tests: Sequence[PairData] = (),
    resume: bool = False,
    overwrite: bool = False,
) -> Distilled:
    """Ask the teachers, train the student, and judge and time both; all of it is left in ``output``.

    Args:
        train: bare sentences; see :func:`read`.
        settings: see :class:`DistilSettings`.
        output: run folder; see :func:`samesense.recipes.runner.run`, as for the rest.
        dev: labelled pairs for selection by Spearman; also what is judged on where there are no tests.
        tests: labelled pairs on which student and teachers are judged.
        resume: continue an interrupted run in ``output``; one that was trained, and not judged, is judged.
        overwrite: replace what is in ``output``; vectors of teachers stay.

    Raises:
        ConfigError, DataError, ModelError, OutputError: before the first step, where a run could not end well.
    """
    if not settings.teacher:
        raise ConfigError("A student learns from a teacher, and none was named. Give --teacher MODEL.")
    if len({data.name for data in tests}) < len(tests):
        raise ConfigError(f"Each test set needs a name of its own; received {', '.join(data.name for data in tests)}.")

    accounts: list[Account] = []

    def judge() -> tuple[list[Result], dict[str, Any]]:
        judged = tests or ([] if dev is None else [dev])
        accounts.append(account_of(output, settings, train.texts, judged))
        run_folder.to_card(output, "Distilled", accounts[0].text())
        return accounts[0].results, {KEPT: accounts[0].content()}

    def prepare(model: SentenceTransformer) -> Prepared:
        made = partial(objective, model, settings)
        prepared = with_teachers(model, train, settings, output, made, account(settings, settings.regress))
        return replace(prepared, callbacks=path_of(settings, dev), after=judge)

    trained = run_frame(
        Student(train.texts), "distil", settings, output, train, prepare,
        dev=dev, resume=resume, overwrite=overwrite,
    )  # fmt: skip
    return Distilled(trained, accounts[0] if accounts else None)


def objective(model: SentenceTransformer, settings: DistilSettings, stores: list[TeacherStore]) -> nn.Module:
    """Return the objective; the weights of its maps are drawn here, so the seed must be set."""
    arguments = terms(model, settings, stores)
    dim = model.get_embedding_dimension()
    if dim is None:
        raise ModelError("Distillation needs the width of the student's embeddings, and this model does not say it.")
    widths = [store.dim for store in stores]
    return Distillation(model, widths=widths, dim=dim, regress=settings.regress, **arguments).to(model.device)


class Student(BiEncoder):
    """A bi-encoder that is made from a teacher where it is not named, and trained on inputs cut shorter than its own.

    Args:
        texts: to be trained on.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts

    def build(self, settings: EncoderSettings) -> SentenceTransformer:
        """Return the student before training."""
        if not isinstance(settings, DistilSettings):
            raise TypeError(f"A student is made by DistilSettings; received {type(settings).__name__}.")
        return make_student(
            settings.model, settings.teacher[0], self.texts,
            spacing=settings.spacing, pooling=settings.pooling, first=settings.first,
            teacher_pooling=settings.teacher_pooling,
        )  # fmt: skip

    def fit(
        self,
        model: SentenceTransformer,
        dataset: Any,
        objective: nn.Module,
        settings: EncoderSettings,
        folder: Path,
        **how: Any,
    ) -> TrainOutput:
        """Train on inputs of the length of the settings; the student then reads as many tokens as it did before."""
        own = model.max_seq_length
        if is_static(settings.model) or settings.max_seq_length is None or not isinstance(own, int):
            return super().fit(model, dataset, objective, settings, folder, **how)
        model.max_seq_length = min(own, settings.max_seq_length)
        try:
            return super().fit(model, dataset, objective, settings, folder, **how)
        finally:
            model.max_seq_length = own
