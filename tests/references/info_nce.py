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


def info_nce(
    anchors,
    positives,
    negatives=(),
    temperature=0.05,
    own_negative_weight=0.0,
    symmetric=False,
    hardness=0.0,
    weighed=None,
):
    """InfoNCE of vectors; the weights of hardness are those of the columns in ``weighed``, which are the same if None.

    A finite difference of the value with ``weighed`` fixed is the gradient without one of the weights.
    """
    n, total, backwards = len(anchors), 0.0, 0.0
    weighed_anchors, weighed_positives, weighed_negatives = weighed or (anchors, positives, negatives)
    for i, anchor in enumerate(anchors):
        own = cosine(anchor, positives[i]) / temperature
        rivals = []
        for j, positive in enumerate(positives):
            weight = 1.0 if i == j else math.exp(hardness * cosine(weighed_anchors[i], weighed_positives[j]))
            rivals.append(cosine(anchor, positive) / temperature + math.log(weight))
        for j, negative in enumerate(negatives):
            weight = math.exp(hardness * cosine(weighed_anchors[i], weighed_negatives[j]))
            if i == j:
                weight *= math.exp(own_negative_weight)
            rivals.append(cosine(anchor, negative) / temperature + math.log(weight))
        total += log_sum(rivals) - own
        rivals = [cosine(other, positives[i]) / temperature for other in anchors]
        backwards += log_sum(rivals) - own
    return (total + backwards) / (2 * n) if symmetric else total / n
