"""RankCSE: SimCSE that also keeps the ranking which teachers give the sentences of a batch.

    samesense train sentences.txt --method rankcse --teacher A --teacher B --dev dev.tsv --output runs/rankcse

Each teacher encodes the sentences once, before the first step; see :mod:`samesense.training.teachers`.

Source: Liu et al. 2023 (RankCSE); settings in ``configs/rankcse.toml``, ``rankcse-listnet.toml`` and, for the ranking
    term of Huang et al. 2024 (TASLP), ``rankcse-cosent.toml``.
Differs: teachers, of any number, are asked once and not in every step, without dropout, each with its own tokenizer,
    pooling and length. What the paper does not say is as in SimCSE: the length, the head, no weight decay.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sentence_transformers import SentenceTransformer

from samesense.data.sentences import Sentences
from samesense.errors import ConfigError
from samesense.losses.rank_cse import RankCSE
from samesense.recipes.run.job import Job, TrainingInputs
from samesense.recipes.teachers import open_teacher
from samesense.recipes.unsupervised.settings import RankcseSettings
from samesense.recipes.unsupervised.views import LossTerms, check_two_views, geometry_callbacks, new_head, set_dropout
from samesense.training.batches import NeighbourBatches
from samesense.training.dataset import as_dataset
from samesense.training.teachers import TeacherStore, teacher_store

NO_DROPOUT = (
    "Set dropout, start from a model with dropout, or learn the ranking from one view alone: views one and beta 0."
)


def prepare(model: SentenceTransformer, job: Job[Sentences, RankcseSettings]) -> TrainingInputs:
    """Return what a model is trained on. Selection is without the train-only head."""
    settings = job.settings
    if settings.gamma and not settings.teacher:
        raise ConfigError("The ranking term learns from a teacher, and none was named. Give a teacher, or gamma 0.")
    return with_teachers(
        model, job, lambda stores: RankCSE(model, **terms(model, settings, stores)), describe(settings)
    )


def with_teachers(
    model: SentenceTransformer, job: Job[Sentences, Any], loss: Callable[[list[TeacherStore]], RankCSE], summary: str
) -> TrainingInputs:
    """Return what a model is trained on: the sentences, and what the teachers make of them.

    Teachers' vectors are kept in ``teachers`` in the run folder, unless the settings name another one. Where ``loss``
    is made, the weights of its head are drawn, so the seed must be set.
    """
    settings = job.settings
    train = job.data
    if settings.dropout is not None:
        set_dropout(model, settings.dropout)
    # After the dropout is set, by which the views differ.
    if settings.views == "two":
        check_two_views(model, train.texts, NO_DROPOUT)
    teachers = [
        open_teacher(name, precision=settings.teacher_precision, pooling=settings.teacher_pooling)
        for name in settings.embedding_models
    ]
    if settings.teacher_cache:
        cache = Path(settings.teacher_cache).expanduser()
    else:
        cache = job.output / "teachers"
    # Filled before the first step; the loss is made after that, and keeps the list.
    stores: list[TeacherStore] = []

    def encode_by_teachers() -> None:
        while teachers:  # each is let go of before the next one works
            stores.append(teacher_store(teachers.pop(0), train, cache, dtype=settings.teacher_dtype))

    terms_of_loss = LossTerms()
    return TrainingInputs(
        dataset=as_dataset(columns(train, settings)),
        loss=lambda: terms_of_loss.follow(loss(stores)),
        summary=[train.summary, summary],
        # Drawn when the training begins, after the teachers have encoded.
        batches=_BatchesOfNeighbours(stores, weights(settings)) if settings.batches == "neighbours" else "random",
        callbacks=[*geometry_callbacks(settings, job.dev), terms_of_loss],
        before_training=encode_by_teachers if teachers else None,
    )


class _BatchesOfNeighbours:
    """Makes the batch sampler from what the teachers have encoded by then.

    The trainer stores its arguments with each checkpoint: this is pickled without the vectors.
    """

    def __init__(self, stores: Sequence[TeacherStore], shares: Sequence[float]) -> None:
        self.stores = stores
        self.shares = shares

    def __call__(self, *args: Any, **keywords: Any) -> NeighbourBatches:
        return NeighbourBatches(*args, **keywords, vectors=joined_vectors(self.stores, self.shares))

    def __getstate__(self) -> dict[str, Any]:
        return {"stores": [], "shares": self.shares}


def joined_vectors(stores: Sequence[TeacherStore], shares: Sequence[float]) -> npt.NDArray[np.float32]:
    """Return unit vectors whose cosines are the weighted means of the teachers' cosines, ``(sentences, dims)``."""
    numbers = np.arange(len(stores[0]))
    parts = [math.sqrt(share) * store.rows(numbers).numpy() for store, share in zip(stores, shares, strict=True)]
    return np.hstack(parts)


def columns(train: Sentences, settings: RankcseSettings) -> dict[str, Sequence[Any]]:
    """Return the sentences, and as label of each the number of its row if there are teachers to be asked by it."""
    columns_by_name: dict[str, Sequence[Any]] = {"sentence": train.texts}
    if settings.embedding_models:
        columns_by_name["label"] = range(len(train))
    return columns_by_name


def describe(settings: RankcseSettings, regress: float = 0.0) -> str:
    """Return, in one line, which terms are learnt, and from whom; ``regress`` is the weight of teachers' vectors."""
    names = {"js": "JS consistency", "community": "minus entropy, the community code's consistency"}
    terms_and_weights = [("InfoNCE", settings.contrast), (names[settings.consistency], settings.beta)]
    teachers = [f"{weight:g} x {name}" for name, weight in zip(settings.teacher, weights(settings), strict=True)]
    terms_and_weights.append((f"{settings.rank} of {' + '.join(teachers)}", settings.gamma))
    terms_and_weights.append((f"distance from {' + '.join(teachers)}", regress))
    return "loss: " + " + ".join(f"{weight:g} x {name}" for name, weight in terms_and_weights if weight)


def weights(settings: RankcseSettings) -> list[float]:
    """Return the share of each teacher, with a sum of 1."""
    relative = settings.teacher_weights or [1.0] * len(settings.teacher)
    return [weight / sum(relative) for weight in relative]


def terms(model: SentenceTransformer, settings: RankcseSettings, stores: list[TeacherStore]) -> dict[str, Any]:
    """Return the arguments of the loss but for the model; the weights of its head are drawn here.

    A kept head is put into ``model``. There is one store a teacher; none where the ranking has no weight.
    """
    return {
        "teachers": [store.rows for store in stores],
        "weights": weights(settings) if stores else None,
        "two_views": settings.views == "two",
        "head": new_head(model, settings.head),
        "mini_batch_num_tokens": settings.mini_batch_num_tokens,
        **{name: getattr(settings, name) for name in _OF_THE_LOSS},
    }


_OF_THE_LOSS = (
    "rank",
    "contrast",
    "beta",
    "gamma",
    "tau1",
    "tau2",
    "tau3",
    "consistency",
    "include_diagonal",
)
