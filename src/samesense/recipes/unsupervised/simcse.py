"""SimCSE: a sentence and itself under another dropout, or NLI triplets, against all other sentences of the batch.

    samesense train sentences.txt --dev dev.tsv --output runs/simcse
    samesense train nli.tsv --method simcse --config simcse-sup --dev dev.tsv --output runs/simcse-sup

Source: Gao et al. 2021 (SimCSE); settings of its released code in ``configs/simcse.toml`` and
    ``configs/simcse-sup.toml``.
Differs: dev is the set that is given, where the code looks at two whole data sets. The candidates of all processes get
    the gradient of the joined batch. A kept head is sentence-transformers' own ``Dense``, saved with the model.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from samesense.data import PairData
from samesense.data.pairs.targets import Targets
from samesense.data.sentences import Sentences
from samesense.errors import ConfigError
from samesense.recipes.cosent.recipe import as_dataset
from samesense.recipes.runner import How, Prepared, Trained, run_bi
from samesense.recipes.unsupervised.geometry_path import path_of
from samesense.recipes.unsupervised.settings import SimcseSettings
from samesense.recipes.unsupervised.settings import read_for_simcse as read
from samesense.recipes.unsupervised.views import check_two_views, new_head, set_dropout
from samesense.training.losses.base import EmbeddingLoss
from samesense.training.losses.mlm import InfoNCEWithMLM, Masking, masked_lm_head
from samesense.training.losses.registry import PAIR_LOSSES
from samesense.training.losses.tuples import InfoNCE

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

__all__ = ["SimcseSettings", "read", "run"]


def run(
    train: Sentences | PairData,
    settings: SimcseSettings,
    output: Path,
    **how: Unpack[How],
) -> Trained:
    """Train, select on dev, judge on test, and leave ``output/model`` with everything that led to it beside it.

    Args:
        train: bare sentences, or for ``supervised`` NLI, binary or triple pairs; see :func:`read`.
        settings: see :class:`SimcseSettings`.
        output: run folder; see :func:`samesense.recipes.runner.run`.
        how: see :class:`~samesense.recipes.runner.How`; selection is without the train-only head.

    Raises:
        ConfigError, DataError, ModelError, OutputError: before the first step, where a run could not end well.
    """
    formed = form(train, settings)

    def prepare(model: SentenceTransformer) -> Prepared:
        if settings.dropout is not None:
            set_dropout(model, settings.dropout)
        if not settings.supervised:
            check_two_views(model, formed.columns["sentence"], "Set dropout, or start from a model with dropout.")
        masked = _masked(model, settings)
        return Prepared(
            dataset=as_dataset(formed),
            objective=lambda: objective(model, settings, masked),
            account=[formed.summary],
            batches=settings.batches,
            callbacks=path_of(settings, how.get("dev")),
        )

    return run_bi("simcse", settings, output, train, prepare, **how)


def form(train: Sentences | PairData, settings: SimcseSettings) -> Targets:
    """Return the columns that the objective takes.

    Raises:
        ConfigError: if bare sentences are given to supervised training, or pairs to the other.
        DataError: if no anchor has both a positive and a hard negative.
    """
    if isinstance(train, PairData) != settings.supervised:
        fix = "Leave out supervised." if settings.supervised else "Set supervised, or read them as bare sentences."
        raise ConfigError(
            f"SimCSE {'with' if settings.supervised else 'without'} supervision takes "
            f"{'labelled pairs' if settings.supervised else 'bare sentences'}; received {type(train).__name__}. {fix}"
        )
    if isinstance(train, PairData):
        return PAIR_LOSSES.targets(train, "triplet")
    return Targets({"sentence": train.texts}, train.summary)


def objective(model: SentenceTransformer, settings: SimcseSettings, masked: dict[str, Any]) -> EmbeddingLoss:
    """Return InfoNCE with the head asked for; its weights are drawn here, so the seed must be set.

    Args:
        model: to be trained; given a kept head in place.
        settings: of the run.
        masked: the parts of masked language modelling, or nothing.
    """
    how: dict[str, Any] = {
        "head": new_head(model, settings.head),
        "temperature": settings.temperature,
        "own_negative_weight": settings.own_negative_weight,
    }
    if masked:
        return InfoNCEWithMLM(model, **masked, **how)
    return InfoNCE(model, mini_batch_num_tokens=settings.mini_batch_num_tokens, **how)


def _masked(model: SentenceTransformer, settings: SimcseSettings) -> dict[str, Any]:
    if not settings.mlm_weight:
        return {}
    return {
        "masking": Masking(model.tokenizer, settings.mlm_share),
        "mlm_head": masked_lm_head(model),
        "mlm_weight": settings.mlm_weight,
    }
