"""Scores that mean something: on the scale of the user's labels, as a probability, or as yes and no."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from samesense.errors import ConfigError, ModelError
from samesense.inference.calibration.maps import Isotonic, Logistic
from samesense.metrics.classification import Target
from samesense.metrics.inputs import finite_vector
from samesense.types import Scores


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What the scores of one model mean, learnt from labelled pairs.

    Attributes:
        map: from scores to the scale.
        scale: lowest and highest label; (0, 1) for a probability.
        yes: the label from which on a pair counts as a yes; ``None`` where the labels do not say.
        thresholds: for accuracy and for F1 the score from which on a pair is called a yes. Absent where calling all
            pairs the same is best, so that no score divides them.
        decide: the threshold that holds unless another is asked for.
        data: name of the pairs it was fitted on.
        sha256: fingerprint of their content.
        n: how many they are.
        protocol: how the scores were made, in words.
        fingerprint: of the files of the model.
        errors: what cross-validation found, by name.
        version: of the form of the file.
    """

    map: Isotonic | Logistic
    scale: tuple[float, float]
    yes: float | None
    thresholds: dict[Target, float]
    decide: Target
    data: str
    sha256: str
    n: int
    protocol: str
    fingerprint: str
    errors: dict[str, float]
    version: Literal[1] = 1

    def __post_init__(self) -> None:
        if not np.isfinite(list(self.thresholds.values())).all():
            raise ModelError(f"Thresholds must be finite numbers; received {self.thresholds}. Calibrate again.")

    def apply(self, scores: Scores) -> Scores:
        """Return scores on the scale of the labels ``(n,)``; a score outside those fitted on stays on the scale.

        Raises:
            DataError: if a score is not finite.
        """
        return self.map(finite_vector(scores, "scores"))

    def says_yes(self, scores: Scores, by: Target | None = None) -> npt.NDArray[np.bool_]:
        """Return for each score whether the pair counts as a yes ``(n,)``.

        Args:
            scores: of the model ``(n,)``.
            by: which threshold; ``None`` takes that of the calibration.

        Raises:
            ConfigError: if there is no such threshold.
            DataError: if a score is not finite.
        """
        return finite_vector(scores, "scores") >= self.threshold(by)

    def threshold(self, by: Target | None = None) -> float:
        """Return the score from which on a pair is called a yes; arguments and errors as :meth:`says_yes`."""
        wanted = by or self.decide
        if wanted in self.thresholds:
            return self.thresholds[wanted]
        if self.yes is None:
            raise ConfigError(
                f"Yes and no need a threshold, and this calibration has none: {self.data} has graded labels. Calibrate "
                f"again and say from which label on a pair counts, as in: `yes` {(self.scale[0] + self.scale[1]) / 2:g}"
            )
        raise ConfigError(
            f"The threshold for {wanted} is undefined: on {self.data} it is best to call all pairs the same. Ask for "
            f"{' or '.join(self.thresholds) or 'calibrated scores instead, or calibrate on other pairs'}."
        )
