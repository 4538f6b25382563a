"""Surrogate: a fast encoder that learns the scores of an Origin from harvested pairs.

    samesense harvest --origin origins/mine --pairs 100000 --output harvests/mine
    samesense train harvests/mine --method surrogate --model FOLDER --output runs/surrogate

The cosine of two sentences, each embedded apart and mean-pooled, is regressed on Origin's score; with ``--encoder
cross`` the one logit of a model that reads both sentences together. Of the pairs, 98 % teach, 1 % select, and 1 %
judge how much of Origin is kept.

Source: Sun et al. 2022 (TACL), sections 3.4, 4.1 and 5.6; settings in ``configs/surrogate.toml``.
Differs: AdamW without decay, which is Adam; warm-up, schedule, batch size and epochs are not stated. The state that
    ranks the second part best is kept, where the paper does not say which. Targets may be spread over 0 to 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer

from samesense.data import PairData
from samesense.errors import MissingExtraError
from samesense.evaluation.pairs import evaluate_pairs
from samesense.inference.models.load import load
from samesense.recipes import runner as frame
from samesense.recipes.model_adapters import BiEncoder, PairEncoder
from samesense.recipes.run_folder import to_card
from samesense.recipes.runner import How, Prepared, Trained
from samesense.recipes.settings import EncoderSettings
from samesense.recipes.surrogate.data import Harvested, read, targets_of
from samesense.recipes.surrogate.settings import SurrogateSettings
from samesense.training.losses.cross import CrossMSE
from samesense.training.losses.pairs import MSE
from samesense.types import Result

if TYPE_CHECKING:
    from datasets import Dataset
    from torch import nn

__all__ = ["Harvested", "SurrogateSettings", "read", "run"]

KEPT = "kept"
"""Where the manifest says how much of Origin was kept."""

TASK = "surrogate"
"""Task of the results on what is held out: its labels are Origin's scores, and no person's."""

LITTLE = 0.02
"""Deviation of the scores below which a squared error hardly tells pairs apart."""


def run(train: Harvested, settings: SurrogateSettings, output: Path, **how: Unpack[How]) -> Trained:
    """Train on Origin's scores, and say how much of Origin was kept.

    Args:
        train: see :func:`~samesense.recipes.surrogate.data.read`.
        settings: see :class:`SurrogateSettings`.
        output: run folder; see :func:`samesense.recipes.runner.run`.
        how: see :class:`~samesense.recipes.runner.How`; ``dev`` is ``train.dev`` where Origin's scores shall select.

    Returns:
        What every run leaves; its results have those on ``train.held`` last.

    Raises:
        ConfigError, DataError, ModelError, OutputError: before the first step, where a run could not end well.
    """
    scale = scale_of(train, settings)

    def prepare(model: Any) -> Prepared:
        return Prepared(
            dataset=as_dataset(train, scale),
            objective=lambda: objective_of(model, settings),
            account=account_of(train, settings, scale),
            after=lambda: keep(output, train.held, settings, scale),
        )

    kind: Any = Regressor() if settings.encoder == "cross" else BiEncoder()
    return frame.run(kind, "surrogate", settings, output, train, prepare, **how)


class Regressor(PairEncoder):
    """A cross-encoder whose score is its logit, since it learns numbers on the scale of a cosine."""

    def build(self, settings: EncoderSettings) -> CrossEncoder:
        """Return the start point, with a head of one logit and nothing behind it."""
        model = super().build(settings)
        model.activation_fn = torch.nn.Identity()
        return model


def objective_of(model: SentenceTransformer | CrossEncoder, settings: SurrogateSettings) -> nn.Module:
    """Return the squared error of the cosine, or of the logit."""
    kind = CrossMSE if settings.encoder == "cross" else MSE
    return kind(model, mini_batch_num_tokens=settings.mini_batch_num_tokens)


def scale_of(train: Harvested, settings: SurrogateSettings) -> tuple[float, float]:
    """Return the scores that become 0 and 1."""
    scores = train.labels()
    return (0.0, 1.0) if settings.targets == "score" else (float(scores.min()), float(scores.max()))


def as_dataset(train: Harvested, scale: tuple[float, float]) -> Dataset:
    """Return what the trainer takes, without a copy of the texts."""
    try:
        from datasets import Dataset
        from datasets.table import InMemoryTable
    except ImportError as error:
        raise MissingExtraError("datasets", "train") from error
    import pyarrow as pa

    labels = pa.array(targets_of(train.labels(), *scale))
    return Dataset(InMemoryTable(train.table.set_column(2, "label", labels)))


def account_of(train: Harvested, settings: SurrogateSettings, scale: tuple[float, float]) -> list[str]:
    """Return, for people, what is learnt from and how scores become targets; a warning if it is hardly anything."""
    low, high = scale
    how = "as they are" if settings.targets == "score" else f"from {low:.4f} to {high:.4f} spread over 0 to 1"
    said = [train.summary, f"{'logits' if settings.encoder == 'cross' else 'cosines'} learn Origin's scores, {how}"]
    deviation = float(train.labels().std())
    if settings.targets == "score" and deviation < LITTLE:
        said.append(
            f"warning: the scores deviate by {deviation:.4f} only, so that a squared error teaches little: spread them "
            "with --targets spread, or make the Origin with --normalisation standardised"
        )
    return said


def keep(
    output: Path, held: PairData, settings: SurrogateSettings, scale: tuple[float, float]
) -> tuple[list[Result], dict[str, Any]]:
    """Judge the model in ``output`` against Origin's scores, and write that into its card.

    Returns:
        ``spearman``, ``pearson`` and ``mse``, the mean squared distance from the targets (the paper's L2), as results
        and for the manifest.
    """
    model = load(output, precision="float32", seed=settings.seed, cache=True)
    found = [replace(one, task=TASK) for one in evaluate_pairs(model, held)]
    distance = np.square(model.scores(held.pairs()) - targets_of(held.labels, *scale)).mean()
    found.append(replace(found[0], metric="mse", value=float(distance), low=None, high=None))
    kept = {"pairs": len(held), **{one.metric: one.value for one in found if one.subset == "all"}}
    to_card(output, "Surrogate", describe_kept(kept))
    return found, {KEPT: kept}


def describe_kept(kept: Mapping[str, float]) -> str:
    """Return one sentence about what was kept, from what the manifest says of it."""
    return (
        f"Against Origin's own scores on {kept['pairs']:,} held-out pairs: Spearman {100 * kept['spearman']:.2f}, "
        f"Pearson {100 * kept['pearson']:.2f}, mean squared distance {kept['mse']:.2g}."
    )
