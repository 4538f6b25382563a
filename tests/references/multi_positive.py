"""The loss of several positives an anchor, with a loop for each sum of the formula."""

import math

from tests.references.cosine import cosine
from tests.references.info_nce import log_sum


def multi_positive(
    anchors,
    positives,
    negatives,
    positive_owner,
    temperature,
    exclude=None,
    symmetric=False,
    hardness=0.0,
    exclude_anchors=None,
    weighed=None,
):
    """The weights of hardness are those of the columns in ``weighed``, which are the same if None."""
    weighed_anchors, *weighed_candidates = weighed or (anchors, positives, negatives)
    weighed_candidates = [row for column in weighed_candidates for row in column]
    total = 0.0
    for i, anchor in enumerate(anchors):
        owned = [at for at, owner in enumerate(positive_owner) if owner == i]
        rivals = []
        for at, candidate in enumerate([*positives, *negatives]):
            if at not in owned and not (exclude and exclude[i][at]):
                weight = math.exp(hardness * cosine(weighed_anchors[i], weighed_candidates[at]))
                rivals.append(cosine(anchor, candidate) / temperature + math.log(weight))
        for at in owned:
            own = cosine(anchor, positives[at]) / temperature
            value = log_sum([own, *rivals]) - own
            if symmetric:
                value = (value + opposite(anchors, positives, i, at, temperature, exclude, exclude_anchors)) / 2
            total += value / len(owned)
    return total / len(anchors)


def opposite(anchors, positives, i, at, temperature, exclude, exclude_anchors):
    """One positive of anchor i picks its anchor among those that may be told from it."""
    own = cosine(anchors[i], positives[at]) / temperature
    logits = [own]
    for j, other in enumerate(anchors):
        left_out = (exclude and exclude[j][at]) or (exclude_anchors and exclude_anchors[i][j])
        if j != i and not left_out:
            logits.append(cosine(other, positives[at]) / temperature)
    return log_sum(logits) - own
