"""Mean squared error as a plain loop."""


def mse(scores, labels):
    total = 0.0
    for score, label in zip(scores, labels, strict=True):
        total += (score - label) ** 2
    return total / len(scores)
