"""Kendall's tau-b and NDCG as plain loops over Python floats."""

import itertools
import math


def kendall(left, right):
    agree = disagree = only_left = only_right = 0
    for i in range(len(left)):
        for j in range(i):
            x, y = left[i] - left[j], right[i] - right[j]
            if x * y > 0:
                agree += 1
            elif x * y < 0:
                disagree += 1
            elif x == 0 and y != 0:
                only_left += 1
            elif y == 0 and x != 0:
                only_right += 1
    untied = agree + disagree
    return (agree - disagree) / math.sqrt((untied + only_left) * (untied + only_right))


def gain_of(label, gain):
    return label if gain == "linear" else 2**label - 1


def cumulated(labels, gain):
    return math.fsum(gain_of(label, gain) / math.log2(place + 2) for place, label in enumerate(labels))


def ndcg_over_all_orders(scores, labels, gain):
    """Mean over every order of the items that the scores allow; for lists of a few items."""
    values = []
    for order in itertools.permutations(range(len(scores))):
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order)):
            values.append(cumulated([labels[i] for i in order], gain))
    return math.fsum(values) / len(values) / cumulated(sorted(labels, reverse=True), gain)
