"""CoSENT, and the losses it is compared with: from scored, binary or NLI pairs to an evaluated, usable model.

    samesense train pairs.tsv --dev dev.tsv --test test.tsv --output runs/pairs
    samesense train pairs.tsv --loss contrastive --threshold 0.5 --output runs/contrastive
    samesense train pairs.tsv --encoder cross --loss cross-entropy --output runs/cross-entropy

Source: Huang et al. 2024 (TASLP); for cross-encoders Eq. 11 and section V-E. Settings in ``configs/cosent.toml``,
    ``configs/cosent-nli.toml`` and ``configs/cosent-cross.toml``. Every loss is trained alike and selected by Spearman.
Differs: batches are drawn again each epoch, where some public codes keep the file's order; poolings ignore padding.
    On NLI data batch and epoch are those of the paper's unsupervised tasks, whose pooling (first-last for BERT, CLS for
    RoBERTa) must be set: without it a bare transformer has that of its other tasks, the mean.
    Of cross-encoders, λ is 1 unless a temperature is given; texts keep the segment ids of the model's tokenizer, where
    the blog's code sets all to 0; selection is by Spearman, where the blog's code selects by accuracy.
"""

from __future__ import annotations

from sentence_transformers import CrossEncoder, SentenceTransformer

from samesense.data import PairData
from samesense.data.pairs.targets import Targets, count_compared_pairs
from samesense.execution.ranks import world_size
from samesense.recipes.cosent.settings import CosentSettings
from samesense.recipes.run.job import Job, TrainingInputs
from samesense.training.batches import share_without_comparison
from samesense.training.dataset import as_dataset

WORTH_SAYING = 0.01
"""Share of batches without a comparison from which on it is reported."""

LISTS = 0.5
"""Share of the pairs with a first text of two labels from which on they may be candidates of queries."""


def prepare(model: SentenceTransformer | CrossEncoder, job: Job[PairData, CosentSettings]) -> TrainingInputs:
    """Return what a bi-encoder or a cross-encoder is trained on."""
    settings = job.settings
    formed = job.settings.targets(job.data)
    return TrainingInputs(
        dataset=as_dataset(formed.trainer_columns()),
        loss=lambda: settings.spec.build(model, settings, formed),
        summary=_summary(job.data, formed, settings),
        batches=settings.batches if formed.groups is None else "grouped",
    )


def _summary(data: PairData, formed: Targets, settings: CosentSettings) -> list[str]:
    """Return what there is to say about labels, and about what the batches compare."""
    if formed.groups is not None:
        return [formed.summary, "batches: of whole groups"]
    if settings.loss != "cosent" and settings.batches != "label-aware":
        return [formed.summary]
    return [formed.summary, *_remark_on_labels(formed, settings), *_remark_on_lists(data, settings)]


def _remark_on_labels(formed: Targets, settings: CosentSettings) -> list[str]:
    """Return what there is to say about batches of one label."""
    # The loss compares the rows of all processes with each other.
    lacking = share_without_comparison(formed.columns["label"], settings.batch_size * world_size())
    if settings.batches == "label-aware":
        return [f"batches: each with two labels; of random ones {lacking:.1%} would have one only"]
    if lacking < WORTH_SAYING:
        return []
    most = "warning: " if lacking >= 0.5 else ""
    lesson = settings.spec.lesson
    advice = lesson.advice(settings.batch_size, settings.batches)
    return [f"{most}batches: {lacking:.1%} {lesson.lacking} and teach nothing; {advice}"]


def _remark_on_lists(data: PairData, settings: CosentSettings) -> list[str]:
    """Return for a re-ranker whether the pairs look like graded candidates of queries, which `groups` is for."""
    if settings.loss != "cosent" or settings.encoder != "cross":
        return []
    compared = count_compared_pairs(data)
    if compared < LISTS * len(data):
        return []
    return [
        f"groups: {compared} of {len(data)} pairs have one with the same first text and another label; if these are "
        "candidates of a query, groups first compares them with each other only"
    ]
