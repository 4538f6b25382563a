"""Surrogate: a fast encoder trained on an Origin's scores of harvested pairs.

    samesense harvest --origin origins/mine --pairs 100000 --output harvests/mine
    samesense train harvests/mine --method surrogate --model FOLDER --output runs/surrogate

The cosine of two separately embedded, mean-pooled sentences is regressed on Origin's score; with ``--encoder cross``
the logit of a model that reads both sentences together. 98 % of the pairs train, 1 % select, and 1 % test how well the
model matches Origin. A harvest by next words has a vector for each sentence: there the model learns the vectors, and
their ranking of the sentences of each batch, as in distillation (:mod:`samesense.recipes.distil.recipe`).

Source: Sun et al. 2022 (TACL), sections 3.4, 4.1 and 5.6; settings in ``configs/surrogate.toml``.
Differs: AdamW without decay, which is Adam; warm-up, schedule, batch size and epochs are not stated. The checkpoint
    with the best ranking on dev is kept; the paper does not say which. Targets may be spread over 0 to 1. Training on
    vectors, where there are any: the paper's Origin has none, and scores of single pairs teach far less.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from torch import nn

from samesense.encoder.vectors.stored import rows_of
from samesense.errors import ModelError
from samesense.evaluation.sts import evaluate_pairs
from samesense.failures import imported
from samesense.inference.models.load import load
from samesense.losses.distillation import Distillation
from samesense.losses.mse import MSE, CrossMSE
from samesense.recipes.run.job import FurtherResults, Job, TrainingInputs
from samesense.recipes.run.run_folder import SECTIONS
from samesense.recipes.surrogate.data import Harvested, targets_of
from samesense.recipes.surrogate.settings import SurrogateSettings
from samesense.training.dataset import as_dataset

if TYPE_CHECKING:
    from datasets import Dataset

KEPT = "kept"
"""Key of the manifest for the agreement with Origin."""

TASK = "surrogate"
"""Task of the results on held-out pairs, whose labels are Origin's scores, not human ones."""

LITTLE = 0.02
"""Deviation of the scores below which a squared error hardly distinguishes pairs."""


RANKING: dict[str, Any] = {"rank": "listnet", "tau3": 0.05, "contrast": 0.0, "beta": 0.0, "two_views": False}
"""Settings of the distillation loss, for training on sentences."""


def prepare(model: SentenceTransformer | CrossEncoder, job: Job[Harvested, SurrogateSettings]) -> TrainingInputs:
    """Return data and loss for training on Origin's scores, followed by a test of the agreement with Origin."""
    if job.data.by_sentences:
        return _by_sentences(model, job)
    scale = scale_of(job.data, job.settings)
    if isinstance(model, CrossEncoder):
        model.activation_fn = torch.nn.Identity()  # the score is the logit, as the targets are on a cosine's scale
    return TrainingInputs(
        dataset=_dataset(job.data, scale),
        loss=lambda: loss_of(model, job.settings),
        summary=summarize(job.data, job.settings, scale),
        after_training=lambda: measure_kept(job, scale),
    )


def _by_sentences(model: SentenceTransformer, job: Job[Harvested, SurrogateSettings]) -> TrainingInputs:
    """Return data and loss for training on sentences with vectors; the label is the row of the vector."""
    table = job.data.table
    vectors = torch.tensor(rows_of(table["embedding"]))  # a copy: Arrow's memory is read-only
    dim = model.get_embedding_dimension()
    if dim is None:
        raise ModelError("A Surrogate needs the width of the model's embeddings, and this model does not say it.")

    def loss() -> nn.Module:  # initializes the weights of its map
        teacher = {"teachers": [lambda rows: vectors[rows.cpu()]], "widths": [vectors.shape[1]], "dim": dim}
        tokens = job.settings.mini_batch_num_tokens
        return Distillation(model, **teacher, **RANKING, mini_batch_num_tokens=tokens).to(model.device)

    return TrainingInputs(
        dataset=as_dataset({"sentence": table["text"].to_pylist(), "label": list(range(len(table)))}),
        loss=loss,
        summary=[job.data.summary, "embeddings learn Origin's vectors, by a map that is not kept, and their ranking"],
        # Targets that are spread are for pairs only, so that scores are compared as they are.
        after_training=lambda: measure_kept(job, (0.0, 1.0)),
    )


