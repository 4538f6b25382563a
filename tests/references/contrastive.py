"""The contrastive loss pair by pair: half a squared distance, by the margin form and as printed."""


def contrastive(scores, labels, threshold=0.0, literal=False):
    total = 0.0
    for score, label in zip(scores, labels, strict=True):
        distance, margin = 1 - score, 1 - threshold
        if label == 1:
            total += distance**2 / 2
        elif literal:
            total += max(threshold, score) ** 2 / 2
        elif distance < margin:
            total += (margin - distance) ** 2 / 2
    return total / len(scores)
