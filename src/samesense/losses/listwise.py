"""ListNet: the student's top-one distribution of each list against the teacher's.

    L_i = -sum over j of softmax(teacher_i / teacher_temperature)_j log softmax(student_i / student_temperature)_j

The lists are the rows of two score matrices; the loss is their mean or sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from samesense.losses.cosine import Reduction, ranked_lists, reduced, rowwise, tempered
from samesense.losses.lazy import F

if TYPE_CHECKING:
    from torch import Tensor


def listnet(
    student: Tensor,
    teacher: Tensor,
    *,
    student_temperature: float,
    teacher_temperature: float,
    include_diagonal: bool = False,
    reduction: Reduction = "mean",
) -> Tensor:
    """Return the ListNet loss of one batch, a scalar.

    Args:
        student: ``(n, m)`` scores, one list per row.
        teacher: ``(n, m)`` scores of the same candidates; never receives a gradient.
        student_temperature: divides the student's scores (tau2 of the paper).
        teacher_temperature: divides the teacher's scores (tau3); half of the student's worked best there.
        include_diagonal: keep entry i of list i, the anchor's own positive. Without it the matrices must be square.
        reduction: ``"mean"`` or ``"sum"`` over lists.

    Returns:
        Scalar in float32 (float64 for a float64 student): a cross-entropy, whose minimum is the teacher's entropy.

    Raises:
        ValueError: if the shapes do not fit, or a temperature or the reduction is out of range.

    Source: Cao et al. 2007; Liu et al. 2023 (RankCSE), Eq. 4, its footnote for the diagonal.
    Differs: a mean over lists by default where Eq. 4 prints a sum.

    Example:
        >>> listnet(torch.zeros(3, 3), torch.eye(3), student_temperature=0.05, teacher_temperature=0.025)  # log 2
        tensor(0.6931)
    """
    student, teacher = ranked_lists("listnet", student, teacher, include_diagonal=include_diagonal)

    def cross_entropy(student: Tensor, teacher: Tensor) -> Tensor:
        target = F.softmax(tempered(teacher, teacher_temperature, "teacher_temperature"), dim=1)
        logits = tempered(student, student_temperature, "student_temperature")
        return -(target.to(logits.dtype) * F.log_softmax(logits, dim=1)).sum(dim=1)

    return reduced(rowwise(cross_entropy, student, teacher), reduction)


def listmle(
    student: Tensor,
    teacher: Tensor,
    *,
    student_temperature: float,
    include_diagonal: bool = True,
    reduction: Reduction = "mean",
) -> Tensor:
    """Return the ListMLE loss of one batch, a scalar.

    Args:
        student: ``(n, m)`` scores, one list per row.
        teacher: ``(n, m)`` scores of the same candidates; only their order counts. Equal scores rank in column order.
        student_temperature: divides the student's scores (tau2 of the paper).
        include_diagonal: keep entry i of list i, the anchor's own positive. Without it the matrices must be square.
        reduction: ``"mean"`` or ``"sum"`` over lists; over the positions of a list it is always the sum.

    Returns:
        Scalar in float32 (float64 for a float64 student). A list of m equal scores costs log m!, 496 for m = 128.

    Raises:
        ValueError: if the shapes do not fit, or temperature or reduction is out of range.

    Source: Xia et al. 2008; Liu et al. 2023 (RankCSE), Eq. 5.
    Differs: a mean over lists by default where Eq. 5 prints a sum. Running sums from the last rank upwards make a list
        O(m log m), its ranking included.

    Example:
        >>> listmle(torch.zeros(1, 3), torch.tensor([[0.5, -1.0, 0.2]]), student_temperature=0.05)  # log 3!
        tensor(1.7918)
    """
    student, teacher = ranked_lists("listmle", student, teacher, include_diagonal=include_diagonal)

    def unlikelihood(student: Tensor, teacher: Tensor) -> Tensor:
        logits = tempered(student, student_temperature, "student_temperature")
        # Logits in the teacher's order, the best first.
        ranked = logits.gather(1, teacher.argsort(dim=1, descending=True, stable=True))
        remaining = ranked.flip(1).logcumsumexp(dim=1).flip(1)  # log sum over the candidates not yet ranked
        return (remaining - ranked).sum(dim=1)

    return reduced(rowwise(unlikelihood, student, teacher), reduction)
