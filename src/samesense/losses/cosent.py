"""CoSENT: one ranking loss over all differently labelled pairs of a batch.

    L = log(1 + sum over (a, b) with y_a < y_b of exp((s_a - s_b) / temperature))

where ``s`` is the similarity of a pair and ``y`` its label: the loss is large when a lower-labelled pair is the more
similar one. Equal labels are never compared, and a batch without a comparison costs exactly 0.
"""

from __future__ import annotations

import torch
from torch import Tensor

from samesense.losses.cosine import widen


def cosent(scores: Tensor, labels: Tensor, *, temperature: float = 0.05, margin: float = 0.0) -> Tensor:
    """Return the CoSENT loss of one batch, a scalar.

    Args:
        scores: ``(pairs,)`` similarity of each pair, any scalar (cosine, or the logit of a cross-encoder).
        labels: ``(pairs,)`` numbers of any monotone scale; only their order counts.
        temperature: divides the scores; 0.05 is the papers' scale of 20. Use 1.0 for unbounded logits.
        margin: labels must differ by more than this to be compared; 0 is the paper.

    Returns:
        Scalar in float32 (float64 for float64 scores): a sum over comparisons, not a mean, so it grows with the batch.

    Raises:
        ValueError: if the shapes differ or are not one-dimensional, or temperature or margin is out of range.

    Source: Huang et al. 2024 (TASLP), Eq. 8 and 10; scale 20 from section V-G. Eq. 11 is the same function of logits.
    Differs: none in value. Sorted by label, each pair needs only the log-sum-exp of all higher-labelled pairs, so
        time is O(n log n) and memory O(n) where the printed double sum is quadratic.

    Example:
        >>> cosent(torch.tensor([0.5, 0.5]), torch.tensor([0.0, 1.0]))  # one comparison of equal scores: log 2
        tensor(0.6931)
    """
    if scores.ndim != 1 or scores.shape != labels.shape:
        raise ValueError(
            f"cosent takes one score and one label a pair, both of shape (pairs,); "
            f"received scores {tuple(scores.shape)} and labels {tuple(labels.shape)}."
        )
    if temperature <= 0 or margin < 0:
        raise ValueError(f"temperature must be > 0 and margin >= 0; received {temperature} and {margin}.")
    logits = widen(scores) / temperature
    ordered, order = labels.double().sort()  # float64, so that whole numbers beyond 2^24 stay different
    logits = logits[order]
    # first position whose label is higher than this pair's; ties and, with a margin, near-ties are jumped over
    higher = torch.searchsorted(ordered, ordered + margin, right=True)
    above = torch.logcumsumexp(-logits.flip(0), dim=0).flip(0)  # (pairs,) log sum of exp(-s) from here upwards
    above = torch.cat([above, above.new_full((1,), -torch.inf)])
    return torch.logsumexp(torch.cat([logits.new_zeros(1), logits + above[higher]]), dim=0)
