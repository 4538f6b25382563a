"""Classification features and cross-entropy as plain loops."""

import math


def softmax_features(u, v, product=False):
    result = []
    for left, right in zip(u, v, strict=True):
        features = [*left, *right]
        features += [abs(a - b) for a, b in zip(left, right, strict=True)]
        if product:
            features += [a * b for a, b in zip(left, right, strict=True)]
        result.append(features)
    return result


def softmax(logits, labels):
    total = 0.0
    for row, label in zip(logits, labels, strict=True):
        top = max(row)
        partition = math.fsum(math.exp(x - top) for x in row)
        total -= row[label] - top - math.log(partition)
    return total / len(labels)
