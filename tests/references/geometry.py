"""Alignment, uniformity, anisotropy and effective rank as plain loops over pairs of rows."""

import math


def unit(row):
    length = math.sqrt(math.fsum(value * value for value in row))
    return [value / length for value in row]


def squared_distance(one, other):
    return math.fsum((a - b) ** 2 for a, b in zip(unit(one), unit(other), strict=True))


def pairs(rows):
    return [(rows[i], rows[j]) for i in range(len(rows)) for j in range(i)]


def alignment(left, right):
    return math.fsum(squared_distance(x, y) for x, y in zip(left, right, strict=True)) / len(left)


def uniformity(rows, t=2.0):
    potentials = [math.exp(-t * squared_distance(x, y)) for x, y in pairs(rows)]
    return math.log(math.fsum(potentials) / len(potentials))


def anisotropy(rows):
    cosines = [math.fsum(a * b for a, b in zip(unit(x), unit(y), strict=True)) for x, y in pairs(rows)]
    return math.fsum(cosines) / len(cosines)


def effective_rank(rows):
    """By the eigenvalues of the covariance of the columns, where the metric takes singular values."""
    import numpy as np

    values = np.sqrt(np.clip(np.linalg.eigvalsh(np.cov(np.asarray(rows, dtype=float).T)), 0, None)).tolist()
    shares = [value / math.fsum(values) for value in values]
    return math.exp(-math.fsum(share * math.log(share) for share in shares if share > 0))
