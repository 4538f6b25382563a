"""Losses as modules: the functions of :mod:`samesense.losses` as sentence-transformers' trainers take them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from samesense.encoder.batching import embed_columns
from samesense.losses import cosent
from samesense.training.gather import gather


class CoSENT(nn.Module):
    """CoSENT for a ``SentenceTransformerTrainer``: two text columns and a numeric label.

    Both columns go through the model together, sorted by length, and the loss is formed in float32 outside autocast.

    Args:
        model: the sentence-transformers model to train.
        temperature: divides the cosines; 0.05 is the papers' scale of 20.
        margin: labels must differ by more than this to be compared.
        token_budget: most tokens whose activations are held at once; larger batches go through the model in parts, with
            the same loss and gradient. ``None`` holds all.

    Under DDP the loss is that of the joined batch: scores and labels are gathered, two numbers a pair, no embeddings.

    Example:
        ``SentenceTransformerTrainer(model=model, train_dataset=dataset, loss=CoSENT(model))``
    """

    def __init__(
        self, model: nn.Module, *, temperature: float = 0.05, margin: float = 0.0, token_budget: int | None = None
    ) -> None:
        super().__init__()
        self.model = model
        self.temperature = temperature
        self.margin = margin
        self.token_budget = token_budget

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor) -> Tensor:
        """Return the scalar loss of one batch of tokenised columns and their ``(pairs,)`` labels."""
        embeddings = embed_columns(self.model, list(sentence_features), token_budget=self.token_budget)
        return self.compute_loss_from_embeddings(embeddings, labels)

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor) -> Tensor:
        """Return the scalar loss of two ``(pairs, dim)`` tensors and ``(pairs,)`` labels."""
        if len(embeddings) != 2:
            raise ValueError(f"CoSENT compares two text columns; received {len(embeddings)}.")
        with torch.autocast(embeddings[0].device.type, enabled=False):
            scores = gather(F.cosine_similarity(embeddings[0].float(), embeddings[1].float()))
            return cosent(scores, gather(labels.view(-1)), temperature=self.temperature, margin=self.margin)

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings that a model card shows."""
        return {"temperature": self.temperature, "margin": self.margin, "token_budget": self.token_budget}

    @property
    def citation(self) -> str:
        """BibTeX of the method."""
        return """@article{huang2024cosent,
    title = {CoSENT: Consistent Sentence Embedding via Similarity Ranking},
    author = {Huang, Xiang and Peng, Hao and Zou, Dongcheng and Liu, Zhiwei and Li, Jianxin and Liu, Kay and Wu, Jia
        and Su, Jianlin and Yu, Philip S.},
    journal = {IEEE/ACM Transactions on Audio, Speech, and Language Processing},
    year = {2024},
}"""
