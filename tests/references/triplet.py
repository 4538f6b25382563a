"""The triplet loss as a plain loop, and the two distances it is used with."""

import math

from tests.references.cosine import cosine


def distance_of(u, v, distance):
    if distance == "cosine":
        return 1 - cosine(u, v)
    return math.dist(u, v)


def triplet(anchors, positives, negatives, distance, margin):
    total = 0.0
    for a, p, n in zip(anchors, positives, negatives, strict=True):
        total += max(0.0, distance_of(a, p, distance) - distance_of(a, n, distance) + margin)
    return total / len(anchors)
