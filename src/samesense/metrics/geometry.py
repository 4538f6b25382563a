"""Geometry of embeddings: alignment of positives, uniformity, anisotropy and effective rank."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from samesense.errors import ConfigError, DataError
from samesense.metrics.inputs import Matrix

BLOCK_CELLS = 2_000_000
"""Number of distances that :func:`uniformity` holds at once, which bounds its memory."""

Rows = npt.NDArray[np.float64]
"""Matrix of float64, one row per text."""


def alignment(x: Matrix, y: Matrix) -> float:
    """Return the mean squared distance of positive pairs on the unit sphere; smaller is better.

    Source: Wang and Isola (2020), "Understanding contrastive representation learning through alignment and uniformity
        on the hypersphere", with alpha 2. Rows are scaled to unit length here.

    Args:
        x: embeddings ``(n, dim)``.
        y: embeddings of their positives ``(n, dim)``, row by row.

    Returns:
        A number in [0, 4].

    Raises:
        DataError: if the shapes differ, there is no row, or a row is zero or not finite.
    """
    left = unit_rows(x, "x")
    right = unit_rows(y, "y")
    if left.shape != right.shape:
        raise DataError(f"Each row of x needs its positive in y, got shapes {left.shape} and {right.shape}.")
    difference = left - right
    return float(np.einsum("ij,ij->", difference, difference) / len(left))


def uniformity(x: Matrix, t: float = 2.0) -> float:
    """Return the logarithm of the mean Gaussian potential of all pairs of rows; smaller is more even.

    The mean of exp(-t d²) is over the unordered pairs of two different rows, d being their distance on the unit
    sphere. Distances are computed in blocks, so memory does not grow with the square of n.

    Source: Wang and Isola (2020), as :func:`alignment`. Rows are scaled to unit length here.

    Args:
        x: embeddings ``(n, dim)``, n at least 2; give each text once.
        t: sharpness, above 0.

    Returns:
        A number in [-4t, 0].

    Raises:
        DataError: if there are fewer than 2 rows, or a row is zero or not finite.
        ConfigError: if ``t`` is not above 0.
    """
    if not 0 < t < np.inf:
        raise ConfigError(f"t must be a number above 0, such as 2, got {t}.")
    rows = _pairable(x)
    block = max(1, BLOCK_CELLS // len(rows))
    # A running log-sum-exp: the sum so far is total * exp(top), so that no exponential underflows to 0.
    top = -np.inf
    total = 0.0
    # The last row alone has no later row, and the maximum below would be of nothing.
    for start in range(0, len(rows) - 1, block):
        cosines = rows[start : start + block] @ rows[start:].T
        # Each unordered pair once: columns right of the row's own position.
        above = np.arange(cosines.shape[1])[None, :] > np.arange(len(cosines))[:, None]
        # Rounding may lift a cosine above 1, and the squared distance below 0.
        exponents = -2 * t * (1 - np.minimum(cosines[above], 1.0))
        peak = max(top, float(exponents.max()))
        total = total * np.exp(top - peak) + float(np.exp(exponents - peak).sum())
        top = peak
    pairs = len(rows) * (len(rows) - 1) / 2
    return float(top + np.log(total / pairs))


def anisotropy(x: Matrix) -> float:
    """Return the mean cosine over all unordered pairs of two different rows; 0 for an even spread.

    With s the sum of the unit rows this is (s·s - n) / (n (n - 1)), so no pair is formed.

    Source: Ethayarajh (2019), "How contextual are contextualized word representations?".
    Differs: over every pair instead of a random sample.

    Args:
        x: embeddings ``(n, dim)``, n at least 2.

    Returns:
        A number in [-1 / (n - 1), 1].
    """
    rows = _pairable(x)
    total = rows.sum(axis=0)
    squared_lengths = np.einsum("ij,ij->", rows, rows)
    return float((total @ total - squared_lengths) / (len(rows) * (len(rows) - 1)))


def effective_rank(x: Matrix) -> float:
    """Return the effective number of directions of the rows: the exponential of the entropy of the singular values.

    Singular values are divided by their sum. A matrix with *r* equal ones and no others has effective rank *r*.

    Source: Roy and Vetterli (2007), "The effective rank: a measure of effective dimensionality".
    Differs: the mean row is subtracted first, so a common offset is no direction.

    Args:
        x: embeddings ``(n, dim)``, n at least 2, taken as they are.

    Returns:
        A number from 1 to the smaller of n - 1 and dim.

    Raises:
        DataError: if there are fewer than 2 rows, one is not finite, or all rows are the same.
    """
    rows = finite_rows(x, "x")
    if len(rows) < 2:
        raise DataError(f"The effective rank needs at least 2 rows, got {len(rows)}.")
    if (rows == rows[0]).all():
        raise DataError(f"The effective rank is undefined because all {len(rows)} rows are the same.")
    rows = rows / np.abs(rows).max()  # the scale cancels, and squares cannot overflow
    values = np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False)
    shares = values / values.sum()
    shares = shares[shares > 0]  # x log x goes to 0 with x
    return float(np.exp(-np.dot(shares, np.log(shares))))


def unit_rows(x: Matrix, name: str = "x") -> Rows:
    """Return the rows in float64, each scaled to unit length.

    Raises:
        DataError: if ``x`` is not a matrix with a row, or a row is zero or not finite (the first is named).
    """
    rows = finite_rows(x, name)
    largest = np.abs(rows).max(axis=1, keepdims=True)
    if not largest.all():
        raise DataError(
            f"A row of zeros has no direction, and {name}[{int(np.argmin(largest))}] is one "
            f"({int((largest == 0).sum())} of {len(rows)} are). Leave such texts out."
        )
    rows = rows / largest  # so that no square overflows
    unit: Rows = rows / np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return unit


def finite_rows(x: Matrix, name: str) -> Rows:
    """Return ``x`` as a float64 matrix ``(n, dim)`` of finite numbers, n and dim at least 1.

    Raises:
        DataError: if it is not (the first bad row is named).
    """
    rows: Rows = np.asarray(x, dtype=np.float64)
    if rows.ndim != 2 or not rows.size:
        raise DataError(f"{name} must be a matrix with one row a text, got an array of shape {rows.shape}.")
    bad = ~np.isfinite(rows).all(axis=1)
    if bad.any():
        raise DataError(
            f"{name} must hold finite numbers, and row {int(np.argmax(bad))} does not ({int(bad.sum())} of {len(rows)} "
            "do not). Leave such texts out, or mend what made them."
        )
    return rows


def _pairable(x: Matrix) -> Rows:
    """Return the unit rows; DataError if there are fewer than two."""
    rows = unit_rows(x)
    if len(rows) < 2:
        raise DataError(f"Pairs of rows are needed, so at least 2 rows, got {len(rows)}.")
    return rows
