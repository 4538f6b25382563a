"""The objective of a run, made from its settings and from what it is trained on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samesense.data.pairs.targets import Targets
from samesense.training.losses.hard_negatives import SomeHardNegatives
from samesense.training.losses.pairs import MSE, Contrastive, CoSENT, Objective, Softmax
from samesense.training.losses.tuples import InfoNCE, Triplet

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from samesense.recipes.settings import CosentSettings


def objective_of(model: SentenceTransformer, settings: CosentSettings, targets: Targets) -> Objective:
    """Return the objective that ``settings.loss`` names.

    Args:
        model: to be trained.
        settings: the loss and what belongs to it.
        targets: from :func:`samesense.data.pairs.targets.targets` for the same loss.
    """
    budget = settings.mini_batch_num_tokens
    match settings.loss:
        case "cosent":
            return CoSENT(
                model,
                temperature=settings.temperature,
                margin=settings.margin,
                similarity=settings.similarity,
                mini_batch_num_tokens=budget,
            )
        case "contrastive":
            return Contrastive(
                model, threshold=settings.threshold, literal=settings.literal, mini_batch_num_tokens=budget
            )
        case "mse":
            return MSE(model, mini_batch_num_tokens=budget)
        case "softmax":
            classes, dim = targets.classes, model.get_embedding_dimension()
            if classes is None or dim is None:
                raise ValueError(f"softmax needs classes and the width of embeddings; received {classes} and {dim}.")
            return Softmax(model, classes=classes, dim=dim, product=settings.product, mini_batch_num_tokens=budget)
        case "triplet":
            return Triplet(
                model, distance=settings.distance, margin=settings.triplet_margin, mini_batch_num_tokens=budget
            )
        case "info-nce":
            kind = SomeHardNegatives if "label" in targets.columns else InfoNCE
            return kind(model, temperature=settings.temperature, mini_batch_num_tokens=budget)
        case _:
            raise ValueError(f"{settings.loss} is no loss of a bi-encoder.")
