"""InfoNCE anchor by anchor, over Python floats."""

import math

from tests.references.cosine import cosine


def log_sum(terms):
    top = max(terms)
    return top + math.log(math.fsum(math.exp(t - top) for t in terms))


def info_nce_scores(scores, temperature, exclude=None, reduction="mean"):
    total = 0.0
    for i, row in enumerate(scores):
        kept = [s / temperature for j, s in enumerate(row) if j == i or exclude is None or not exclude[i][j]]
        total += log_sum(kept) - row[i] / temperature
    return total / len(scores) if reduction == "mean" else total


def info_nce(
    anchors, positives, negatives=(), temperature=0.05, own_negative_weight=0.0, symmetric=False, exclude=None
):
    n, total, backwards = len(anchors), 0.0, 0.0
    for i, anchor in enumerate(anchors):
        own = cosine(anchor, positives[i]) / temperature
        rivals = [own]
        for j, positive in enumerate(positives):
            if j != i and not (exclude and exclude[i][j]):
                rivals.append(cosine(anchor, positive) / temperature)
        for j, negative in enumerate(negatives):
            if not (exclude and exclude[i][n + j]):
                rivals.append(cosine(anchor, negative) / temperature + (own_negative_weight if i == j else 0.0))
        total += log_sum(rivals) - own
        rivals = [own]
        for j, other in enumerate(anchors):
            if j != i and not (exclude and exclude[j][i]):
                rivals.append(cosine(other, positives[i]) / temperature)
        backwards += log_sum(rivals) - own
    return (total + backwards) / (2 * n) if symmetric else total / n
