"""CoSENT: one ranking loss over all differently labelled pairs of a batch.

    L = log(1 + sum over (a, b) with y_a < y_b of exp((s_a - s_b) / temperature))

where ``s`` is the similarity of a pair and ``y`` its label: the loss is large when a lower-labelled pair is the more
similar one. Equal labels are never compared, and a batch without a comparison costs exactly 0.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from samesense.data.pairs import targets as pairs
from samesense.losses.base import CosineLoss
from samesense.losses.cosine import (
    Reduction,
    angle_scores,
    check_number,
    check_scores,
    propagate_not_finite,
    ranked_lists,
    reduced,
    row_cosine,
    rowwise,
    tempered,
)
from samesense.losses.cross_encoder import CrossEncoderLoss
from samesense.losses.lazy import torch
from samesense.losses.lessons import IN_ORDER, OF_LOGITS
from samesense.losses.settings import Temperature
from samesense.losses.spec import LossSpec

if TYPE_CHECKING:
    from torch import Tensor, nn


def cosent(scores: Tensor, labels: Tensor, *, temperature: float = 0.05, margin: float = 0.0) -> Tensor:
    """Return the CoSENT loss of one batch, a scalar.

    Args:
        scores: ``(pairs,)`` similarity of each pair, any scalar (cosine, or the logit of a cross-encoder).
        labels: ``(pairs,)`` numbers on any monotone scale; only their order counts.
        temperature: divides the scores; 0.05 is the papers' scale of 20. Use 1.0 for unbounded logits.
        margin: labels must differ by more than this to be compared; 0 as in the paper. A difference that equals the
            margin within float32 rounding, such as 0.6 and 0.8 with 0.2, is not more.

    Returns:
        Scalar in float32 (float64 for float64 scores): a sum over comparisons, not a mean, so it grows with the batch.

    Raises:
        ValueError: if the shapes differ or are not one-dimensional, or temperature or margin is out of range.

    Source: Huang et al. 2024 (TASLP), Eq. 8 and 10; scale 20 from section V-G. Eq. 11 is the same function of logits.
    Differs: none in value. Sorted by label, each pair needs only the log-sum-exp of all higher-labelled pairs, so
        time is O(n log n) and memory O(n) where the printed double sum is quadratic.

    Example:
        >>> cosent(torch.tensor([0.5, 0.5]), torch.tensor([0.0, 1.0]))  # one comparison of equal scores: log 2
        tensor(0.6931)
    """
    check_scores("cosent", scores, labels)
    check_number("temperature", temperature, above=0)
    check_number("margin", margin, least=0)
    scores = propagate_not_finite(scores, labels)
    labels = labels.double()  # so that whole numbers beyond 2^24 stay different
    # As a list of its own, the form of row_cosent.
    return _ranked(scores[None], labels[None], temperature, margin)[0]


def row_cosent(
    student: Tensor,
    teacher: Tensor,
    *,
    temperature: float = 0.05,
    include_diagonal: bool = False,
    reduction: Reduction = "mean",
) -> Tensor:
    """Return the row-wise CoSENT loss of one batch, a scalar.

    Args:
        student: ``(n, m)`` scores, one list per row.
        teacher: ``(n, m)`` scores of the same candidates; only their order counts, and equal ones are not compared.
        temperature: divides the student's scores; 0.05 is the paper's scale of 20.
        include_diagonal: keep entry i of list i, the anchor's own positive. Without it the matrices must be square.
        reduction: ``"mean"`` or ``"sum"`` over lists; over the comparisons of a list it is always the logarithm of
            the sum.

    Returns:
        Scalar in float32 (float64 for a float64 student). A list without a comparison costs exactly 0.

    Raises:
        ValueError: if the shapes do not fit, or temperature or reduction is out of range.

    Source: Huang et al. 2024 (TASLP), Eq. 10 as the ranking term of Liu et al. 2023 (RankCSE-CoSENT, Table III).
    Differs: the paper gives no formula for the combination. Rows, no diagonal, the scale of 20 and the mean are our
        reading. Each row is sorted once, O(m log m), instead of comparing m^2 couples.

    Example:
        >>> row_cosent(torch.zeros(1, 2), torch.tensor([[0.1, 0.7]]), include_diagonal=True)  # one comparison: log 2
        tensor(0.6931)
    """
    student, teacher = ranked_lists("row_cosent", student, teacher, include_diagonal=include_diagonal)
    return reduced(rowwise(partial(_ranked, temperature=temperature), student, teacher), reduction)


def _ranked(scores: Tensor, labels: Tensor, temperature: float, margin: float = 0.0) -> Tensor:
    """Return the loss ``(rows,)`` of each row of scores and labels, both ``(rows, m)``."""
    ordered, order = labels.sort(dim=1)
    # In the order of the labels, so that all comparisons of a pair are neighbours.
    logits = tempered(scores, temperature).gather(1, order)
    # first position of a label higher by more than the margin, m if there is none: ties and near-ties are skipped
    higher = torch.searchsorted(ordered, _reach(ordered, margin) if margin else ordered, right=True)
    above = (-logits).flip(1).logcumsumexp(dim=1).flip(1)  # log sum of exp(-s) from each position upwards
    above = torch.cat([above, above.new_full((len(above), 1), -torch.inf)], dim=1)
    # The 0 is the 1 in log(1 + sum).
    terms = torch.cat([logits.new_zeros(len(logits), 1), logits + above.gather(1, higher)], dim=1)
    return terms.logsumexp(dim=1)


def _reach(labels: Tensor, margin: float) -> Tensor:
    """Return the highest label that each label is not compared with.

    Margins and labels are decimals: 0.8 - 0.6 is above 0.2 in float32 and below it in float64. The rounding error of
    float32, 2^-24 of each label, is many times smaller than the slack.
    """
    return labels + margin + _SLACK * (labels.abs() + margin)


_SLACK = 1e-6


class CrossCoSENTSettings(Temperature):
    """Settings of CoSENT for both kinds of encoder."""

    margin: float = Field(0.0, ge=0, description="labels must differ by more than this to be compared")


class CoSENTSettings(CrossCoSENTSettings):
    """Settings of CoSENT on embeddings."""

    similarity: Literal["cosine", "angle"] = Field("cosine", description="what is ranked; angle is AnglE's")


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
        if self.settings["similarity"] == "cosine":
            return row_cosine(u, v)
        return angle_scores(u, v)

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


class CrossCoSENT(CrossEncoderLoss):
    """CoSENT of the logits, with labels on any ordinal scale.

    Args:
        temperature: divides the logits; 1/temperature is the paper's λ. Logits are unbounded, so their scale is learnt.
        margin: labels must differ by more than this to be compared.

    Source: Huang et al. 2024 (TASLP), Eq. 11.
    Differs: λ is 1 by default. The paper states 20 for all data sets; its code and the blog's have no λ.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        temperature: float = 1.0,
        margin: float = 0.0,
        mini_batch_num_tokens: int | None = None,
    ) -> None:
        super().__init__(model, mini_batch_num_tokens=mini_batch_num_tokens)
        self.settings = {"temperature": temperature, "margin": margin}

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return :func:`samesense.losses.cosent` of the logits."""
        return cosent(logits, labels, **self.settings)


COSENT_OF_PAIRS = LossSpec(
    name="cosent",
    module=CoSENT,
    lesson=IN_ORDER,
    settings=CoSENTSettings,
    targets=pairs.labels_in_order,
    batches=("label-aware",),
)

COSENT_OF_LOGITS = LossSpec(
    name="cosent",
    encoder="cross",
    module=CrossCoSENT,
    lesson=OF_LOGITS,
    settings=CrossCoSENTSettings,
    targets=pairs.labels_in_order,
    batches=("label-aware",),
)
