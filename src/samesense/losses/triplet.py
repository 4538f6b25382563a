"""Triplet loss: the positive closer to the anchor than the negative, by a margin.

    L = mean over triplets of  max(0, d(anchor, positive) - d(anchor, negative) + margin)

with ``d`` the Euclidean distance, or ``1 - cos``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, Field

from samesense.data.pairs import targets as pairs
from samesense.losses.base import EmbeddingLoss
from samesense.losses.cosine import (
    check_finite,
    check_labelled,
    check_number,
    check_rows,
    cosine_matrix,
    reduced,
    row_cosine,
    widen,
)
from samesense.losses.lazy import torch
from samesense.losses.lessons import OF_TRIPLETS
from samesense.losses.spec import LossSpec
from samesense.losses.tuples import FilteredDrawnSettings, PlacesSettings, TupleLoss, unfold

if TYPE_CHECKING:
    from torch import Tensor, nn

Distance = Literal["cosine", "euclidean"]
"""``1 - cos``, or the length of the difference."""

# 1 is the margin of Reimers and Gurevych 2019. Unit vectors at Euclidean distance 1 have the cosine distance 1/2.
MARGINS: dict[str, float] = {"cosine": 0.5, "euclidean": 1.0}
"""Default margin of each distance."""


def triplet(
    anchors: Tensor,
    positives: Tensor,
    negatives: Tensor,
    *,
    distance: Distance = "cosine",
    margin: float | None = None,
) -> Tensor:
    """Return the triplet loss of one batch, a scalar.

    Args:
        anchors: ``(triplets, dim)`` embeddings.
        positives: ``(triplets, dim)`` embeddings.
        negatives: ``(triplets, dim)`` embeddings.
        distance: ``"cosine"`` for ``1 - cos``, ``"euclidean"`` for the length of the difference.
        margin: how much further away the negative must be; ``None`` is 0.5 for cosine and 1 for Euclidean distance.
            Cosine distances, and Euclidean distances of unit vectors, lie in [0, 2]: a margin of 5, the
            default of some libraries, is unreachable there, and every triplet always has a loss.

    Returns:
        Scalar in float32 (float64 for float64 embeddings): the mean over triplets, 0 for none.

    Raises:
        ValueError: if the shapes differ or are not two-dimensional, or distance or margin is out of range.

    Source: Reimers and Gurevych 2019, triplet objective (Euclidean, margin 1); Schroff et al. 2015.
    Differs: cosine distance by default, as sentences are compared by cosine afterwards. Distances are not squared, and
        where two embeddings coincide the Euclidean distance has gradient 0.

    Example:
        >>> a, p, n = torch.tensor([[[1.0, 0.0]], [[0.6, 0.8]], [[0.8, 0.6]]])
        >>> triplet(a, p, n)  # 0.4 - 0.2 + 0.5
        tensor(0.7000)
    """
    check_rows("triplet", anchors, positives, negatives)
    check_finite("triplet", anchors=anchors, positives=positives, negatives=negatives)
    margin = margin_of(distance, margin)
    near = _distances(anchors, positives, distance)
    far = _distances(anchors, negatives, distance)
    return reduced((near - far + margin).clamp(min=0), "mean")


def margin_of(distance: str, margin: float | None) -> float:
    """Return the margin to use with ``distance``; ValueError if either is out of range."""
    if distance not in MARGINS:
        raise ValueError(f"distance must be 'cosine' or 'euclidean'; received {distance!r}.")
    if margin is None:
        return MARGINS[distance]
    check_number("margin", margin, least=0)
    return margin


def _distances(u: Tensor, v: Tensor, distance: str) -> Tensor:
    """Return the distance ``(rows,)`` of each row of ``u`` from the same row of ``v``."""
    if distance == "cosine":
        return 1 - row_cosine(u, v)
    lengths: Tensor = torch.linalg.vector_norm(widen(u) - widen(v), dim=1)
    return lengths


def batch_all(
    embeddings: Tensor, labels: Tensor, *, distance: Distance = "cosine", margin: float | None = None
) -> Tensor:
    """Return the batch-all loss: the mean over the triplets of the batch with a positive loss, a scalar.

    Args:
        embeddings: ``(n, dim)``.
        labels: ``(n,)`` class of each; only equality counts.
        distance: as in :func:`~samesense.losses.triplet`.
        margin: as in :func:`~samesense.losses.triplet`.

    Returns:
        Scalar in float32 (float64 for float64 embeddings); 0 with gradient zero if no triplet has a loss.

    Raises:
        ValueError: if the shapes do not fit, or distance or margin is out of range.

    Source: Hermans et al. 2017, Eq. 6 averaged over non-zero terms.
    Differs: cosine distance by default. Each anchor's negatives are sorted and summed up once, so time is
        O(n^2 log n) and memory O(n^2) where the triplets themselves are cubic.

    Example:
        >>> batch_all(torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.6, 0.8]]), torch.tensor([0, 0, 1]))  # 0 - 0.4 + 0.5
        tensor(0.1000)
    """
    distances, positive, negative = _pairs("batch_all", embeddings, labels, distance)
    limits = distances + margin_of(distance, margin)  # a negative nearer than this costs the difference
    ordered = distances.masked_fill(~negative, torch.inf).sort(dim=1).values
    # For each positive pair: how many negatives are nearer than its limit, and the sum of their distances.
    nearer = torch.searchsorted(ordered.detach(), limits.detach())
    sums = torch.cat([ordered.new_zeros(len(ordered), 1), ordered.cumsum(dim=1)], dim=1).gather(1, nearer)
    losses = (nearer * limits - sums)[positive]
    return losses.sum() / nearer[positive].sum().clamp(min=1)


def batch_hard(
    embeddings: Tensor, labels: Tensor, *, distance: Distance = "cosine", margin: float | None = None
) -> Tensor:
    """Return the batch-hard loss: the mean over anchors with their furthest positive and nearest negative, a scalar.

    Args:
        embeddings: ``(n, dim)``.
        labels: ``(n,)`` class of each; only equality counts.
        distance: as in :func:`~samesense.losses.triplet`.
        margin: as in :func:`~samesense.losses.triplet`.

    Returns:
        Scalar in float32 (float64 for float64 embeddings); 0 with gradient zero if no anchor has both. Equally far
        positives, or equally near negatives, share the gradient.

    Raises:
        ValueError: if the shapes do not fit, or distance or margin is out of range.

    Source: Hermans et al. 2017, Eq. 5.
    Differs: cosine distance by default; a mean over anchors where Eq. 5 prints the sum.

    Example:
        >>> batch_hard(torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.6, 0.8]]), torch.tensor([0, 0, 1]))
        tensor(0.1000)
    """
    distances, positive, negative = _pairs("batch_hard", embeddings, labels, distance)
    # amax and amin need a row; the sum keeps the graph for the backward pass.
    if not len(embeddings):
        return distances.sum()
    anchors = positive.any(dim=1) & negative.any(dim=1)  # others have no triplet
    furthest = distances.masked_fill(~positive, -torch.inf)[anchors].amax(dim=1)
    nearest = distances.masked_fill(~negative, torch.inf)[anchors].amin(dim=1)
    return reduced((furthest - nearest + margin_of(distance, margin)).clamp(min=0), "mean")


def _pairs(loss: str, embeddings: Tensor, labels: Tensor, distance: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return distances, a mask of positive pairs and a mask of negative pairs, each ``(n, n)``."""
    check_labelled(loss, embeddings, labels)
    same = labels[:, None] == labels
    positive = same & ~torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    return _distance_matrix(embeddings, distance), positive, ~same


