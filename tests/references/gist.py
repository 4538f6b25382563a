"""GISTEmbed anchor by anchor, over Python floats."""

from tests.references.cosine import cosine
from tests.references.info_nce import log_sum


def gist(anchors, positives, negatives, guide, temperature, margin=0.0, relative=False, contrasts=(True, True)):
    """Return the loss; ``guide`` has the guide's vectors of anchors, positives and negatives."""
    guide_anchors, guide_positives, guide_negatives = guide
    total = 0.0
    for i, (anchor, positive) in enumerate(zip(anchors, positives, strict=True)):
        least = cosine(guide_anchors[i], guide_positives[i])
        limit = least - (margin * abs(least) if relative else margin)
        pairs = [
            (anchor, candidate, guide_anchors[i], guide_candidate)
            for j, (candidate, guide_candidate) in enumerate(zip(positives, guide_positives, strict=True))
            if i != j
        ]
        pairs += [(anchor, c, guide_anchors[i], g) for c, g in zip(negatives, guide_negatives, strict=True)]
        if contrasts[0]:
            pairs += [(anchor, c, guide_anchors[i], g) for c, g in zip(anchors, guide_anchors, strict=True)]
        if contrasts[1]:
            pairs += [(positive, c, guide_positives[i], g) for c, g in zip(positives, guide_positives, strict=True)]
        own = cosine(anchor, positive) / temperature
        rivals = [
            cosine(u, v) / temperature for u, v, guide_u, guide_v in pairs if cosine(guide_u, guide_v) < limit - 1e-6
        ]
        total += log_sum([own, *rivals]) - own
    return total / len(anchors)
