"""SimCSE: a sentence and itself under another dropout, or NLI triplets, against all other sentences of the batch.

    samesense train sentences.txt --dev dev.tsv --output runs/simcse
    samesense train nli.tsv --method simcse --config simcse-sup --dev dev.tsv --output runs/simcse-sup

Source: Gao et al. 2021 (SimCSE); settings of its released code in ``configs/simcse.toml`` and
    ``configs/simcse-sup.toml``.
Differs: dev is the set that is given, where the code evaluates on two whole data sets. The candidates of all processes
    get the gradient of the joined batch. A kept head is sentence-transformers' own ``Dense``, saved with the model.
"""

from __future__ import annotations

from typing import Any

from sentence_transformers import SentenceTransformer

from samesense.data import PairData
from samesense.data.pairs.targets import Targets
from samesense.data.sentences import Sentences
from samesense.errors import ConfigError
from samesense.losses.base import EmbeddingLoss
from samesense.losses.info_nce import InfoNCE
from samesense.losses.mlm import InfoNCEWithMLM, Masking, masked_lm_head
from samesense.losses.registry import PAIR_LOSSES
from samesense.recipes.run.job import Job, TrainingInputs
from samesense.recipes.unsupervised.settings import SimcseSettings
from samesense.recipes.unsupervised.views import check_two_views, geometry_callbacks, new_head, set_dropout
from samesense.training.dataset import as_dataset

NO_DROPOUT = (
    "A language model may gain more by `samesense whiten MODEL TEXTS --output FOLDER`, which trains nothing. Else "
    "start from a model with dropout, or set dropout."
)


def prepare(model: SentenceTransformer, job: Job[Sentences | PairData, SimcseSettings]) -> TrainingInputs:
    """Return what a model is trained on; its dropout is set. Selection is without the train-only head."""
    settings = job.settings
    formed = form(job.data, job.settings)
    if settings.dropout is not None:
        set_dropout(model, settings.dropout)
    # After the dropout is set, by which the views differ.
    if not settings.supervised:
        check_two_views(model, formed.columns["sentence"], NO_DROPOUT)
    masked = _masked(model, settings)
    return TrainingInputs(
        dataset=as_dataset(formed.columns),
        loss=lambda: loss_of(model, settings, masked),
        summary=[formed.summary],
        batches=settings.batches,
        callbacks=geometry_callbacks(settings, job.dev),
    )


def form(train: Sentences | PairData, settings: SimcseSettings) -> Targets:
    """Return the columns that the loss takes."""
    if isinstance(train, PairData) != settings.supervised:
        rule = "SimCSE without supervision takes unlabelled sentences"
        fix = "Set supervised, or read them as unlabelled sentences."
        if settings.supervised:
            rule = "SimCSE with supervision takes labelled pairs"
            fix = "Leave out supervised."
        raise ConfigError(f"{rule}; received {type(train).__name__}. {fix}")
    if isinstance(train, PairData):
        return PAIR_LOSSES.targets(train, "triplet")
    return Targets({"sentence": train.texts}, train.summary)


def loss_of(model: SentenceTransformer, settings: SimcseSettings, masked: dict[str, Any]) -> EmbeddingLoss:
    """Return InfoNCE with the head asked for; its weights are drawn here, so the seed must be set.

    A kept head is put into ``model``.
    """
    options: dict[str, Any] = {
        "head": new_head(model, settings.head),
        "temperature": settings.temperature,
        "own_negative_weight": settings.own_negative_weight,
    }
    if masked:
        return InfoNCEWithMLM(model, **masked, **options)
    return InfoNCE(model, mini_batch_num_tokens=settings.mini_batch_num_tokens, **options)


def _masked(model: SentenceTransformer, settings: SimcseSettings) -> dict[str, Any]:
    if not settings.mlm_weight:
        return {}
    return {
        "masking": Masking(model.tokenizer, settings.mlm_share),
        "mlm_head": masked_lm_head(model),
        "mlm_weight": settings.mlm_weight,
    }
