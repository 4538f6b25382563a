"""CoSENT written from its printed double sum, in plain Python floats."""

import math


def cosent(scores, labels, temperature=0.05, margin=0.0, groups=None):
    groups = groups or [0] * len(scores)
    exponents = [0.0]
    for low_score, low_label, low_group in zip(scores, labels, groups, strict=True):
        for high_score, high_label, high_group in zip(scores, labels, groups, strict=True):
            if low_group != high_group:
                continue
            if high_label > low_label + margin + (1e-6 * (abs(low_label) + margin) if margin else 0.0):
                exponents.append((low_score - high_score) / temperature)
    top = max(exponents)
    return top + math.log(math.fsum(math.exp(e - top) for e in exponents))
