"""What SimCSE and RankCSE do to a model: see to it that dropout makes two views of a text, and put a head behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import nn

from samesense.encoder.grad_cache import forward
from samesense.errors import ConfigError, ModelError
from samesense.recipes.unsupervised.settings import Head
from samesense.training.losses.tuples import projection

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def set_dropout(model: nn.Module, p: float) -> None:
    """Give every dropout of the model this probability, in place, also the attention's where it is but a number."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = p
        if isinstance(getattr(module, "attention_dropout", None), float):
            module.attention_dropout = p  # type: ignore[assignment]


def check_two_views(model: SentenceTransformer, texts: Sequence[str], advice: str) -> None:
    """Raise if a model in training gives a text the same vector twice; leaves the random state as it was."""
    features = {
        key: value.to(model.device) if isinstance(value, torch.Tensor) else value
        for key, value in model.preprocess(list(texts[:8])).items()
    }
    was_training = model.training
    model.train()
    with torch.random.fork_rng(), torch.no_grad():
        one, other = forward(model, features), forward(model, features)
    model.train(was_training)
    if torch.equal(one, other):
        raise ConfigError(
            "Two views of a sentence differ by dropout, and this model has none: it embeds a text twice alike. "
            f"{advice}"
        )


def new_head(model: SentenceTransformer, head: Head) -> nn.Module | None:
    """Return the head that is trained and thrown away, where that is asked for; a kept one goes behind the model.

    To be called once the seed is set: its weights are drawn here. A kept head is a ``Dense`` behind the model's last
    module, put there in place.
    """
    from sentence_transformers.base.modules import Dense

    dim = model.get_embedding_dimension()
    if dim is None:
        raise ModelError("A head needs the width of the embeddings, and this model does not say it. Set head to none.")
    if head == "kept":
        model.append(Dense(dim, dim).to(model.device))
    return projection(dim).to(model.device) if head == "train-only" else None
