"""GISTEmbed: InfoNCE in which a guide model tells which texts of the batch are false negatives.

    L = mean over anchors of  -log( exp(s_ap / temperature) / sum over c of exp(s_c / temperature) )

``s`` is the model's cosine, ``p`` the anchor's own positive. ``c`` runs over the positives and hard negatives of the
batch, against the anchor; over the other anchors, against the anchor; and over the other positives, against ``p``. A
candidate other than ``p`` counts only if the guide finds it less similar than the anchor and ``p``, by a margin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from samesense.losses.base import EmbeddingLoss
from samesense.losses.cosine import check_finite, check_number, check_rows, cosine_matrix, reduced, rowwise, tempered
from samesense.losses.lazy import torch
from samesense.losses.settings import Temperature
from samesense.losses.spec import LossSpec
from samesense.losses.tuples import TAKES, FilteredDrawnSettings, unfold

if TYPE_CHECKING:
    from torch import Tensor, nn

MarginStrategy = Literal["absolute", "relative"]
"""The margin is a difference of cosines, or a share of the positive's cosine."""

_SLACK = 1e-6
"""Cosines of the guide that differ by less are equal: the same text has the same cosine, but for rounding."""


def gist(
    anchors: Tensor,
    positives: Tensor,
    negatives: Tensor | None = None,
    *,
    guide: Sequence[Tensor],
    temperature: float = 0.05,
    guide_margin: float = 0.0,
    margin_strategy: MarginStrategy = "absolute",
    contrast_anchors: bool = True,
    contrast_positives: bool = True,
) -> Tensor:
    """Return the GISTEmbed loss of one batch, a scalar.

    Args:
        anchors: ``(n, dim)`` embeddings.
        positives: ``(n, dim)`` embeddings, row i belonging to anchor i.
        negatives: ``(m, dim)`` hard negatives, each a candidate of every anchor.
        guide: the guide's embeddings of the anchors, the positives and, if there are any, the negatives, of any
            dimension; they receive no gradient.
        temperature: divides the cosines.
        guide_margin: a candidate must be less similar than the positive by more than this, according to the guide.
        margin_strategy: ``"absolute"``: below ``s - guide_margin``; ``"relative"``: below ``s - guide_margin * |s|``,
            with ``s`` the guide's cosine of anchor and positive.
        contrast_anchors: other anchors are candidates too.
        contrast_positives: other positives are also candidates against the anchor's positive.

    Returns:
        Scalar in float32 (float64 for float64 embeddings): the mean over anchors, 0 for none.

    Raises:
        ValueError: if shapes do not fit, the temperature is not positive, or the margin or its strategy is out of
            range.

    Source: Solatorio 2024 (GISTEmbed), the guided loss; margins, value and gradient are those of ``GISTEmbedLoss`` of
        sentence-transformers 6.2.
    Differs: the temperature is 0.05, as in :func:`~samesense.losses.info_nce`, and 0.01 there. A candidate that is
        exactly as similar as the positive, such as the same text, does not count; there it does.

    Example:
        >>> x = torch.eye(2)
        >>> gist(x, x, guide=[x, x], temperature=1.0, contrast_anchors=False, contrast_positives=False)
        tensor(0.3133)
        >>> gist(x, x, guide=[torch.ones(2, 1), torch.ones(2, 1)])  # to the guide all texts are the same
        tensor(0.)
    """
    check_rows("gist", anchors, positives)
    check_finite("gist", anchors=anchors, positives=positives, negatives=negatives)
    check_number("guide_margin", guide_margin, least=0)
    if margin_strategy not in ("absolute", "relative"):
        raise ValueError(f"margin_strategy must be 'absolute' or 'relative'; received {margin_strategy!r}.")
    columns = [anchors, positives] if negatives is None else [anchors, positives, negatives]
    _check_guide(columns, guide)
    contrasts = {"contrast_anchors": contrast_anchors, "contrast_positives": contrast_positives}
    logits = tempered(_candidate_cosines(columns, **contrasts), temperature)
    # The guide only selects; its scores have no part in the gradient.
    with torch.no_grad():
        guided = _candidate_cosines(guide, **contrasts)
        positive_cosines = guided.diagonal()[:, None]
        margins: Tensor | float = guide_margin
        if margin_strategy == "relative":
            margins = guide_margin * positive_cosines.abs()
        false_negatives = guided >= positive_cosines - margins - _SLACK
        false_negatives.fill_diagonal_(False)  # an anchor's own positive
    # exp(-inf) is 0, so that they do not count.
    rivals = logits.masked_fill(false_negatives, -torch.inf)
    return reduced(rowwise(partial(torch.logsumexp, dim=1), rivals) - logits.diagonal(), "mean")


