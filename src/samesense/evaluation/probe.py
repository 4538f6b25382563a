"""Logistic regressions that share their rows, solved together: every fold and every strength of the penalty at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from samesense.errors import ModelError

Floats = npt.NDArray[np.float64]
Classes = npt.NDArray[np.intp]

TOLERANCE = 1e-4
"""Square root of the decrease that the quadratic model still promises, below which a problem counts as solved."""

MEMORY = 10
"""Steps that the quasi-Newton method remembers."""

REFRESH = 10
"""Steps after which the shared Hessian is computed anew."""

SHARED_STEPS = 60
"""Steps of all problems together, before those that are left are solved each with a Hessian of its own."""

MOST_STEPS = 1000
MOST_HALVINGS = 60
ROUNDING = 1e-13
TINY = 1e-150
BLOCK_ROWS = 4096
BLOCK_CELLS = 8_000_000
"""Rows times problems times logits held in one array, which bounds the memory; it does not change any solution."""


def fit_probes(
    features: npt.NDArray[np.floating],
    classes: Classes,
    training: npt.NDArray[np.bool_],
    grid: Sequence[float],
    *,
    tolerance: float = TOLERANCE,
) -> Floats:
    """Solve one regularised softmax regression for each set of training rows and each strength of the penalty.

    Each minimises the mean cross-entropy of its training rows plus ``l2 / 2`` times the squared norm of all weights
    and biases. Two classes are solved as one logit with half the penalty, which has the same minimum.

    The folds differ little, so one Hessian, taken over all rows at the mean of the present weights, preconditions
    L-BFGS on all of them, and each problem starts at its own solution for the next larger penalty. The objective is
    strictly convex: nothing of this changes the solution beyond the tolerance.

    Source: Conneau and Kiela (2018), "SentEval", classifier without hidden layer; Nocedal and Wright (2006),
    "Numerical Optimization", algorithms 3.1 and 7.4.
    Differs: SentEval follows Adam until accuracy on held-out rows stops growing; here the minimum itself is found.

    Args:
        features: finite numbers ``(n, dim)``, without a column for the bias.
        classes: class of each row ``(n,)``, counted from 0.
        training: rows that each problem learns from ``(problems, n)``, at least one each.
        grid: strengths of the penalty, each above 0.
        tolerance: a problem is solved when its objective is within about half the square of this of its minimum.

    Returns:
        Weights ``(len(grid), problems, dim + 1, logits)``, the bias last; one logit for two classes.

    Raises:
        ModelError: if a problem is not solved within the allowed steps.
    """
    x = with_bias(features)
    many = int(classes.max()) + 1
    logits = many if many > 2 else 1
    weights = np.empty((len(grid), len(training), x.shape[1], logits))
    block = max(1, BLOCK_CELLS // (max(x.shape) * logits))
    for start in range(0, len(training), block):
        part = slice(start, start + block)
        share = training[part].T / training[part].sum(axis=1)
        solution = np.zeros((x.shape[1], share.shape[1], logits))
        for at in np.argsort(grid)[::-1]:
            l2 = grid[at] if many > 2 else grid[at] / 2
            solution = _minimise(x, classes, share, l2, solution, tolerance)
            weights[at, part] = solution.transpose(1, 0, 2)
    return weights


def predict(features: npt.NDArray[np.floating], weights: Floats) -> Classes:
    """Return the most probable class of each row ``(n,)``; of equally probable ones the first.

    Args:
        features: as they were fitted ``(n, dim)``.
        weights: one of the solutions ``(dim + 1, logits)``.
    """
    scores = features.astype(np.float64) @ weights[:-1] + weights[-1]
    chosen: Classes = scores.argmax(axis=1) if weights.shape[1] > 1 else (scores[:, 0] > 0).astype(np.intp)
    return chosen


def with_bias(features: npt.NDArray[np.floating]) -> Floats:
    """Return the features in float64 with a last column of ones ``(n, dim + 1)``."""
    x = np.ones((len(features), features.shape[1] + 1))
    x[:, :-1] = features
    return x


def _minimise(x: Floats, classes: Classes, share: Floats, l2: float, weights: Floats, tolerance: float) -> Floats:
    """Return the minimisers ``(dim + 1, problems, logits)`` from a start of the same shape, by L-BFGS.

    ``share`` ``(n, problems)`` is the weight of each row's loss in each problem. The few problems that the shared
    Hessian does not suit, such as separable ones among others that are not, are then solved each with its own.
    """
    cross_entropy = _two_classes if weights.shape[2] == 1 else _softmax

    def objective(margins: Floats, at: Floats) -> tuple[Floats, Floats]:
        value, slope = cross_entropy(margins, classes, share)
        return value + l2 / 2 * _inner(at, at), slope

    alone = share.shape[1] == 1
    margins = _times(x, weights)
    value, slope = objective(margins, weights)
    gradient = _times(x.T, slope) + l2 * weights
    remembered: deque[tuple[Floats, Floats]] = deque(maxlen=MEMORY)
    for step in range(MOST_STEPS if alone else SHARED_STEPS):
        if step % REFRESH == 0:
            precondition = _preconditioner(x, weights.mean(axis=1), l2, np.float64 if alone else np.float32)
            remembered.clear()
        direction = -_newton_step(gradient, remembered, precondition)
        promised = -_inner(gradient, direction)
        unsolved = promised > tolerance**2
        if not unsolved.any():
            return weights
        direction *= unsolved[:, None]
        promised *= unsolved
        change = _times(x, direction)
        length = np.ones(len(promised))
        for _ in range(MOST_HALVINGS):
            moved = weights + length[:, None] * direction
            reached, slope = objective(margins + length[:, None] * change, moved)
            lower = reached <= value * (1 + ROUNDING) - 1e-4 * length * promised
            if lower.all():
                break
            length[~lower] /= 2
        margins += length[:, None] * change
        turned = _times(x.T, slope) + l2 * moved
        remembered.append((moved - weights, turned - gradient))
        weights, value, gradient = moved, reached, turned
    if alone:
        raise ModelError(
            f"A probe must be solved within {MOST_STEPS} steps, and one with L2 {l2:g} is not: its objective may still "
            f"fall by {promised[0]:.1e}. Features whose columns differ by many orders of magnitude can be the cause."
        )
    for one in np.flatnonzero(unsolved):
        weights[:, [one]] = _minimise(x, classes, share[:, [one]], l2, weights[:, [one]], tolerance)
    return weights


def _newton_step(
    gradient: Floats, remembered: deque[tuple[Floats, Floats]], precondition: Callable[[Floats], Floats]
) -> Floats:
    """Return the inverse Hessian, as far as the remembered steps know it, times the gradient."""
    result = gradient.copy()
    shares = []
    for moved, bent in reversed(remembered):
        curvature = _inner(moved, bent)
        known = np.divide(1.0, curvature, out=np.zeros_like(curvature), where=curvature > 0)
        share = known * _inner(moved, result)
        result -= share[:, None] * bent
        shares.append((share, known))
    result = precondition(result)
    if remembered:
        moved, bent = remembered[-1]
        stiffness = _inner(bent, precondition(bent))
        scale = np.divide(_inner(moved, bent), stiffness, out=np.ones_like(stiffness), where=stiffness > 0)
        result *= np.where(scale > 0, scale, 1.0)[:, None]
    for (moved, bent), (share, known) in zip(remembered, reversed(shares), strict=True):
        result += (share - known * _inner(bent, result))[:, None] * moved
    return result


def _preconditioner(x: Floats, weights: Floats, l2: float, dtype: type[np.floating]) -> Callable[[Floats], Floats]:
    """Return the inverse of the Hessian over all rows at ``weights`` ``(dim + 1, logits)``, without its cross terms.

    It is summed in ``dtype``, columns scaled to 1 before and a trace added to the diagonal so that it can be inverted.
    """
    from scipy.linalg import cho_factor, cho_solve

    largest = np.maximum(np.abs(x).max(axis=0), TINY)
    scaled = (x / largest).astype(dtype)
    chances = _chances(x @ weights)
    factors = []
    for spread in (chances * (1 - chances)).T.astype(dtype):
        hessian = np.zeros((x.shape[1], x.shape[1]))
        for start in range(0, len(x), BLOCK_ROWS):
            rows = np.sqrt(spread[start : start + BLOCK_ROWS, None]) * scaled[start : start + BLOCK_ROWS]
            hessian += rows.T @ rows
        hessian *= np.outer(largest, largest) / len(x)
        hessian[np.diag_indices_from(hessian)] += l2 + 100 * np.finfo(dtype).eps * hessian.diagonal()
        factors.append(cho_factor(hessian, lower=True, overwrite_a=True))

    def precondition(gradient: Floats) -> Floats:
        solved = np.stack([cho_solve(f, gradient[..., k]) for k, f in enumerate(factors)], axis=2)
        return solved - solved.mean(axis=2, keepdims=True) if len(factors) > 1 else solved

    return precondition


def _chances(margins: Floats) -> Floats:
    """Return the probability of each logit's class ``(n, logits)``."""
    if margins.shape[1] == 1:
        chances: Floats = 0.5 + 0.5 * np.tanh(margins / 2)
        return chances
    chances = np.exp(margins - margins.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    return chances


def _two_classes(margins: Floats, classes: Classes, share: Floats) -> tuple[Floats, Floats]:
    sign = np.where(classes == 1, 1.0, -1.0)[:, None]
    signed = sign * margins[..., 0]
    small = np.exp(-np.abs(signed))
    value = np.einsum("np,np->p", share, np.log1p(small) - np.minimum(signed, 0))
    slope = -sign * share * np.where(signed > 0, small, 1.0) / (1 + small)
    return value, slope[..., None]


def _softmax(margins: Floats, classes: Classes, share: Floats) -> tuple[Floats, Floats]:
    rows = np.arange(len(classes))
    shifted = margins - margins.max(axis=2, keepdims=True)
    chances = np.exp(shifted)
    total = chances.sum(axis=2)
    value = np.einsum("np,np->p", share, np.log(total) - shifted[rows, :, classes])
    chances *= (share / total)[..., None]
    chances[rows, :, classes] -= share
    return value, chances


def _times(matrix: Floats, columns: Floats) -> Floats:
    """Return ``matrix`` ``(a, b)`` times ``columns`` ``(b, problems, logits)`` as ``(a, problems, logits)``."""
    product: Floats = (matrix @ columns.reshape(len(columns), -1)).reshape(len(matrix), *columns.shape[1:])
    return product


def _inner(left: Floats, right: Floats) -> Floats:
    """Return the inner product of each problem ``(problems,)``."""
    product: Floats = np.einsum("dpk,dpk->p", left, right)
    return product
