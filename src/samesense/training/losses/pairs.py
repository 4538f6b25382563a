"""Losses of pairs of sentences; for their base see :mod:`samesense.training.losses.base`."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from samesense.losses import angle_scores, contrastive, cosent, mse, row_cosine, softmax, softmax_features
from samesense.training.losses.base import EmbeddingLoss


class CosineLoss(EmbeddingLoss):
    """Base of losses of one similarity per pair, the cosine; under DDP only scores and labels are gathered."""

    def before_gather(self, embeddings: list[Tensor], labels: Tensor | None) -> tuple[list[Tensor], Tensor | None]:
        """Return the similarity ``(pairs,)`` and the labels of this process's pairs."""
        return super().before_gather([self.similarity(*embeddings)], labels)

    def similarity(self, u: Tensor, v: Tensor) -> Tensor:
        """Return the similarity ``(pairs,)`` of each row of ``u`` with the same row of ``v``."""
        return row_cosine(u, v)


class CoSENT(CosineLoss):
    """CoSENT: pairs with labels on any ordinal scale; under DDP only scores and labels are gathered.

    Args:
        temperature: divides the similarities; 0.05 is the papers' scale of 20.
        margin: labels must differ by more than this to be compared.
        similarity: ``"cosine"``, or ``"angle"`` for AnglE's, see :func:`samesense.losses.angle_scores`.

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

    def similarity(self, u: Tensor, v: Tensor) -> Tensor:
        """Return the cosines, or AnglE's similarities."""
        return row_cosine(u, v) if self.settings["similarity"] == "cosine" else angle_scores(u, v)

    def loss(self, tensors: list[Tensor], labels: Tensor) -> Tensor:
        """Return :func:`samesense.losses.cosent` of the similarities."""
        options = {name: self.settings[name] for name in ("temperature", "margin")}
        return cosent(tensors[0], labels, **options)

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


class Contrastive(CosineLoss):
    """Contrastive loss on cosines: pairs with labels 0 and 1.

    Args:
        threshold: negatives below this cosine cost nothing.
        literal: use Eq. 2 of the CoSENT paper as printed, instead of the hinge.
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

    def loss(self, tensors: list[Tensor], labels: Tensor) -> Tensor:
        """Return :func:`samesense.losses.contrastive` of the cosines."""
        return contrastive(tensors[0], labels, **self.settings)


class MSE(CosineLoss):
    """Mean squared error of the cosine: pairs with labels on the cosine's own scale, usually 0 to 1."""

    labels = "number"

    def loss(self, tensors: list[Tensor], labels: Tensor) -> Tensor:
        """Return :func:`samesense.losses.mse` of the cosines."""
        return mse(tensors[0], labels)


class Softmax(EmbeddingLoss):
    """Classification of pairs by (u, v, |u - v|), with integer classes; the head is trained and not kept.

    Args:
        classes: number of classes.
        dim: dimension of the embeddings; ``None`` for that of the model.
        product: add u * v to the features, as InferSent does.
    """

    labels = "class"

    def __init__(
        self,
        model: nn.Module,
        *,
        classes: int,
        dim: int | None = None,
        product: bool = False,
        mini_batch_num_tokens: int | None = None,
    ) -> None:
        super().__init__(model, mini_batch_num_tokens=mini_batch_num_tokens)
        self.settings = {"classes": classes, "product": product}
        dim = model.get_embedding_dimension() if dim is None else dim  # type: ignore[operator]
        self.head = nn.Linear(dim * (4 if product else 3), classes)

    def loss(self, tensors: list[Tensor], labels: Tensor) -> Tensor:
        """Return :func:`samesense.losses.softmax` of the head's logits."""
        features = softmax_features(*tensors, product=self.settings["product"])
        return softmax(self.head(features.to(self.head.weight.dtype)), labels)
