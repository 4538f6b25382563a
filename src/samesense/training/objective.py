"""Losses as modules: the functions of :mod:`samesense.losses` as sentence-transformers' trainers take them.

All of them send every column through the model together, sorted by length, under an optional token budget; form the
loss in float32 outside autocast; and under DDP form it from the rows of all processes, so that several devices give the
value and the gradient of the joined batch. This file holds what takes two columns; ``tuple_objective.py`` the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from samesense.encoder.batching import embed_columns
from samesense.losses import contrastive, cosent, mse, row_cosine, softmax, softmax_features
from samesense.training.gather import gather


class Objective(nn.Module):
    """What all objectives share; each of them says how many columns it takes and forms its loss from embeddings.

    Args:
        model: the sentence-transformers model to train.
        token_budget: most tokens whose activations are held at once; larger batches go through the model in parts, with
            the same loss and gradient. ``None`` holds all.
    """

    takes = "two text columns"
    columns: tuple[int, int | None] = (2, 2)

    def __init__(self, model: nn.Module, *, token_budget: int | None = None) -> None:
        super().__init__()
        self.model = model
        self.token_budget = token_budget
        self.settings: dict[str, Any] = {}

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor | None = None) -> Tensor:
        """Return the scalar loss of one batch of tokenised columns, and their labels where the objective takes any."""
        embeddings = embed_columns(self.model, list(sentence_features), token_budget=self.token_budget)
        return self.compute_loss_from_embeddings(embeddings, labels)

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor | None = None) -> Tensor:
        """Return the scalar loss of ``(batch, dim)`` tensors, one a column, and ``(batch,)`` labels.

        Raises:
            ValueError: if the number of columns does not fit.
        """
        least, most = self.columns
        if len(embeddings) < least or (most is not None and len(embeddings) > most):
            raise ValueError(f"{type(self).__name__} takes {self.takes}; received {len(embeddings)} columns.")
        with torch.autocast(embeddings[0].device.type, enabled=False):
            return self.loss(embeddings, labels)

    def loss(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        """Return the loss of this process's embeddings and labels, joined with those of all others."""
        raise NotImplementedError

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings that a model card shows."""
        return {**self.settings, "token_budget": self.token_budget}


def joined_labels(labels: Tensor | None, objective: nn.Module) -> Tensor:
    """Return the ``(batch,)`` labels of all processes.

    Raises:
        ValueError: if there are none.
    """
    if labels is None:
        raise ValueError(f"{type(objective).__name__} needs a label for each pair, and the data has none.")
    return gather(labels.view(-1))


class CoSENT(Objective):
    """CoSENT: pairs with labels of any monotone scale; under DDP only scores and labels are gathered.

    Args:
        model: the sentence-transformers model to train.
        temperature: divides the cosines; 0.05 is the papers' scale of 20.
        margin: labels must differ by more than this to be compared.
        token_budget: see :class:`Objective`.

    Example:
        ``SentenceTransformerTrainer(model=model, train_dataset=dataset, loss=CoSENT(model))``
    """

    def __init__(
        self, model: nn.Module, *, temperature: float = 0.05, margin: float = 0.0, token_budget: int | None = None
    ) -> None:
        super().__init__(model, token_budget=token_budget)
        self.settings = {"temperature": temperature, "margin": margin}

    def loss(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        """Return :func:`samesense.losses.cosent` of the cosines."""
        return cosent(gather(row_cosine(*embeddings)), joined_labels(labels, self), **self.settings)

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


class Contrastive(Objective):
    """Contrastive loss on cosines: pairs with labels 0 and 1.

    Args:
        model: the sentence-transformers model to train.
        threshold: negatives below this cosine cost nothing.
        literal: the printed Eq. 2 of the CoSENT paper instead of the hinge.
        token_budget: see :class:`Objective`.
    """

    def __init__(
        self, model: nn.Module, *, threshold: float = 0.0, literal: bool = False, token_budget: int | None = None
    ) -> None:
        super().__init__(model, token_budget=token_budget)
        self.settings = {"threshold": threshold, "literal": literal}

    def loss(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        """Return :func:`samesense.losses.contrastive` of the cosines."""
        return contrastive(gather(row_cosine(*embeddings)), joined_labels(labels, self), **self.settings)


class MSE(Objective):
    """Mean squared error of the cosine: pairs with labels on the cosine's own scale, usually 0 to 1."""

    def loss(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        """Return :func:`samesense.losses.mse` of the cosines."""
        return mse(gather(row_cosine(*embeddings)), joined_labels(labels, self))


class Softmax(Objective):
    """Classification of pairs over (u, v, |u - v|): integer classes; the head is trained and not kept.

    Args:
        model: the sentence-transformers model to train.
        classes: number of classes.
        dim: width of the embeddings.
        product: add u * v to the features, as InferSent does.
        token_budget: see :class:`Objective`.
    """

    def __init__(
        self, model: nn.Module, *, classes: int, dim: int, product: bool = False, token_budget: int | None = None
    ) -> None:
        super().__init__(model, token_budget=token_budget)
        self.settings = {"classes": classes, "product": product}
        self.head = nn.Linear(dim * (4 if product else 3), classes)

    def loss(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        """Return :func:`samesense.losses.softmax` of the head's logits."""
        features = softmax_features(*embeddings, product=self.settings["product"])
        logits = self.head(features.to(self.head.weight.dtype))
        return softmax(gather(logits), joined_labels(labels, self))