def _distance_matrix(embeddings: Tensor, distance: str) -> Tensor:
    """Return the distances ``(n, n)``; Euclidean ones from differences, because a matrix product cancels small ones."""
    if distance == "cosine":
        return 1 - cosine_matrix(embeddings, embeddings)
    wide = widen(embeddings)
    with torch.autocast(wide.device.type, enabled=False):
        return torch.cdist(wide, wide, compute_mode="donot_use_mm_for_euclid_dist")


class TripletSettings(BaseModel):
    """Settings of triplet losses."""

    distance: Literal["cosine", "euclidean"] = Field("cosine", description="distance")
    triplet_margin: float | None = Field(
        None, ge=0, description="how much nearer the positive must be [cosine 0.5, euclidean 1]"
    )


class Triplet(EmbeddingLoss):
    """Triplet loss: an anchor, a positive and a negative.

    Args:
        distance: ``"cosine"`` or ``"euclidean"``.
        triplet_margin: how much nearer the positive must be; ``None`` is the default of the loss for the distance.
    """

    takes = "three text columns: anchor, positive, negative"
    columns = (3, 3)

    def __init__(
        self,
        model: nn.Module,
        *,
        distance: Literal["cosine", "euclidean"] = "cosine",
        triplet_margin: float | None = None,
        mini_batch_num_tokens: int | None = None,
    ) -> None:
        super().__init__(model, mini_batch_num_tokens=mini_batch_num_tokens)
        self.settings = {"distance": distance, "triplet_margin": triplet_margin}

    def loss(self, tensors: list[Tensor], labels: Any) -> Tensor:
        """Return :func:`samesense.losses.triplet`."""
        return triplet(*tensors, distance=self.settings["distance"], margin=self.settings["triplet_margin"])


