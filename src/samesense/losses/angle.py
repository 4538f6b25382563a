"""AnglE's similarity of two vectors read as complex numbers, to be ranked by CoSENT.

    x = (a, b) is a + ib,  y = (c, d) is c + id
    score = | sum over k of Re + Im of (a + ib) / (c + id) |, each length set to that of the whole vector
          = | (a.c + b.d) + (b.c - a.d) | / (|x| |y|)

The first sum is the cosine; the second does not fade out where the cosine is close to 1.
"""

from __future__ import annotations

from torch import Tensor

from samesense.losses.cosine import unit


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
    if u.ndim != 2 or u.shape != v.shape:
        raise ValueError(
            f"angle_scores takes two matrices of shape (pairs, dim); received {tuple(u.shape)} and {tuple(v.shape)}."
        )
    if u.shape[1] % 2:
        raise ValueError(f"angle_scores halves the embedding, so its dimension must be even; received {u.shape[1]}.")
    a, b = unit(u).chunk(2, dim=1)
    c, d = unit(v).chunk(2, dim=1)
    return (a * c + b * d + b * c - a * d).sum(dim=1).abs()
