"""CoSENT for cross-encoders: from scored, binary or NLI pairs to a judged model that reads both texts together.

    samesense train pairs.tsv --encoder cross --dev dev.tsv --test test.tsv --output runs/cross
    samesense train pairs.tsv --encoder cross --loss cross-entropy --output runs/cross-entropy

Source: Huang et al. 2024 (TASLP), Eq. 11 and section V-E; settings in ``configs/cosent-cross.toml``.
Differs: λ is 1 unless a temperature is given; texts keep the segment ids of the model's tokenizer, where the blog's
    code sets all to 0; selection is by Spearman, where the blog's code selects by accuracy.
"""

from __future__ import annotations

from sentence_transformers import CrossEncoder

from samesense.data import PairData
from samesense.data.formats.scale import number_text
from samesense.errors import DataError
from samesense.recipes.runner import Job, TrainingInputs, as_dataset
from samesense.recipes.settings import CosentSettings
from samesense.training.losses.cross import CrossCoSENT, CrossEntropy, PairObjective


def prepare(model: CrossEncoder, job: Job[PairData, CosentSettings]) -> TrainingInputs:
    """Return what a cross-encoder is trained on: labels as they are for CoSENT, on 0 to 1 for cross-entropy.

    Raises:
        DataError: if all labels are equal, or cross-entropy needs a scale that is not known.
    """
    settings, train = job.settings, job.data
    if settings.loss == "cosent" and len(set(train.labels)) < 2:
        raise DataError(
            f"CoSENT compares pairs with different labels; all {len(train)} labels of {train.source} are "
            f"{number_text(train.labels[0])}. Give pairs of two labels at least."
        )
    formed = settings.targets(train)
    scale = f", temperature {settings.temperature:g}" if settings.loss == "cosent" else ""
    return TrainingInputs(
        dataset=as_dataset(formed.columns),
        loss=lambda: objective_of(model, settings),
        summary=[f"loss: {formed.account}{scale}"],
        batches=settings.batches,
    )


def objective_of(model: CrossEncoder, settings: CosentSettings) -> PairObjective:
    """Return the objective that ``settings.loss`` names."""
    budget = settings.mini_batch_num_tokens
    if settings.loss == "cosent":
        return CrossCoSENT(
            model, temperature=settings.temperature, margin=settings.margin, mini_batch_num_tokens=budget
        )
    return CrossEntropy(model, mini_batch_num_tokens=budget)
