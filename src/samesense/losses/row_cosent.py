"""CoSENT of every row of a score matrix: the student must order each list as the teacher does.

    L_i = log(1 + sum over (j, k) with t_ij < t_ik of exp((s_ij - s_ik) / temperature))

where ``s`` are the student's scores and ``t`` the teacher's; the loss is the mean or sum over rows.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from samesense.losses.cosine import Reduction, ranked_lists, reduced, rowwise, tempered


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
        student: ``(n, m)`` scores, one list a row.
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


def _ranked(student: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """Return the loss ``(rows,)`` of each row of student and teacher scores, both ``(rows, m)``."""
    ordered, order = teacher.sort(dim=1)
    logits = tempered(student, temperature).gather(1, order)
    higher = torch.searchsorted(ordered, ordered, right=True)  # first place of a higher teacher score; m if none
    above = (-logits).flip(1).logcumsumexp(dim=1).flip(1)  # log sum of exp(-s) from each place upwards
    above = torch.cat([above, above.new_full((len(above), 1), -torch.inf)], dim=1)
    terms = torch.cat([logits.new_zeros(len(logits), 1), logits + above.gather(1, higher)], dim=1)
    return terms.logsumexp(dim=1)
