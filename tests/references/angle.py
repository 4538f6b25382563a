"""AnglE's similarity with Python's complex numbers."""

import math


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
