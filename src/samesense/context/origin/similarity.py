"""How well a sentence fits a context, and how alike two sentences are by it: the arithmetic of Eq. 3 and Eq. 4."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from samesense.errors import ConfigError, ModelError
from samesense.types import Floats, Indices

TERMS = ("discriminative", "sentence", "left", "right")
"""The terms of Eq. 3, in its order."""

Normalisation = Literal["raw", "centred", "standardised", "both"]
"""What is done to the terms and vectors before the cosine; see :func:`vector`."""

SMALLEST_SPREAD = 1e-5
"""A term whose deviation over the reference is below this, relative to its mean, says nothing in its context."""


@dataclass(frozen=True, kw_only=True)
class Weights:
    """The factors λ1 to λ4 of Eq. 3.

    Source: Sun et al. 2022 (TACL), Eq. 3; the values are not stated there. Equal ones are the default, sensible once
        the terms are standardised.

    Raises:
        ConfigError: if one is negative or not finite, or all are 0.
    """

    discriminative: float = 1.0
    sentence: float = 1.0
    left: float = 1.0
    right: float = 1.0

    def __post_init__(self) -> None:
        values = self.values()
        if not all(math.isfinite(value) and value >= 0 for value in values) or not any(values):
            raise ConfigError(f"The weights of Eq. 3 are 0 or larger, and one at least is above 0; received {values}.")

    def values(self) -> tuple[float, float, float, float]:
        """Return the weights in the order of :data:`TERMS`."""
        return (self.discriminative, self.sentence, self.left, self.right)

    @property
    def generative(self) -> bool:
        """Whether a term of a generator counts."""
        return any(self.values()[1:])

    def used(self) -> npt.NDArray[np.bool_]:
        """Return which terms count, ``(4,)``."""
        return np.array(self.values()) > 0


def fit(terms: Floats, weights: Weights) -> Floats:
    """Return the weighted sum of the terms: how well each sentence fits its context.

    Source: Sun et al. 2022 (TACL), Eq. 3.
    """
    return np.tensordot(np.array(weights.values()), terms, axes=1)


@dataclass(frozen=True)
class Statistics:
    """What is usual in each context: mean and deviation of each term over a reference population of sentences."""

    means: Floats  # (4, windows)
    deviations: Floats  # population standard deviations, (4, windows)

    def defined(self, weights: Weights) -> npt.NDArray[np.bool_]:
        """Return in which contexts every term that counts varies, ``(windows,)``."""
        varies = self.deviations > SMALLEST_SPREAD * (1 + np.abs(self.means))
        all_vary: npt.NDArray[np.bool_] = np.logical_and.reduce(varies[weights.used()])
        return all_vary

    def standardise(self, terms: Floats, columns: Indices) -> Floats:
        """Return the terms ``(4, n)`` as deviations from what is usual in their contexts ``columns``.

        A term without any deviation gives 0 if it does not count; see :meth:`defined` for those that do.
        """
        deviations = self.deviations[:, columns]
        varying = deviations > 0
        return np.divide(terms - self.means[:, columns], deviations, out=np.zeros_like(terms), where=varying)


def vector(fits: Floats, normalisation: Normalisation) -> Floats:
    """Return the vector of a sentence over a set of contexts, ``(contexts,)``, as it enters the cosine.

    Source: Sun et al. 2022 (TACL), Eq. 4, for ``raw``.
    Differs: raw fits are all negative and vary more between contexts than between sentences, so that their cosines lie
        within a thousandth of 1. ``standardised`` takes fits of terms standardised in their contexts (the default).
        ``centred`` takes the mean of the vector off, which makes the cosine Pearson's correlation; ``both`` does so
        with standardised fits.
    """
    if normalisation not in ("centred", "both"):
        return fits
    centred: Floats = fits - fits.mean()
    return centred


def contributions(first: Floats, second: Floats, pair: tuple[str, str]) -> Floats:
    """Return what each context adds to the cosine of two vectors, ``(contexts,)``; the sum is the cosine.

    Source: Sun et al. 2022 (TACL), Eq. 4.

    Raises:
        ModelError: if a vector is all zeros, so that there is no cosine.
    """
    lengths = math.sqrt(float(first @ first) * float(second @ second))
    if not lengths > 0:
        raise ModelError(
            f"The cosine of a pair is undefined: in its {len(first)} contexts, all fits of one sentence are alike. "
            f"Take more contexts. The pair: {pair[0][:60]!r}, {pair[1][:60]!r}."
        )
    return first * second / lengths


def cosine(first: Floats, second: Floats, pair: tuple[str, str]) -> float:
    """Return the cosine of two vectors, exactly 1 for equal ones.

    Source: Sun et al. 2022 (TACL), Eq. 4.

    Raises:
        ModelError: as :func:`contributions`.
    """
    if (first == second).all() and first.any():
        return 1.0
    return min(1.0, max(-1.0, float(contributions(first, second, pair).sum())))
