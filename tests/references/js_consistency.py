"""The Jensen-Shannon divergence by its definition, on probabilities, and rows against columns of a matrix."""

import math

from tests.references.info_nce import log_sum


def kl(p, q):
    return math.fsum(a * math.log(a / b) for a, b in zip(p, q, strict=True) if a > 0)


def js(p, q):
    middle = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
    return kl(p, middle) / 2 + kl(q, middle) / 2


def probabilities(scores, temperature):
    partition = log_sum([s / temperature for s in scores])
    return [math.exp(s / temperature - partition) for s in scores]


def minus_entropy(scores, temperature, reduction="sum"):
    total = 0.0
    for i, row in enumerate(scores):
        for scale in (row, [other[i] for other in scores]):
            total += math.fsum(p * math.log(p) for p in probabilities(scale, temperature) if p > 0) / 2
    return total / len(scores) if reduction == "mean" else total


def js_consistency(scores, temperature, reduction="sum"):
    total = 0.0
    for i, row in enumerate(scores):
        column = [other[i] for other in scores]
        total += js(probabilities(row, temperature), probabilities(column, temperature))
    return total / len(scores) if reduction == "mean" else total
