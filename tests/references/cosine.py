"""The cosine of two vectors, and of all rows of two matrices, as plain loops over Python floats."""

import math


def cosine(u, v):
    length_u, length_v = math.hypot(*u), math.hypot(*v)
    if length_u == 0 or length_v == 0:
        return 0.0
    return math.fsum((a / length_u) * (b / length_v) for a, b in zip(u, v, strict=True))


def cosine_matrix(left, right):
    return [[cosine(u, v) for v in right] for u in left]