def loss_of(model: SentenceTransformer | CrossEncoder, settings: SurrogateSettings) -> nn.Module:
    """Return the squared-error loss of the cosine, or of the logit of a cross-encoder."""
    kind = CrossMSE if settings.encoder == "cross" else MSE
    return kind(model, mini_batch_num_tokens=settings.mini_batch_num_tokens)


def scale_of(train: Harvested, settings: SurrogateSettings) -> tuple[float, float]:
    """Return the scores that are mapped to 0 and 1."""
    if settings.targets == "score":
        return (0.0, 1.0)
    scores = train.labels()
    return (float(scores.min()), float(scores.max()))


def _dataset(train: Harvested, scale: tuple[float, float]) -> Dataset:
    """Return the dataset for the trainer, without copying the texts."""
    # Loaded by then: the harvest is a table of pyarrow's.
    import pyarrow as pa

    datasets = imported("datasets", "train")
    labels = pa.array(targets_of(train.labels(), *scale))
    # The third column is the score, for which its target is put.
    return datasets.Dataset(datasets.table.InMemoryTable(train.table.set_column(2, "label", labels)))


def summarize(train: Harvested, settings: SurrogateSettings, scale: tuple[float, float]) -> list[str]:
    """Return a description of the data and the targets, with a warning if the scores hardly vary."""
    low, high = scale
    mapping = "as they are"
    if settings.targets != "score":
        mapping = f"from {low:.4f} to {high:.4f} spread over 0 to 1"
    lines = [
        train.summary,
        f"{'logits' if settings.encoder == 'cross' else 'cosines'} learn Origin's scores, {mapping}",
    ]
    deviation = float(train.labels().std())
    if settings.targets == "score" and deviation < LITTLE:
        lines.append(
            f"warning: the scores deviate by {deviation:.4f} only, so that a squared error teaches little: spread them "
            "with targets spread, or make the Origin with normalisation standardised"
        )
    return lines


def measure_kept(job: Job[Harvested, SurrogateSettings], scale: tuple[float, float]) -> FurtherResults:
    """Evaluate the saved model against Origin's scores of the held-out pairs.

    Returns ``spearman``, ``pearson`` and ``mse``, the mean squared error (the paper's L2), as results, and the entries
    for the manifest and the card. These have the variance of the targets too, which is the error of a constant.
    """
    held = job.data.held
    model = load(job.output, precision="float32", seed=job.settings.seed, cache=True)
    results = [replace(result, task=TASK) for result in evaluate_pairs(model, held)]
    targets = targets_of(held.labels, *scale)
    error = np.square(model.scores(held.pairs()) - targets).mean()
    results.append(replace(results[0], metric="mse", value=float(error), low=None, high=None))
    agreement = {"pairs": len(held), **{result.metric: result.value for result in results if result.subset == "all"}}
    agreement["variance"] = float(np.var(targets))
    return FurtherResults(results, {KEPT: agreement, SECTIONS: {"Surrogate": describe_kept(agreement)}})


def describe_kept(agreement: Mapping[str, float]) -> str:
    """Return the agreement with Origin in words, from its entry in the manifest."""
    scale = " Its cosines are not on the scale of these scores."
    if agreement["mse"] < agreement["variance"]:
        scale = ""
    return (
        f"Against Origin's own scores on {agreement['pairs']:,} held-out pairs: Spearman "
        f"{100 * agreement['spearman']:.2f}, Pearson {100 * agreement['pearson']:.2f}, mean squared distance "
        f"{agreement['mse']:.2g}, where the scores have a variance of {agreement['variance']:.2g}.{scale}"
    )
