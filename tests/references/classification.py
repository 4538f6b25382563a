"""Thresholds by trying every cut, one pair at a time."""


def counts(scores, labels, threshold):
    both = list(zip(scores, labels, strict=True))
    hit = sum(score >= threshold and label == 1 for score, label in both)
    false_alarm = sum(score >= threshold and label == 0 for score, label in both)
    missed = sum(score < threshold and label == 1 for score, label in both)
    return hit, false_alarm, missed, len(both) - hit - false_alarm - missed


def accuracy_at(scores, labels, threshold):
    hit, _, _, passed = counts(scores, labels, threshold)
    return (hit + passed) / len(labels)


def f1_at(scores, labels, threshold):
    hit, false_alarm, missed, _ = counts(scores, labels, threshold)
    if hit == 0:
        return 0.0
    precision, recall = hit / (hit + false_alarm), hit / (hit + missed)
    return 2 * precision * recall / (precision + recall)


def best_value(scores, labels, metric):
    """The best that any threshold reaches."""
    at = {"accuracy": accuracy_at, "f1": f1_at}[metric]
    return max(at(scores, labels, threshold) for threshold in [*scores, float("inf")])
