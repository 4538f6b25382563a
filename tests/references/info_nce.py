"""InfoNCE anchor by anchor, over Python floats."""

import math

from tests.references.cosine import cosine


def log_sum(terms):
    top = max(terms)
    return top + math.log(math.fsum(math.exp(t - top) for t in terms))


def info_nce_scores(scores, temperature, reduction="mean"):
    total = 0.0
    for i, row in enumerate(scores):
        total += log_sum([s / temperature for s in row]) - row[i] / temperature
    return total / len(scores) if reduction == "mean" else total


def info_nce(anchors, positives, negatives=(), temperature=0.05, own_negative_weight=0.0, symmetric=False):
    n, total, backwards = len(anchors), 0.0, 0.0
    for i, anchor in enumerate(anchors):
        own = cosine(anchor, positives[i]) / temperature
        rivals = [cosine(anchor, positive) / temperature for positive in positives]
        for j, negative in enumerate(negatives):
            rivals.append(cosine(anchor, negative) / temperature + (own_negative_weight if i == j else 0.0))
        total += log_sum(rivals) - own
        rivals = [cosine(other, positives[i]) / temperature for other in anchors]
        backwards += log_sum(rivals) - own
    return (total + backwards) / (2 * n) if symmetric else total / n
