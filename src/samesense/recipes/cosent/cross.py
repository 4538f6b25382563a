"""CoSENT for cross-encoders: from scored, binary or NLI pairs to a judged model that reads both texts together.

    samesense train pairs.tsv --encoder cross --dev dev.tsv --test test.tsv --output runs/cross
    samesense train pairs.tsv --encoder cross --loss cross-entropy --output runs/cross-entropy

Source: Huang et al. 2024 (TASLP), Eq. 11 and section V-E; settings in ``configs/cosent-cross.toml``.
Differs: λ is 1 unless a temperature is given; texts keep the segment ids of the model's tokenizer, where the blog's
    code sets all to 0; selection is by Spearman, where the blog's code selects by accuracy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from sentence_transformers import CrossEncoder

from samesense.data import PairData
from samesense.data.formats.scale import number_text
from samesense.data.pairs.targets import Targets
from samesense.errors import ConfigError, DataError
from samesense.recipes import runner as frame
from samesense.recipes.cosent.recipe import as_dataset
from samesense.recipes.model_adapters import PairEncoder
from samesense.recipes.runner import How, Prepared, Trained
from samesense.recipes.settings import CosentSettings
from samesense.training.losses.cross import CrossCoSENT, CrossEntropy, PairObjective


def run(
    train: PairData,
    settings: CosentSettings,
    output: Path,
    **how: Unpack[How],
) -> Trained:
    """Train, select on dev, judge on test, and leave ``output/model`` with everything that led to it beside it.

    Args:
        train: labelled pairs.
        settings: with ``encoder`` ``"cross"`` and ``loss`` ``"cosent"`` or ``"cross-entropy"``.
        output: run folder; see :func:`samesense.recipes.runner.run`.
        how: see :class:`~samesense.recipes.runner.How`.

    Raises:
        ConfigError, DataError, ModelError, OutputError: before the first step, where a run could not end well.
    """
    formed = prepare(train, settings)

    def prepared(model: CrossEncoder) -> Prepared:
        scale = f", temperature {settings.temperature:g}" if settings.loss == "cosent" else ""
        return Prepared(
            dataset=as_dataset(formed),
            objective=lambda: objective_of(model, settings),
            account=[f"loss: {formed.account}{scale}"],
            batches=settings.batches,
        )

    return frame.run(PairEncoder(), "cosent-cross", settings, output, train, prepared, **how)


def prepare(train: PairData, settings: CosentSettings) -> Targets:
    """Return what the loss is trained on: labels as they are for CoSENT, on 0 to 1 for cross-entropy.

    Raises:
        ConfigError: if the settings are not those of a cross-encoder.
        DataError: if all labels are equal, or cross-entropy needs a scale that is not known.
    """
    if settings.encoder != "cross":
        raise ConfigError(
            "This recipe trains cross-encoders; received encoder bi. Take samesense.recipes.cosent.recipe."
        )
    if settings.loss == "cosent" and len(set(train.labels)) < 2:
        raise DataError(
            f"CoSENT compares pairs with different labels; all {len(train)} labels of {train.source} are "
            f"{number_text(train.labels[0])}. Give pairs of two labels at least."
        )
    return settings.targets(train)


def objective_of(model: CrossEncoder, settings: CosentSettings) -> PairObjective:
    """Return the objective that ``settings.loss`` names."""
    budget = settings.mini_batch_num_tokens
    if settings.loss == "cosent":
        return CrossCoSENT(
            model, temperature=settings.temperature, margin=settings.margin, mini_batch_num_tokens=budget
        )
    return CrossEntropy(model, mini_batch_num_tokens=budget)
