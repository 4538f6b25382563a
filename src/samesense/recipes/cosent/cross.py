"""CoSENT for cross-encoders: from scored, binary or NLI pairs to an evaluated model that reads both texts together.

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
from samesense.errors import ConfigError
from samesense.recipes import runner as frame
from samesense.recipes.cosent.recipe import as_dataset
from samesense.recipes.model_adapters import PairEncoder
from samesense.recipes.runner import How, Prepared, Trained
from samesense.recipes.settings import CosentSettings


def run(
    train: PairData,
    settings: CosentSettings,
    output: Path,
    **how: Unpack[How],
) -> Trained:
    """Train, select on dev, evaluate on test, and leave ``output/model`` with everything that led to it beside it.

    Args:
        train: labelled pairs.
        settings: with ``encoder`` ``"cross"`` and ``loss`` ``"cosent"`` or ``"cross-entropy"``.
        output: run folder; see :func:`samesense.recipes.runner.run`.
        how: see :class:`~samesense.recipes.runner.How`.

    Raises:
        ConfigError, DataError, ModelError, OutputError: before the first step, where a run could not end well.
    """
    if settings.encoder != "cross":
        raise ConfigError(
            "This recipe trains cross-encoders; received encoder bi. Take samesense.recipes.cosent.recipe."
        )
    formed = settings.targets(train)

    def prepared(model: CrossEncoder) -> Prepared:
        return Prepared(
            dataset=as_dataset(formed),
            objective=lambda: settings.spec.build(model, settings, formed),
            account=[formed.summary],
            batches=settings.batches,
        )

    return frame.run(PairEncoder(), "cosent-cross", settings, output, train, prepared, **how)
