"""Learning curves: a power law fitted to models trained on parts of the data, and its extrapolation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from samesense.errors import DataError
from samesense.metrics.inputs import Numbers, finite_vector
from samesense.metrics.resampling import rank_correlations, rank_values
from samesense.metrics.significance import defined_resamples, percentile_interval, resampled_statistics
from samesense.types import Floats

EXPONENTS = np.geomspace(0.05, 2.0, 40)
"""Grid of exponents: below the first a curve is a line over the logarithm, above the last a step."""

HIGHEST = 1.0
"""Largest limit: no correlation is above it."""

PARAMETERS = 3


@dataclass(frozen=True)
class Extrapolation:
    """A figure on the curve, or a difference of two, with its band."""

    value: float
    low: float  # lower end of the 95 % band
    high: float  # upper end of it


@dataclass(frozen=True)
class LearningCurve:
    """The power law ``limit - factor * (rows / most) ** -exponent``, fitted to the figures and to resampled figures.

    Attributes:
        most: rows of the largest part.
        figures: Spearman of each model ``(models,)``.
        law: limit, factor and exponent ``(3,)``.
        resampled: those of each resample ``(samples, 3)``.
    """

    most: float
    figures: Floats
    law: Floats
    resampled: Floats

    def predict(self, rows: float, less: float | None = None) -> Extrapolation:
        """Return the figure expected with ``rows`` rows, or its gain over the figure with ``less`` rows."""
        value = self._figure(self.law[None], rows)
        resampled = self._figure(self.resampled, rows)
        if less is not None:
            value = value - self._figure(self.law[None], less)
            resampled = resampled - self._figure(self.resampled, less)
        return Extrapolation(float(value[0]), *percentile_interval(resampled, 0.95))

    def _figure(self, laws: Floats, rows: float) -> Floats:
        return laws[:, 0] - laws[:, 1] * (rows / self.most) ** -laws[:, 2]


def fit_learning_curve(
    rows: Numbers, scores: npt.NDArray[np.float64], labels: Numbers, *, samples: int = 1000, seed: int = 0
) -> LearningCurve:
    """Fit a power law to the Spearman of models trained on parts of the data, with resamples for its band.

    A resample draws pairs with replacement, the same for every model, and adds to each figure a residual of the fit,
    drawn with replacement and widened for the three parameters. So the band covers both the choice of the evaluated
    pairs and that of the training rows and seeds.

    Source: Hestness et al. (2017), "Deep learning scaling is predictable, empirically", and Viering and Loog (2022),
        "The shape of learning curves: a review", for the power law with a limit; Davison and Hinkley (1997), section
        6.2.3, for residuals.
    Differs: fits a correlation, which grows with the rows, with a limit of at most 1.

    Args:
        rows: size of the part that each model was trained on ``(models,)``, three different ones or more.
        scores: of each model for the same pairs ``(models, pairs)``.
        labels: of these pairs ``(pairs,)``.
        samples: number of resamples.
        seed: of the resampling.

    Raises:
        DataError: if there are fewer than four models or three sizes, or a correlation is undefined.
    """
    sizes = finite_vector(rows, "rows")
    right = finite_vector(labels, "labels")
    if len(sizes) <= PARAMETERS or len(np.unique(sizes)) < PARAMETERS:
        raise DataError(f"A learning curve needs 4 models or more with 3 sizes; received {sizes.tolist()}.")
    every = np.arange(len(right))[None]
    ranking = rank_values(right)
    figures = np.array([rank_correlations(every, rank_values(model_scores), ranking)[0] for model_scores in scores])
    if np.isnan(figures).any():
        raise DataError("The Spearman of a model is undefined: its scores are all the same.")
    relative = sizes / sizes.max()
    law = power_laws(relative, figures[None])[0]
    residuals = figures - (law[0] - law[1] * relative ** -law[2])
    wide = residuals * np.sqrt(len(sizes) / (len(sizes) - PARAMETERS))
    drawn = defined_resamples(resampled_statistics(list(scores), right, "spearman", samples, seed)).T
    noise = np.random.default_rng(seed).choice(wide, size=drawn.shape)
    return LearningCurve(float(sizes.max()), figures, law, power_laws(relative, drawn + noise))


def power_laws(relative: Floats, figures: Floats) -> Floats:
    """Return limit, factor and exponent ``(samples, 3)`` by least squares, for figures ``(samples, models)``.

    ``relative`` are the sizes as shares of the largest ``(models,)``. For a given exponent the fit is linear; a limit
    above 1 is set to 1.
    """
    best = np.zeros((len(figures), 3))
    least = np.full(len(figures), np.inf)
    for exponent in EXPONENTS:
        power = relative**-exponent
        slope = (figures - figures.mean(axis=1, keepdims=True)) @ (power - power.mean())
        slope = slope / ((power - power.mean()) @ (power - power.mean()))
        limit = np.minimum(figures.mean(axis=1) - slope * power.mean(), HIGHEST)
        # Fitted again, as the limit may have been lowered to its maximum.
        factor = (limit[:, None] - figures) @ power / (power @ power)
        residuals = figures - (limit[:, None] - factor[:, None] * power)
        squares = np.einsum("ij,ij->i", residuals, residuals)
        nearer = squares < least
        best[nearer] = np.stack([limit, factor, np.full(len(figures), exponent)], axis=1)[nearer]
        least[nearer] = squares[nearer]
    return best
