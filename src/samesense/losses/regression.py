"""Mean squared error of score and label.

    L = mean over pairs of (s - y)^2

where ``s`` is the similarity of a pair and ``y`` its label, on one scale.
"""

from __future__ import annotations

from torch import Tensor

from samesense.losses.cosine import check_scores, reduced, widen


def mse(scores: Tensor, labels: Tensor) -> Tensor:
    """Return the mean squared error of one batch, a scalar.

    Args:
        scores: ``(pairs,)`` cosine of each pair.
        labels: ``(pairs,)`` target of each pair on the scale of the scores; gold scores of 0 to 5 are divided by 5.

    Returns:
        Scalar in float32 (float64 for float64 scores): the mean over pairs, 0 for none.

    Raises:
        ValueError: if the shapes differ or are not one-dimensional.

    Source: Reimers and Gurevych 2019, regression objective; Sun et al. 2022 (TACL), L2 of the Surrogate on harvested
        similarities: the same function of other labels.
    Differs: none.

    Example:
        >>> mse(torch.tensor([0.5, 1.0]), torch.tensor([0.0, 1.0]))
        tensor(0.1250)
    """
    check_scores("mse", scores, labels)
    scores = widen(scores)
    return reduced((scores - labels.to(scores.dtype)).square(), "mean")
