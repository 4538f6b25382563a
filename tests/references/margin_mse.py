"""MarginMSE as a loop over the couples of each group, in plain Python floats."""

from itertools import combinations


def margin_mse(scores, labels, groups):
    errors = [
        ((scores[a] - scores[b]) - (labels[a] - labels[b])) ** 2
        for a, b in combinations(range(len(scores)), 2)
        if groups[a] == groups[b]
    ]
    return sum(errors) / max(len(errors), 1)
