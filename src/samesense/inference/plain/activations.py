"""Activations, softmax and layer norm, as in torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from samesense.inference.plain.weights import Array
from samesense.types import Floats

_NUMERATOR = (
    -2.72614225801306e-10,
    2.77068142495902e-08,
    -2.10102402082508e-06,
    -5.69250639462346e-05,
    -7.34990630326855e-04,
    -2.95459980854025e-03,
    -1.60960333262415e-02,
)
_DENOMINATOR = (
    -1.45660718464996e-05,
    -2.13374055278905e-04,
    -1.68282697438203e-03,
    -7.37332916720468e-03,
    -1.42647390514189e-02,
)


def erf(values: Array) -> Floats:
    """Return the error function in float64, accurate to 7e-8; importing SciPy's would take a quarter of a second.

    Source: XLA and Eigen, the rational approximation of ``erf`` for float32 (``ErfImpl32``).
    """
    # From 4 on erf is 1 in float32, and the polynomials hold no further.
    clipped = np.clip(values.astype(np.float64), -4.0, 4.0)
    square = clipped * clipped
    result: Floats = clipped * _polynomial(_NUMERATOR, square) / _polynomial(_DENOMINATOR, square)
    return result


def _polynomial(coefficients: Sequence[float], values: Floats) -> Floats:
    total = np.full_like(values, coefficients[0])
    for coefficient in coefficients[1:]:
        total *= values
        total += coefficient
    return total


def gelu(values: Array) -> Array:
    """Return ``x * P(X <= x)`` of a standard normal X.

    Source: Hendrycks and Gimpel 2016, "Gaussian Error Linear Units".
    """
    return (0.5 * values * (1.0 + erf(values * np.sqrt(0.5)))).astype(np.float32)


def relu(values: Array) -> Array:
    """Return the values, negative ones as 0."""
    return np.maximum(values, 0)


def identity(values: Array) -> Array:
    """Return the values unchanged."""
    return values


def tanh(values: Array) -> Array:
    """Return the hyperbolic tangents."""
    return np.tanh(values)


OF_TRANSFORMERS: dict[str, Callable[[Array], Array]] = {"gelu": gelu, "relu": relu}
"""Activations by their names in ``config.json``."""

OF_TORCH: dict[str, Callable[[Array], Array]] = {
    "torch.nn.modules.linear.Identity": identity,
    "torch.nn.modules.activation.Tanh": tanh,
    "torch.nn.modules.activation.ReLU": relu,
    "torch.nn.modules.activation.GELU": gelu,
}
"""Activations by their class names in the configuration of a dense layer."""


def softmax(scores: Array) -> Array:
    """Return the softmax over the last axis."""
    # Less the largest score, so that exp cannot overflow.
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares: Array = weights / weights.sum(axis=-1, keepdims=True)
    return shares


def layer_norm(rows: Array, weight: Array, bias: Array, epsilon: float) -> Array:
    """Return rows normalised to mean 0 and variance 1, then scaled and shifted.

    Source: Ba, Kiros and Hinton 2016, "Layer Normalization", equation 3.
    """
    centred = rows - rows.mean(axis=-1, keepdims=True)
    variance = np.square(centred).mean(axis=-1, keepdims=True)
    normed: Array = centred / np.sqrt(variance + np.float32(epsilon)) * weight + bias
    return normed
