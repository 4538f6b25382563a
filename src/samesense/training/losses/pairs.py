"""Losses as modules: the functions of :mod:`samesense.losses` as sentence-transformers' trainers take them.

All of them send every column through the model together, sorted by length, under an optional token budget; form the
loss in float32 outside autocast; and under DDP form it from the rows of all processes, so that several devices give the
value and the gradient of the joined batch. A head is applied to the joined rows: every process then has its whole
gradient, which nothing would average, because the trainer gives DDP the model and not the objective.
This file holds what takes two columns; ``tuple_objective.py`` and ``sentence_objective.py`` hold the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import torch
from torch import Tensor, nn

from samesense.encoder.batching import embed_columns
from samesense.losses import angle_scores, contrastive, cosent, mse, row_cosine, softmax, softmax_features
from samesense.training.losses.gather import gather

LabelKind = Literal["none", "order", "binary", "number", "class", "row"]
"""Labels an objective takes: none, any numbers whose order counts, 0 and 1, numbers on the cosine's scale, integer
classes from 0, or a row of numbers an example."""


class Objective(nn.Module):
    """What all objectives share; each of them says how many columns it takes and forms its loss from embeddings.

    Args:
        model: the sentence-transformers model to train.
        mini_batch_num_tokens: most tokens whose activations are held at once; larger batches go through the model in
            parts, with the same loss and gradient. ``None`` holds all.
    """

    takes = "two text columns"
    columns: tuple[int, int | None] = (2, 2)
    labels: LabelKind = "none"

    def __init__(self, model: nn.Module, *, mini_batch_num_tokens: int | None = None) -> None:
        super().__init__()
        self.model = model
        self.mini_batch_num_tokens = mini_batch_num_tokens
        self.settings: dict[str, Any] = {}

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor | None = None) -> Tensor:
        """Return the scalar loss of one batch of tokenised columns, and their labels where the objective takes any.

        Raises:
            ValueError: if the number of columns does not fit.
        """
        columns = list(sentence_features)
        if not self.columns_fit(len(columns), labels):
            raise ValueError(f"{type(self).__name__} takes {self.takes}; received {len(columns)} columns.")
        embeddings = embed_columns(self.model, self.views(columns), mini_batch_num_tokens=self.mini_batch_num_tokens)
        return self.compute_loss_from_embeddings(embeddings, labels)

    def views(self, columns: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the columns that go through the model; an objective may take one of them twice."""
        return columns

    def columns_fit(self, columns: int, labels: Tensor | None) -> bool:
        """Return whether this many columns fit."""
        least, most = self.columns
        return least <= columns <= (columns if most is None else most)

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor | None = None) -> Tensor:
        """Return the scalar loss of ``(batch, dim)`` tensors, one a column and view, and the batch's labels."""
        with torch.autocast(embeddings[0].device.type, enabled=False):
            return self.loss(embeddings, labels)

    def loss(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        """Return the loss of this process's embeddings and labels, joined with those of all others."""
        raise NotImplementedError

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings that a model card shows."""
        return {**self.settings, "mini_batch_num_tokens": self.mini_batch_num_tokens}


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
        temperature: divides the similarities; 0.05 is the papers' scale of 20.
        margin: labels must differ by more than this to be compared.
        similarity: ``"cosine"``, or ``"angle"`` for AnglE's, see :func:`samesense.losses.angle_scores`.
        mini_batch_num_tokens: see :class:`Objective`.

    Example:
        ``SentenceTransformerTrainer(model=model, train_dataset=dataset, loss=CoSENT(model))``
    """

    labels = "order"

    def __init__(
        self,
        model: nn.Module,
        *,
        temperature: float = 0.05,
        margin: float = 0.0,
        similarity: Literal["cosine", "angle"] = "cosine",
        mini_batch_num_tokens: int | None = None,
    ) -> None:
        super().__init__(model, mini_batch_num_tokens=mini_batch_num_tokens)
        if similarity not in ("cosine", "angle"):
            raise ValueError(f"similarity must be 'cosine' or 'angle'; received {similarity!r}.")
        self.settings = {"temperature": temperature, "margin": margin, "similarity": similarity}

    def loss(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        """Return :func:`samesense.losses.cosent` of the similarities."""
        similarity = row_cosine if self.settings["similarity"] == "cosine" else angle_scores
        rest = {name: self.settings[name] for name in ("temperature", "margin")}
        return cosent(gather(similarity(*embeddings)), joined_labels(labels, self), **rest)

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
        mini_batch_num_tokens: see :class:`Objective`.
    """

    labels = "binary"

    def __init__(
        self,
        model: nn.Module,
        *,
        threshold: float = 0.0,
        literal: bool = False,
        mini_batch_num_tokens: int | None = None,
    ) -> None:
        super().__init__(model, mini_batch_num_tokens=mini_batch_num_tokens)
        self.settings = {"threshold": threshold, "literal": literal}

    def loss(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        """Return :func:`samesense.losses.contrastive` of the cosines."""
        return contrastive(gather(row_cosine(*embeddings)), joined_labels(labels, self), **self.settings)


class MSE(Objective):
    """Mean squared error of the cosine: pairs with labels on the cosine's own scale, usually 0 to 1."""

    labels = "number"

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
        mini_batch_num_tokens: see :class:`Objective`.
    """

    labels = "class"

    def __init__(
        self,
        model: nn.Module,
        *,
        classes: int,
        dim: int,
        product: bool = False,
        mini_batch_num_tokens: int | None = None,
    ) -> None:
        super().__init__(model, mini_batch_num_tokens=mini_batch_num_tokens)
        self.settings = {"classes": classes, "product": product}
        self.head = nn.Linear(dim * (4 if product else 3), classes)

    def loss(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        """Return :func:`samesense.losses.softmax` of the head's logits."""
        features = softmax_features(*(gather(column) for column in embeddings), product=self.settings["product"])
        return softmax(self.head(features.to(self.head.weight.dtype)), joined_labels(labels, self))
