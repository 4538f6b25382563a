"""Surrogate: a fast encoder that learns the scores of an Origin from harvested pairs.

    samesense harvest --origin origins/mine --pairs 100000 --output harvests/mine
    samesense train harvests/mine --method surrogate --model FOLDER --output runs/surrogate

The cosine of two sentences, each embedded apart and mean-pooled, is regressed on Origin's score; with ``--encoder
cross`` the one logit of a model that reads both sentences together. Of the pairs, 98 % train, 1 % select, and 1 %
test how much of Origin is kept. A harvest by a bank has a vector of each sentence: there the model learns these, and
how they rank the sentences of each batch, as a student does (:mod:`samesense.recipes.distil.recipe`).

Source: Sun et al. 2022 (TACL), sections 3.4, 4.1 and 5.6; settings in ``configs/surrogate.toml``.
Differs: AdamW without decay, which is Adam; warm-up, schedule, batch size and epochs are not stated. The state that
    ranks the second part best is kept, where the paper does not say which. Targets may be spread over 0 to 1.
    Vectors, where there are any: the paper's Origin has none, and its scores of single pairs teach far less.
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
from samesense.recipes.job import Job, TrainingInputs
from samesense.recipes.run_folder import SECTIONS
from samesense.recipes.runner import as_dataset
from samesense.recipes.surrogate.data import Harvested, targets_of
from samesense.recipes.surrogate.settings import SurrogateSettings
from samesense.training.losses.cross import CrossMSE
from samesense.training.losses.distillation import Distillation
from samesense.training.losses.pairs import MSE
from samesense.types import Result

if TYPE_CHECKING:
    from datasets import Dataset

KEPT = "kept"
"""Where the manifest says how much of Origin was kept."""

TASK = "surrogate"
"""Task of the results on what is held out: its labels are Origin's scores, and no person's."""

LITTLE = 0.02
"""Deviation of the scores below which a squared error hardly tells pairs apart."""


RANKING: dict[str, Any] = {"rank": "listnet", "tau3": 0.05, "contrast": 0.0, "beta": 0.0, "two_views": False}
"""Of the loss where sentences teach: that of distillation."""


def prepare(model: SentenceTransformer | CrossEncoder, job: Job[Harvested, SurrogateSettings]) -> TrainingInputs:
    """Return what a model is trained on: Origin's scores; afterwards it is measured how much of Origin was kept."""
    if job.data.by_sentences:
        return _by_sentences(model, job)
    scale = scale_of(job.data, job.settings)
    if isinstance(model, CrossEncoder):
        model.activation_fn = torch.nn.Identity()  # its score is its logit, for it learns numbers on a cosine's scale
    return TrainingInputs(
        dataset=_dataset(job.data, scale),
        loss=lambda: loss_of(model, job.settings),
        summary=summarize(job.data, job.settings, scale),
        after_training=lambda: measure_kept(job, scale),
    )


def _by_sentences(model: SentenceTransformer, job: Job[Harvested, SurrogateSettings]) -> TrainingInputs:
    """Return what a model is trained on where sentences have vectors: the sentences, each with its row in these."""
    table = job.data.table
    vectors = torch.tensor(rows_of(table["embedding"]))  # a copy: those of Arrow cannot be written to
    dim = model.get_embedding_dimension()
    if dim is None:
        raise ModelError("A Surrogate needs the width of the model's embeddings, and this model does not say it.")

    def loss() -> nn.Module:  # the weights of its map are drawn here
        teacher = {"teachers": [lambda rows: vectors[rows.cpu()]], "widths": [vectors.shape[1]], "dim": dim}
        tokens = job.settings.mini_batch_num_tokens
        return Distillation(model, **teacher, **RANKING, mini_batch_num_tokens=tokens).to(model.device)

    return TrainingInputs(
        dataset=as_dataset({"sentence": table["text"].to_pylist(), "label": list(range(len(table)))}),
        loss=loss,
        summary=[job.data.summary, "embeddings learn Origin's vectors, by a map that is not kept, and their ranking"],
        after_training=lambda: measure_kept(job, (0.0, 1.0)),
    )


def loss_of(model: SentenceTransformer | CrossEncoder, settings: SurrogateSettings) -> nn.Module:
    """Return the squared error of the cosine, or of the logit."""
    kind = CrossMSE if settings.encoder == "cross" else MSE
    return kind(model, mini_batch_num_tokens=settings.mini_batch_num_tokens)


def scale_of(train: Harvested, settings: SurrogateSettings) -> tuple[float, float]:
    """Return the scores that become 0 and 1."""
    scores = train.labels()
    return (0.0, 1.0) if settings.targets == "score" else (float(scores.min()), float(scores.max()))


def _dataset(train: Harvested, scale: tuple[float, float]) -> Dataset:
    """Return what the trainer takes, without a copy of the texts."""
    import pyarrow as pa

    datasets = imported("datasets", "train")
    labels = pa.array(targets_of(train.labels(), *scale))
    return datasets.Dataset(datasets.table.InMemoryTable(train.table.set_column(2, "label", labels)))


def summarize(train: Harvested, settings: SurrogateSettings, scale: tuple[float, float]) -> list[str]:
    """Return, for people, what is learnt from and how scores become targets; a warning if it is hardly anything."""
    low, high = scale
    how = "as they are" if settings.targets == "score" else f"from {low:.4f} to {high:.4f} spread over 0 to 1"
    said = [train.summary, f"{'logits' if settings.encoder == 'cross' else 'cosines'} learn Origin's scores, {how}"]
    deviation = float(train.labels().std())
    if settings.targets == "score" and deviation < LITTLE:
        said.append(
            f"warning: the scores deviate by {deviation:.4f} only, so that a squared error teaches little: spread them "
            "with targets spread, or make the Origin with normalisation standardised"
        )
    return said


def measure_kept(
    job: Job[Harvested, SurrogateSettings], scale: tuple[float, float]
) -> tuple[list[Result], dict[str, Any]]:
    """Evaluate the saved model against Origin's scores on what is held out, and write that into its card.

    Returned are ``spearman``, ``pearson`` and ``mse``, the mean squared distance from the targets (the paper's L2), as
    results and for the manifest, which has the variance of the targets too: a constant has this distance from them.
    """
    held, output = job.data.held, job.output
    model = load(output, precision="float32", seed=job.settings.seed, cache=True)
    found = [replace(one, task=TASK) for one in evaluate_pairs(model, held)]
    targets = targets_of(held.labels, *scale)
    distance = np.square(model.scores(held.pairs()) - targets).mean()
    found.append(replace(found[0], metric="mse", value=float(distance), low=None, high=None))
    kept = {"pairs": len(held), **{one.metric: one.value for one in found if one.subset == "all"}}
    kept["variance"] = float(np.var(targets))
    return found, {KEPT: kept, SECTIONS: {"Surrogate": describe_kept(kept)}}


def describe_kept(kept: Mapping[str, float]) -> str:
    """Return in words what was kept, from what the manifest says of it."""
    scale = "" if kept["mse"] < kept["variance"] else " Its cosines are not on the scale of these scores."
    return (
        f"Against Origin's own scores on {kept['pairs']:,} held-out pairs: Spearman {100 * kept['spearman']:.2f}, "
        f"Pearson {100 * kept['pearson']:.2f}, mean squared distance {kept['mse']:.2g}, where the scores "
        f"have a variance of {kept['variance']:.2g}.{scale}"
    )
