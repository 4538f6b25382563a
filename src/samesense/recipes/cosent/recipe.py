"""CoSENT, and the losses it is compared with: from scored, binary or NLI pairs to an evaluated, usable model.

    samesense train pairs.tsv --dev dev.tsv --test test.tsv --output runs/pairs
    samesense train pairs.tsv --loss contrastive --threshold 0.5 --output runs/contrastive

Source: Huang et al. 2024 (TASLP); settings in ``configs/cosent.toml`` and ``configs/cosent-nli.toml``. Every loss is
    trained alike and selected by the Spearman of cosines.
Differs: batches are drawn anew each epoch, where some public codes keep the file's order; poolings ignore padding.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from samesense.data import PairData
from samesense.data.pairs.targets import Targets
from samesense.errors import ConfigError, MissingExtraError
from samesense.recipes.runner import How, Prepared, Trained, run_bi
from samesense.recipes.settings import CosentSettings
from samesense.training.batches import share_without_comparison

if TYPE_CHECKING:
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer

WORTH_SAYING = 0.01
"""Share of batches without a comparison from which on it is said."""


def run(
    train: PairData,
    settings: CosentSettings,
    output: Path,
    **how: Unpack[How],
) -> Trained:
    """Train, select on dev, evaluate on test, and leave ``output/model`` with everything that led to it beside it.

    Args:
        train: labelled pairs.
        settings: see :class:`CosentSettings`.
        output: run folder; see :func:`samesense.recipes.runner.run`.
        how: see :class:`~samesense.recipes.runner.How`.

    Raises:
        ConfigError, DataError, ModelError, OutputError: before the first step, where a run could not end well.
    """
    if settings.encoder != "bi":
        raise ConfigError(
            "This recipe trains bi-encoders; received encoder cross. Take samesense.recipes.cosent.cross."
        )
    formed = settings.targets(train)

    def prepare(model: SentenceTransformer) -> Prepared:
        return Prepared(
            dataset=as_dataset(formed),
            objective=lambda: settings.spec.build(model, settings, formed),
            account=_summary(formed, settings),
            batches=settings.batches,
        )

    return run_bi("cosent", settings, output, train, prepare, **how)


def _summary(formed: Targets, settings: CosentSettings) -> list[str]:
    """Return what there is to say about labels, and about batches that cannot be compared."""
    if settings.loss != "cosent" and settings.batches != "label-aware":
        return [formed.summary]
    lacking = share_without_comparison(formed.columns["label"], settings.batch_size)
    if settings.batches == "label-aware":
        return [formed.summary, f"batches: each with two labels; of random ones {lacking:.1%} would have one only"]
    if lacking >= WORTH_SAYING:
        said = f"batches: {lacking:.1%} have one label only and teach nothing; batches label-aware has none"
        return [formed.summary, said]
    return [formed.summary]


def as_dataset(targets: Targets) -> Dataset:
    """Return what the trainer takes: text columns, then ``label`` where there is one."""
    try:
        from datasets import Dataset
    except ImportError as error:
        raise MissingExtraError("datasets", "train") from error
    return Dataset.from_dict(targets.columns)
