"""The loss of several positives an anchor, with a loop for each sum of the formula."""

from tests.references.cosine import cosine
from tests.references.info_nce import log_sum


def multi_positive(anchors, positives, negatives, positive_owner, temperature):
    total = 0.0
    for i, anchor in enumerate(anchors):
        own = [cosine(anchor, p) / temperature for p, o in zip(positives, positive_owner, strict=True) if o == i]
        rivals = [cosine(anchor, p) / temperature for p, o in zip(positives, positive_owner, strict=True) if o != i]
        rivals += [cosine(anchor, n) / temperature for n in negatives]
        total += sum(log_sum([s, *rivals]) - s for s in own) / len(own)
    return total / len(anchors)
