"""The loss of several positives an anchor, with a loop for each sum of the formula."""

from tests.references.cosine import cosine
from tests.references.info_nce import log_sum


def multi_positive(anchors, positives, negatives, positive_owner, temperature, exclude=None):
    total = 0.0
    for i, anchor in enumerate(anchors):
        own = [cosine(anchor, p) / temperature for p, o in zip(positives, positive_owner, strict=True) if o == i]
        rivals = []
        for at, candidate in enumerate([*positives, *negatives]):
            owned = at < len(positives) and positive_owner[at] == i
            if not owned and not (exclude and exclude[i][at]):
                rivals.append(cosine(anchor, candidate) / temperature)
        total += sum(log_sum([s, *rivals]) - s for s in own) / len(own)
    return total / len(anchors)
