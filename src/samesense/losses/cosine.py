"""Cosines, and the checks, temperature scaling and reduction that losses share.

    cos(u, v) = u . v / (|u| |v|),   0 where either vector is all zeros

Everything is computed in float32 at least, also under autocast; float64 stays float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from samesense.losses.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

Reduction = Literal["mean", "sum"]
"""How one value per row becomes a scalar."""

BLOCK = 2**20
"""Entries of a matrix that :func:`rowwise` holds at once; larger blocks fragment the heap more (measured)."""


def row_cosine(u: Tensor, v: Tensor) -> Tensor:
    """Return the cosine of each row of ``u`` with the same row of ``v``.

    Args:
        u: ``(pairs, dim)`` vectors of any length.
        v: ``(pairs, dim)`` vectors of any length.

    Returns:
        ``(pairs,)`` in [-1, 1] up to rounding, float32 (float64 for float64).

    Raises:
        ValueError: if the shapes differ or are not two-dimensional.

    Source: the definition of the cosine.
    Differs: a vector of zeros has cosine 0 with everything and receives no gradient, where the definition has 0/0.

    Example:
        >>> row_cosine(torch.tensor([[3.0, 4.0], [0.0, 0.0]]), torch.tensor([[1.0, 0.0], [1.0, 0.0]]))
        tensor([0.6000, 0.0000])
    """
    check_rows("row_cosine", u, v)
    check_finite("row_cosine", u=u, v=v)
    return (unit(u) * unit(v)).sum(dim=1)


def cosine_matrix(u: Tensor, v: Tensor) -> Tensor:
    """Return the cosine of every row of ``u`` with every row of ``v``.

    Args:
        u: ``(rows, dim)`` vectors of any length.
        v: ``(columns, dim)`` vectors of any length.

    Returns:
        ``(rows, columns)`` in [-1, 1] up to rounding, float32 (float64 for float64).

    Raises:
        ValueError: if either is not two-dimensional or the dimensions differ.

    Source: the definition of the cosine.
    Differs: zeros as in :func:`row_cosine`.
    """
    if u.ndim != 2 or v.ndim != 2 or u.shape[1] != v.shape[1]:
        raise ValueError(
            f"cosine_matrix takes matrices (rows, dim) and (columns, dim) of one dim; "
            f"received {tuple(u.shape)} and {tuple(v.shape)}."
        )
    check_finite("cosine_matrix", u=u, v=v)
    with torch.autocast(u.device.type, enabled=False):  # autocast would round the product to half precision
        return unit(u) @ unit(v).T


class NotFiniteError(ValueError):
    """A loss was given NaN or infinity, by the data or by a model whose training has diverged."""


def check_finite(loss: str, **tensors: Tensor | None) -> None:
    """Raise NotFiniteError, naming the first such value, if one of the tensors holds NaN or infinity.

    Outputs of a model in training on an accelerator are not checked, because that would synchronize with it in every
    step. The loss and its gradient are then not finite either.
    """
    for name, tensor in tensors.items():
        if tensor is None or not tensor.is_floating_point() or _would_wait(*tensors.values()):
            continue
        if math.isfinite(float(tensor.detach().sum())):  # a finite sum, one quick pass, has only finite terms
            continue
        finite = torch.isfinite(tensor)
        if not bool(finite.all()):  # large numbers may have an infinite sum
            index = (~finite).nonzero()[0].tolist()
            raise NotFiniteError(
                f"{loss} takes finite numbers; received {name}{index} of {tensor[tuple(index)].item()} "
                f"({int((~finite).sum())} of {tensor.numel()} are not finite)."
            )


def _would_wait(*tensors: Tensor | None) -> bool:
    """Return whether the tensors belong to a training step on an accelerator."""
    present = [tensor for tensor in tensors if tensor is not None]
    return any(tensor.requires_grad for tensor in present) and present[0].device.type != "cpu"


def propagate_not_finite(scores: Tensor, targets: Tensor) -> Tensor:
    """Return the scores, NaN where the ``targets`` of the same shape are not finite.

    A loss that only compares its targets would not become NaN by itself. On the CPU :func:`check_finite` has already
    refused such targets.
    """
    if scores.device.type == "cpu":
        return scores
    return scores + (targets * 0).to(scores.dtype)


def check_number(name: str, value: float, *, above: float | None = None, least: float | None = None) -> None:
    """Raise ValueError unless the setting called ``name`` is a finite number within its bound."""
    # "not >", because NaN is neither above nor below.
    if above is not None and not value > above:
        raise ValueError(f"{name} must be > {above:g}; received {value}.")
    if least is not None and not value >= least:
        raise ValueError(f"{name} must be >= {least:g}; received {value}.")
    if not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number; received {value}.")


def check_scores(loss: str, scores: Tensor, labels: Tensor) -> None:
    """Raise ValueError unless there is one score and one label per pair, both ``(pairs,)``."""
    if scores.ndim != 1 or scores.shape != labels.shape:
        raise ValueError(
            f"{loss} takes one score and one label a pair, both of shape (pairs,); "
            f"received scores {tuple(scores.shape)} and labels {tuple(labels.shape)}."
        )
    check_finite(loss, scores=scores, labels=labels)


def check_rows(loss: str, *matrices: Tensor) -> None:
    """Raise ValueError unless all matrices have one shape ``(rows, dim)``."""
    shapes = [tuple(matrix.shape) for matrix in matrices]
    if len(shapes[0]) != 2 or len(set(shapes)) > 1:
        raise ValueError(
            f"{loss} takes {len(shapes)} matrices of one shape (rows, dim); received {', '.join(map(str, shapes))}."
        )


def check_labelled(loss: str, embeddings: Tensor, labels: Tensor) -> None:
    """Raise ValueError unless there is one label per row: ``(n, dim)`` and ``(n,)``."""
    if embeddings.ndim != 2 or labels.shape != embeddings.shape[:1]:
        raise ValueError(
            f"{loss} takes rows (n, dim) and labels (n,); "
            f"received rows {tuple(embeddings.shape)} and labels {tuple(labels.shape)}."
        )
    check_finite(loss, rows=embeddings, labels=labels)


def unit(x: Tensor) -> Tensor:
    """Return ``x`` ``(rows, dim)`` with each row divided by its length; a row of zeros stays, with gradient zero."""
    x = widen(x)
    largest = x.detach().abs().amax(dim=-1, keepdim=True)  # a row's direction ignores its scale, so detaching is exact
    scaled = x / largest.masked_fill(largest == 0, torch.inf)
    # the largest entry is 1 now, so no square overflows or vanishes and only a row of zeros is shorter than 1
    length: Tensor = torch.linalg.vector_norm(scaled, dim=-1, keepdim=True)
    return scaled / length.clamp(min=1)


def widen(x: Tensor) -> Tensor:
    """Return ``x`` in float32, or as it is if it is float64."""
    if x.dtype == torch.float64:
        return x
    return x.float()


def tempered(scores: Tensor, temperature: float, name: str = "temperature") -> Tensor:
    """Return ``scores / temperature``, widened; ValueError, which names it ``name``, unless it is positive."""
    check_number(name, temperature, above=0)
    return widen(scores) / temperature


def reduced(values: Tensor, reduction: Reduction) -> Tensor:
    """Return the mean or the sum of ``values`` ``(n,)``; the mean of none is 0."""
    if reduction not in ("mean", "sum"):
        raise ValueError(f"reduction must be 'mean' or 'sum'; received {reduction!r}.")
    # torch's own mean of an empty tensor is NaN, and one empty batch would end a run
    if reduction == "mean":
        return values.sum() / max(len(values), 1)
    return values.sum()


def rowwise(formula: Callable[..., Tensor], *matrices: Tensor, width: int | None = None) -> Tensor:
    """Return ``formula`` of the matrices, one value per row, computed in blocks of rows to bound the memory.

    If there are several blocks, each is recomputed in the backward pass (checkpointing); the values are the same.

    Args:
        formula: from one block of rows of each matrix to ``(rows,)``; no row may depend on another.
        matrices: ``(n, ...)`` each.
        width: columns of the formula's intermediate matrix; ``None`` takes those of the first matrix.

    Returns:
        ``(n,)``.
    """
    # At least one row, however wide the matrix.
    rows = max(1, BLOCK // max(1, matrices[0].shape[1] if width is None else width))
    if len(matrices[0]) <= rows:
        return formula(*matrices)
    # Loads torch, which the settings of losses do without.
    from torch.utils.checkpoint import checkpoint

    blocks = zip(*(torch.split(matrix, rows) for matrix in matrices), strict=True)
    # No formula draws random numbers, whose state would have to be kept.
    return torch.cat([checkpoint(formula, *block, use_reentrant=False, preserve_rng_state=False) for block in blocks])


def without_diagonal(matrix: Tensor) -> Tensor:
    """Return a square ``(n, n)`` matrix as ``(n, n - 1)``: each row without its diagonal entry, in order."""
    n = len(matrix)
    if not n:
        return matrix
    # after the first entry, every block of n + 1 ends in a diagonal entry
    return matrix.flatten()[1:].reshape(n - 1, n + 1)[:, :-1].reshape(n, n - 1)


def ranked_lists(loss: str, student: Tensor, teacher: Tensor, *, include_diagonal: bool) -> tuple[Tensor, Tensor]:
    """Return student and detached teacher as lists to compare, one per row: ``(n, m)``, or ``(n, n - 1)``."""
    if student.ndim != 2 or student.shape != teacher.shape or 0 in student.shape:
        raise ValueError(
            f"{loss} takes a list of scores a row, student and teacher of one shape (rows, candidates); "
            f"received {tuple(student.shape)} and {tuple(teacher.shape)}."
        )
    check_finite(loss, student=student, teacher=teacher)
    teacher = widen(teacher.detach())
    student = widen(student)
    # A ranking only compares the teacher, which would hide its NaN.
    student = propagate_not_finite(student, teacher)
    if include_diagonal:
        return student, teacher
    if student.shape[0] != student.shape[1]:
        raise ValueError(
            f"{loss} can leave out the diagonal of square matrices only; received {tuple(student.shape)}. "
            "Pass include_diagonal=True for lists of other candidates."
        )
    return without_diagonal(student), without_diagonal(teacher)


def angle_scores(u: Tensor, v: Tensor) -> Tensor:
    """Return the complex-space similarity of each row of ``u`` with the same row of ``v``.

    Args:
        u: ``(pairs, dim)`` embeddings, dim even: the first half is the real part.
        v: ``(pairs, dim)`` embeddings.

    Returns:
        ``(pairs,)`` in [0, sqrt 2], float32 (float64 for float64), the ``scores`` of :func:`~samesense.losses.cosent`.
        A vector scores 1 with itself, which is not the most there is, and the order of the two counts. Zeros score 0.

    Raises:
        ValueError: if the shapes differ or are not two-dimensional, or dim is odd.

    Source: Li and Li 2024 (AnglE), the angle objective, in the form of its released code.
    Differs: none. The paper ranks with temperature 1 where cosines are ranked with 0.05.

    Example:
        >>> angle_scores(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.6, -0.8]]))  # 0.6 real, 0.8 imaginary
        tensor([1.4000])
    """
    check_rows("angle_scores", u, v)
    if u.shape[1] % 2:
        raise ValueError(f"angle_scores halves the embedding, so its dimension must be even; received {u.shape[1]}.")
    check_finite("angle_scores", u=u, v=v)
    a, b = unit(u).chunk(2, dim=1)
    c, d = unit(v).chunk(2, dim=1)
    # The real and the imaginary part of u times the conjugate of v.
    return (a * c + b * d + b * c - a * d).sum(dim=1).abs()
