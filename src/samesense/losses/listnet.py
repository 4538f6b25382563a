"""ListNet: the student's top-one distribution of each list against the teacher's.

    L_i = -sum over j of softmax(teacher_i / teacher_temperature)_j log softmax(student_i / student_temperature)_j

The lists are the rows of two score matrices; the loss is their mean or sum.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from samesense.losses.cosine import Reduction, ranked_lists, reduced, rowwise, tempered


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
        student: ``(n, m)`` scores, one list a row.
        teacher: ``(n, m)`` scores of the same candidates; never receives a gradient.
        student_temperature: divides the student's scores (tau2 of the paper).
        teacher_temperature: divides the teacher's scores (tau3); half of the student's served best there.
        include_diagonal: keep entry i of list i, the anchor's own positive. Without it the matrices must be square.
        reduction: ``"mean"`` or ``"sum"`` over lists.

    Returns:
        Scalar in float32 (float64 for a float64 student): a cross-entropy, so least at the teacher's entropy, not at 0.

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