def _check_guide(columns: Sequence[Tensor], guide: Sequence[Tensor]) -> None:
    """Raise ValueError unless the guide has one row for each text."""
    rows = [len(column) for column in columns]
    guide_rows = [len(column) for column in guide]
    if rows != guide_rows:
        raise ValueError(
            f"gist takes the guide's embeddings of the same texts, in matrices of {rows} rows; received {guide_rows}."
        )
    for column in guide:
        check_finite("gist", guide=column)


def _candidate_cosines(columns: Sequence[Tensor], *, contrast_anchors: bool, contrast_positives: bool) -> Tensor:
    """Return the cosines ``(n, candidates)`` of each anchor's candidates; column i is the positive of anchor i."""
    anchors, positives, *negatives = columns
    blocks = [cosine_matrix(anchors, candidates) for candidates in (positives, *negatives)]
    if contrast_anchors:
        blocks.append(cosine_matrix(anchors, anchors))
    if contrast_positives:
        blocks.append(cosine_matrix(positives, positives))
    return torch.cat(blocks, dim=1)


class GistSettings(Temperature):
    """Settings of GISTEmbed's formula."""

    guide_margin: float = Field(
        0.0, ge=0, description="by the guide, a negative must be less similar than the positive by more than this"
    )
    margin_strategy: MarginStrategy = Field("absolute", description="the margin is a cosine, or a share of one")
    contrast_anchors: bool = Field(True, description="other anchors are negatives too")
    contrast_positives: bool = Field(True, description="positives are pushed from each other too")


class GuideSettings(FilteredDrawnSettings):
    """Settings of the guide, and of the tuples that it filters."""

    guide: str | None = Field(None, description="gist: model that tells false negatives; its vectors are computed once")
    teacher_cache: str | None = Field(
        None,
        description="gist: folder in which vectors of the guide are kept and looked for [teachers in the run's folder]",
    )


class TupleGIST(EmbeddingLoss):
    """GISTEmbed on tuples of one positive and any number of negatives, whose keys are row numbers of the guide.

    Args:
        guide: function from row numbers ``(texts,)``, the keys of the texts in
            :class:`~samesense.training.tuple_batches.TupleBatches`, to the guide's embeddings ``(texts, dim)``, such as
            the ``rows`` of a :class:`~samesense.training.teachers.TeacherStore`.
        positives: places for positives; 1.
        settings: settings of :func:`samesense.losses.gist`.

    Raises:
        ValueError: if there is more than one place for positives.
    """

    takes = TAKES
    columns = (1, 1)
    labels = "class"

    def __init__(
        self,
        model: nn.Module,
        *,
        guide: Callable[[Tensor], Tensor],
        positives: int = 1,
        mini_batch_num_tokens: int | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(model, mini_batch_num_tokens=mini_batch_num_tokens)
        if positives != 1:
            raise ValueError(f"TupleGIST takes one positive an anchor; received {positives} places for positives.")
        self.guide = guide
        self.settings = {**dict(GistSettings()), **settings}

    def before_gather(self, embeddings: list[Tensor], labels: Tensor | None) -> tuple[list[Tensor], Tensor | None]:
        """Return anchors, positives and negatives, then the guide's embeddings of each."""
        batch = unfold(embeddings[0], labels, 1)
        guide_vectors = self.guide(batch.keys).to(embeddings[0].device)
        return [*batch.columns, *torch.split(guide_vectors, [len(column) for column in batch.columns])], None

    def loss(self, tensors: list[Tensor], labels: Any) -> Tensor:
        """Return :func:`samesense.losses.gist`."""
        return gist(*tensors[:3], guide=tensors[3:], **self.settings)


GIST_OF_TUPLES = LossSpec(name="gist", module=TupleGIST, settings=GistSettings, target_settings=GuideSettings)
