"""CoSENT: one ranking loss over all differently labelled pairs of a batch.

    L = log(1 + sum over (a, b) with y_a < y_b of exp((s_a - s_b) / temperature))

where ``s`` is the similarity of a pair and ``y`` its label: the loss is large when a lower-labelled pair is the more
similar one. Equal labels are never compared, and a batch without a comparison costs exactly 0. With groups, such as the
candidates of each query, the sum is over the comparisons within a group.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, Field

from samesense.data.pairs import targets as pairs
from samesense.data.pairs.data import PairData
from samesense.data.pairs.targets import Targets
from samesense.losses.base import CosineLoss, LabelKind
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
from samesense.losses.groups import check_groups, split_groups
from samesense.losses.lazy import torch
from samesense.losses.lessons import IN_ORDER, OF_LOGITS
from samesense.losses.settings import Temperature
from samesense.losses.spec import LossSpec

if TYPE_CHECKING:
    from torch import Tensor, nn


def cosent(
    scores: Tensor,
    labels: Tensor,
    *,
    groups: Tensor | None = None,
    temperature: float = 0.05,
    margin: float = 0.0,
) -> Tensor:
    """Return the CoSENT loss of one batch, a scalar.

    Args:
        scores: ``(pairs,)`` similarity of each pair, any scalar (cosine, or the logit of a cross-encoder).
        labels: ``(pairs,)`` numbers on any monotone scale; only their order counts.
        groups: ``(pairs,)`` integers; only pairs of one group are compared, such as the candidates of one query.
            ``None`` compares all pairs, as one group does.
        temperature: divides the scores; 0.05 is the papers' scale of 20. Use 1.0 for unbounded logits.
        margin: labels must differ by more than this to be compared; 0 as in the paper. A difference that equals the
            margin within float32 rounding, such as 0.6 and 0.8 with 0.2, is not more.

    Returns:
        Scalar in float32 (float64 for float64 scores): a sum over comparisons, not a mean, so it grows with the batch.

    Raises:
        ValueError: if the shapes differ or are not one-dimensional, groups are not integers, or temperature or margin
            is out of range.

    Source: Huang et al. 2024 (TASLP), Eq. 8 and 10; scale 20 from section V-G. Eq. 11 is the same function of logits.
    Differs: none in value. Sorted by label, each pair needs only the log-sum-exp of all higher-labelled pairs, so
        time is O(n log n) and memory O(n) where the printed double sum is quadratic. Groups are ours: the double sum is
        restricted to them, with one logarithm for the batch, so that one group is Eq. 10. Memory is then O(n log n).

    Example:
        >>> cosent(torch.tensor([0.5, 0.5]), torch.tensor([0.0, 1.0]))  # one comparison of equal scores: log 2
        tensor(0.6931)
    """
    check_scores("cosent", scores, labels)
    check_number("temperature", temperature, above=0)
    check_number("margin", margin, least=0)
    scores = propagate_not_finite(scores, labels)
    labels = labels.double()  # so that whole numbers beyond 2^24 stay different
    if groups is not None:
        check_groups("cosent", scores, groups)
        return _within_groups(scores, labels, groups, temperature, margin)
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


def _within_groups(scores: Tensor, labels: Tensor, groups: Tensor, temperature: float, margin: float) -> Tensor:
    """Return the loss, a scalar, of the comparisons within groups; all arguments ``(pairs,)``."""
    levels, level = torch.unique(labels, return_inverse=True)
    _, number = torch.unique(groups, return_inverse=True)
    # One integer that sorts by group, then by label; a group's keys end before (number + 1) * width.
    width = len(levels) + 1
    keys, order = (number * width + level).sort()
    number = number[order]
    # The number of levels up to that which each label is not compared with is the first level that it is.
    first_level = torch.searchsorted(levels, _reach(levels, margin) if margin else levels, right=True)[level[order]]
    higher = torch.searchsorted(keys, number * width + first_level)
    compared = higher < torch.searchsorted(number, number, right=True)
    logits = tempered(scores, temperature)[order]
    above = _sum_to_end_of_group(-logits, number)[higher.clamp(max=len(keys) - 1)]
    terms = (logits + above).masked_fill(~compared, -torch.inf)
    # The 0 is the 1 in log(1 + sum).
    return torch.cat([logits.new_zeros(1), terms]).logsumexp(dim=0)


def _sum_to_end_of_group(values: Tensor, groups: Tensor) -> Tensor:
    """Return the log-sum-exp of each value and those after it in its group, ``(n,)``; ``groups`` are sorted.

    The spans that are summed double in each of log n passes, so that no group sees the sum of another, from which its
    own could only be subtracted.
    """
    sums = values
    span = 1
    while span < len(values):
        joined = torch.logaddexp(sums[:-span], sums[span:])
        same = groups[:-span] == groups[span:]
        sums = torch.cat([torch.where(same, joined, sums[:-span]), sums[-span:]])
        span *= 2
    return sums


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


class GroupSettings(BaseModel):
    """Setting of what CoSENT compares."""

    groups: Literal["first"] | None = Field(
        None, description="first: compare only pairs with the same first text, in batches of such groups [all pairs]"
    )


class CoSENT(CosineLoss):
    """CoSENT: pairs with labels on any ordinal scale; under DDP only scores and labels are gathered.

    Args:
        temperature: divides the similarities; 0.05 is the papers' scale of 20.
        margin: labels must differ by more than this to be compared.
        similarity: ``"cosine"``, or ``"angle"`` for AnglE's, see :func:`samesense.losses.angle_scores`.
        grouped: compare only pairs of one group. The label of a pair is then ``[label, group]``, in which the group is
            a whole number that is the same in all batches and processes.

    Example:
        ``SentenceTransformerTrainer(model=model, train_dataset=dataset, loss=CoSENT(model))``
    """

    labels: LabelKind = "order"

    def __init__(
        self,
        model: nn.Module,
        *,
        temperature: float = 0.05,
        margin: float = 0.0,
        similarity: Literal["cosine", "angle"] = "cosine",
        grouped: bool = False,
        mini_batch_num_tokens: int | None = None,
    ) -> None:
        super().__init__(model, mini_batch_num_tokens=mini_batch_num_tokens)
        if grouped:
            self.labels = "grouped"
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
        return _cosent_of_rows(tensors[0], labels, grouped=self.labels == "grouped", **options)

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
        grouped: compare only pairs of one group; labels are ``[label, group]``, as for :class:`CoSENT`.

    Source: Huang et al. 2024 (TASLP), Eq. 11.
    Differs: λ is 1 by default. The paper states 20 for all data sets; its code and the blog's have no λ.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        temperature: float = 1.0,
        margin: float = 0.0,
        grouped: bool = False,
        mini_batch_num_tokens: int | None = None,
    ) -> None:
        super().__init__(model, mini_batch_num_tokens=mini_batch_num_tokens)
        self.grouped = grouped
        self.settings = {"temperature": temperature, "margin": margin}

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return :func:`samesense.losses.cosent` of the logits."""
        return _cosent_of_rows(logits, labels, grouped=self.grouped, **self.settings)


def _cosent_of_rows(scores: Tensor, rows: Tensor, *, grouped: bool, **options: Any) -> Tensor:
    """Return :func:`cosent` of scores with labels ``(pairs,)``, or with labels and groups ``(pairs, 2)``."""
    if not grouped:
        return cosent(scores, rows, **options)
    labels, groups = split_groups("CoSENT", rows)
    return cosent(scores, labels, groups=groups, **options)


def _ordered_labels(data: PairData, *, groups: Literal["first"] | None = None) -> Targets:
    targets = pairs.labels_in_order(data)
    if groups is None:
        return targets
    return replace(pairs.grouped_by_first_text(data, targets, fix="Or leave out groups"), settings={"grouped": True})


COSENT_OF_PAIRS = LossSpec(
    name="cosent",
    module=CoSENT,
    lesson=IN_ORDER,
    settings=CoSENTSettings,
    targets=_ordered_labels,
    target_settings=GroupSettings,
    batches=("label-aware",),
)

COSENT_OF_LOGITS = replace(
    COSENT_OF_PAIRS, encoder="cross", module=CrossCoSENT, lesson=OF_LOGITS, settings=CrossCoSENTSettings
)