class BatchTriplet(EmbeddingLoss):
    """Triplets mined in a batch of sentences with class labels: all with a loss, or the hardest of each anchor.

    Args:
        mining: ``"all"`` or ``"hard"``.
        distance: ``"cosine"`` or ``"euclidean"``.
        triplet_margin: how much nearer the positive must be; ``None`` is the default of the loss for the distance.
    """

    takes = "one text column"
    columns = (1, 1)
    labels = "class"

    def __init__(
        self,
        model: nn.Module,
        *,
        mining: Literal["all", "hard"] = "hard",
        distance: Literal["cosine", "euclidean"] = "cosine",
        triplet_margin: float | None = None,
        mini_batch_num_tokens: int | None = None,
    ) -> None:
        super().__init__(model, mini_batch_num_tokens=mini_batch_num_tokens)
        if mining not in ("all", "hard"):
            raise ValueError(f"mining must be 'all' or 'hard'; received {mining!r}.")
        self.settings = {"mining": mining, "distance": distance, "triplet_margin": triplet_margin}

    def loss(self, tensors: list[Tensor], labels: Tensor) -> Tensor:
        """Return :func:`samesense.losses.batch_all` or :func:`samesense.losses.batch_hard`."""
        mined = batch_all if self.settings["mining"] == "all" else batch_hard
        return mined(tensors[0], labels, distance=self.settings["distance"], margin=self.settings["triplet_margin"])


class TupleTriplet(TupleLoss, Triplet):
    """The triplet loss on tuples of one positive and one negative."""

    def before_gather(self, embeddings: list[Tensor], labels: Tensor | None) -> tuple[list[Tensor], Tensor | None]:
        """Return anchors, positives and negatives."""
        return unfold(embeddings[0], labels, 1).columns, None


class TupleBatchTriplet(TupleLoss, BatchTriplet):
    """Triplets found among the texts of tuples."""


TRIPLET_OF_PAIRS = LossSpec(
    name="triplet",
    module=Triplet,
    lesson=OF_TRIPLETS,
    settings=TripletSettings,
    targets=pairs.formed_triplets,
    kinds=("binary", "nli", "triplet"),
    takes="NLI or binary labels, from which it forms triplets",
)

TRIPLET_OF_TUPLES = LossSpec(
    name="triplet",
    module=TupleTriplet,
    settings=TripletSettings,
    target_settings=FilteredDrawnSettings,
)

BATCH_HARD_OF_TUPLES = LossSpec(
    name="batch-hard",
    module=TupleBatchTriplet,
    settings=TripletSettings,
    target_settings=PlacesSettings,
)
