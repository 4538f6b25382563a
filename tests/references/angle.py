"""AnglE's similarity with Python's complex numbers, and its whole loss."""

import math

from tests.references.cosent import cosent
from tests.references.cosine import cosine
from tests.references.info_nce import info_nce


def angle_score(u, v):
    half = len(u) // 2
    length_u, length_v = math.hypot(*u), math.hypot(*v)
    if length_u == 0 or length_v == 0:
        return 0.0
    total = 0.0
    for k in range(half):
        z, w = complex(u[k], u[half + k]), complex(v[k], v[half + k])
        quotient = z * w.conjugate() / (length_u * length_v)  # z / w, had w the length of all of v
        total += quotient.real + quotient.imag
    return abs(total)


def angle_loss(first, second, labels, positive_above, weights=(1.0, 1.0, 1.0), temperature=0.05, angle_temperature=1.0):
    pairs = list(zip(first, second, strict=True))
    positive = [pair for pair, label in zip(pairs, labels, strict=True) if label > positive_above]
    other = [v for (_, v), label in zip(pairs, labels, strict=True) if label <= positive_above]
    in_batch = info_nce([u for u, _ in positive], [v for _, v in positive], other, temperature) if positive else 0.0
    return (
        weights[0] * cosent([cosine(u, v) for u, v in pairs], labels, temperature)
        + weights[1] * in_batch
        + weights[2] * cosent([angle_score(u, v) for u, v in pairs], labels, angle_temperature)
    )
