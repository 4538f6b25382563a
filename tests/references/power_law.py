"""Power law with a limit, by plain loops and least squares."""

import numpy as np


def power_law(sizes, figures, exponents, highest=1.0):
    """Return limit, factor and exponent with the least squares."""
    most, best = max(sizes), None
    for exponent in exponents:
        columns = [[1.0, -((size / most) ** -exponent)] for size in sizes]
        limit, factor = np.linalg.lstsq(np.array(columns), np.array(figures), rcond=None)[0]
        if limit > highest:
            limit = highest
            factor = np.linalg.lstsq(np.array([[row[1]] for row in columns]), np.array(figures) - limit, rcond=None)[0][
                0
            ]
        squares = sum((y - limit - factor * row[1]) ** 2 for y, row in zip(figures, columns, strict=True))
        if best is None or squares < best[0]:
            best = (squares, limit, factor, exponent)
    return best[1:]
