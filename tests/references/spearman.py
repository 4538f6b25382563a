"""Spearman's and Pearson's correlation as plain loops over Python floats."""

import math


def ranks(values):
    result = []
    for value in values:
        below = sum(other < value for other in values)
        same = sum(other == value for other in values)
        result.append(below + (same + 1) / 2)
    return result


def pearson(left, right):
    mean_left, mean_right = math.fsum(left) / len(left), math.fsum(right) / len(right)
    product = spread_left = spread_right = 0.0
    for x, y in zip(left, right, strict=True):
        product += (x - mean_left) * (y - mean_right)
        spread_left += (x - mean_left) ** 2
        spread_right += (y - mean_right) ** 2
    return product / math.sqrt(spread_left * spread_right)


def spearman(left, right):
    return pearson(ranks(left), ranks(right))
